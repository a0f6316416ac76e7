package admin

import (
	"time"

	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/policydir"
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

	Invalidations fleet.StampStats `json:"invalidations"`
	Limits        Limits           `json:"limits"`
}

// PolicyStatus says which policies are in use and what stands in their way.
type PolicyStatus struct {
	Directory string `json:"directory"`
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
	Running int    `json:"running"`
}

// Limits are the bounds the process works within.
type Limits struct {
	MemoryBytes            int64  `json:"memoryBytes"`
	GoMemoryBytes          int64  `json:"goMemoryBytes,omitempty"` // GOMEMLIMIT; 0: none
	EnvoyMessageTimeout    string `json:"envoyMessageTimeout"`
	EnvoyMaxMessageTimeout string `json:"envoyMaxMessageTimeout"`
}
