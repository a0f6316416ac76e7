package admin

import (
	"time"

	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/policydir"
	"github.com/weirproxy/weir/extproc/warm"
)

// Status is what GET /v1/status answers: what the process holds and does at
// this moment.
type Status struct {
	Version   string    `json:"version"`
	StartTime time.Time `json:"startTime"`
	// State is starting, ready or draining.
	State string `json:"state"`

	Policies PolicyStatus `json:"policies"`

	Streams int64       `json:"streams"` // open ext_proc streams
	Waiting int64       `json:"waiting"` // held requests
	Flights FlightCount `json:"flights"`
	Store   StoreStatus `json:"store"`
	Refills Refills     `json:"refills"`
	// Origins are the fetches of the policies that have some, or had more than
	// originLimits let through; the first thousand.
	Origins []Origin `json:"origins,omitempty"`
	// Warm are the last warm-up jobs, oldest first.
	Warm []warm.Job `json:"warm,omitempty"`
	// HotKeys is how many keys are known by name as often read (/v1/top).
	HotKeys int `json:"hotKeys"`

	Invalidations fleet.StampStats `json:"invalidations"`
	Fleet         *FleetStatus     `json:"fleet,omitempty"` // with --redis-url
	Limits        Limits           `json:"limits"`
}

// PolicyStatus says which policies are in use and what stands in their way.
type PolicyStatus struct {
	Directory string      `json:"directory,omitempty"`
	Feed      *FeedStatus `json:"feed,omitempty"` // under a controller
	// Generation grows each time a changed set is taken into use.
	Generation uint64    `json:"generation"`
	LoadedAt   time.Time `json:"loadedAt,omitzero"`
	Count      int       `json:"count"`
	InUse      []Policy  `json:"inUse"` // one for each route; the first thousand
	// Errors are faults of the files as they are now. While there are any, the set
	// in use is the last good one.
	Errors []policydir.FileError `json:"errors,omitempty"`
}

// Policy is one policy in use.
type Policy struct {
	Name  string `json:"name"` // namespace/name
	Mode  string `json:"mode"`
	Route string `json:"route,omitempty"` // what it is attached to
	Scope string `json:"scope,omitempty"` // of its keys
	// Layers are the policies that it is merged of, the least specific first; none: it
	// is one policy.
	Layers []string `json:"layers,omitempty"`
}

// FeedStatus is what the process has from its controller.
type FeedStatus struct {
	Controller string `json:"controller"` // --controller-address
	// Connected: one of its replicas is subscribed to, at Address since ConnectedAt. If
	// not, what was in force last stays.
	Connected   bool      `json:"connected"`
	Address     string    `json:"address,omitempty"`
	ConnectedAt time.Time `json:"connectedAt,omitzero"`
	// AgeSeconds is since when the policies are what they are.
	AgeSeconds float64 `json:"ageSeconds"`
	// Synced: the controller has said all once. Before, requests pass by.
	Synced bool `json:"synced"`
	// Resources are in force as they came; Rejected are not, Errors say why not of the
	// first hundred.
	Resources int               `json:"resources"`
	Rejected  int               `json:"rejected"`
	Errors    []RefusedResource `json:"errors,omitempty"`
	// Reporting is the number of the controller's replicas that hear what runs here.
	Reporting int    `json:"reporting"`
	Failures  uint64 `json:"failures"` // subscriptions that broke or could not be made
	LastError string `json:"lastError,omitempty"`
}

// RefusedResource is a resource of the controller that is not in force as it came.
type RefusedResource struct {
	Resource string `json:"resource"`
	Error    string `json:"error"`
}

// FlightCount is what coalescing holds. All of it is zero when nothing is asked.
type FlightCount struct {
	Flights int `json:"flights"` // fetches that others may follow
	Waiters int `json:"waiters"` // requests that follow one
	Marks   int `json:"marks"`   // keys that are not coalesced for the moment
}

// StoreStatus is what the memory store holds.
type StoreStatus struct {
	Bytes      int64             `json:"bytes"`
	LimitBytes int64             `json:"limitBytes"`
	Entries    int64             `json:"entries"`
	Evictions  map[string]uint64 `json:"evictions"` // by reason, since the start
	Rejected   uint64            `json:"rejected"`  // answers that were not admitted
}

// Refills is the state of detached fetches.
type Refills struct {
	// Address is where they enter Envoy; empty: none are possible.
	Address string `json:"address,omitempty"`
	// Entrances is how many places the controller names instead.
	Entrances int `json:"entrances,omitempty"`
	Running   int `json:"running"`
}

// Origin is what originLimits and the ramp do for one policy.
type Origin struct {
	Policy  string `json:"policy"`
	Running int    `json:"running"` // fetches at the origin
	Queued  int    `json:"queued"`  // fetches that wait for their turn
	Refused uint64 `json:"refused"` // fetches there was no room for, since the start
	// RampPerSecond is how many fetches a second are let through after a cold start;
	// 0: no ramp, or it is over.
	RampPerSecond float64 `json:"rampPerSecond,omitempty"`
}

// Limits are the bounds the process works within.
type Limits struct {
	MemoryBytes            int64  `json:"memoryBytes"`
	GoMemoryBytes          int64  `json:"goMemoryBytes,omitempty"` // GOMEMLIMIT; 0: none
	EnvoyMessageTimeout    string `json:"envoyMessageTimeout"`
	EnvoyMaxMessageTimeout string `json:"envoyMaxMessageTimeout"`
}
