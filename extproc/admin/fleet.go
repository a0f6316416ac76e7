package admin

import "github.com/weirproxy/weir/extproc/fleet"

// FleetStatus is what a process has to do with the other replicas.
type FleetStatus struct {
	Replica string `json:"replica"` // this one's name
	Redis   string `json:"redis"`   // the URL, without a password
	// InTouch: Redis answers, and this process knows what the fleet knows.
	InTouch bool `json:"inTouch"`
	// CaughtUp: it may judge what was stored before. Else nothing cached is served.
	CaughtUp      bool    `json:"caughtUp"`
	SilentSeconds float64 `json:"silentSeconds"` // since Redis answered last
	// Replicas are those that Redis knows, with those that fell silent lately without
	// a goodbye; ReplicasError says why they could not be asked for.
	Replicas      []Replica `json:"replicas,omitempty"`
	ReplicasError string    `json:"replicasError,omitempty"`

	Leases  int `json:"leases"`  // held: fetches that this process makes for all
	Waiting int `json:"waiting"` // fetches of other processes that are waited for

	Claims map[string]uint64 `json:"claims"` // by what became of them
	Waits  map[string]uint64 `json:"waits"`  // by how they ended

	Losses    uint64 `json:"losses"`    // times that Redis went away
	Histories uint64 `json:"histories"` // times that it came back with another history
	// Position is up to where all invalidations are applied; Pending are those that
	// Redis has yet to be told.
	Position uint64 `json:"position"`
	Pending  int    `json:"pending"`

	Circuit Circuit           `json:"circuit"`
	Errors  map[string]uint64 `json:"errors"`  // of commands, by kind
	Refused map[string]uint64 `json:"refused"` // answers not believed, by reason
}

// Replica is one process of the fleet, as Redis knows it.
type Replica struct {
	Name          string  `json:"name"`
	Alive         bool    `json:"alive"`
	SilentSeconds float64 `json:"silentSeconds"`
	Position      uint64  `json:"position"` // up to where it had applied all invalidations
	Current       bool    `json:"current"`  // in the present history of Redis
}

// Circuit is the state of what keeps a Redis in trouble from slowing requests.
type Circuit struct {
	// State is closed, or open: Redis is left alone.
	State   string `json:"state"`
	Nodes   int    `json:"nodes"`
	Open    int    `json:"open"`
	Opened  uint64 `json:"opened"`  // times that it opened
	Refused uint64 `json:"refused"` // commands that were not sent
	Slow    uint64 `json:"slow"`    // commands that took too long
}

// ReplicaOf returns what is shown of a replica.
func ReplicaOf(r *fleet.Replica, alive bool) Replica {
	return Replica{
		Name: r.Name, Alive: alive, SilentSeconds: r.SilentFor.Seconds(), Position: r.Applied, Current: r.Current,
	}
}
