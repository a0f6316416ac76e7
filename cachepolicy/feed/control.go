package feed

// Report is what a replica of the data plane says: a message on the stream from it.
// The first ones say all, the later ones what changed. At most MaxReported resources
// are in one message.
type Report struct {
	// Replica names it (the pod's name); Version is the release it runs. In the
	// first message only. Started tells a process from the one of the same name before
	// it: when it began, in Unix nanoseconds.
	Replica string `json:"replica,omitempty"`
	Version string `json:"version,omitempty"`
	Started int64  `json:"started,omitempty"`
	// Running are resources by name and the version (of xDS) that the replica runs
	// them in; an empty version: no longer.
	Running map[string]string `json:"running,omitempty"`
	// Rejected are resources that the replica does not run as they were sent; an
	// empty Error: no longer so.
	Rejected map[string]Rejection `json:"rejected,omitempty"`
	// Synced: all that was there when the stream began has been said.
	Synced bool `json:"synced,omitempty"`
	// Traffic are the counters by policy (namespace/name) since the replica started,
	// of policies whose counters moved.
	Traffic map[string]Traffic `json:"traffic,omitempty"`
	// Result answers a Command.
	Result *Result `json:"result,omitempty"`
}

// Bounds of a Report.
const (
	MaxReported   = 2000 // resources in one, and policies with traffic
	MaxErrorBytes = 1024 // of the text of one Rejection
)

// Rejection is a resource that a replica refused.
type Rejection struct {
	Version string `json:"version"`
	Error   string `json:"error,omitempty"`
}

// Traffic counts requests of clients under one policy.
type Traffic struct {
	Requests    uint64 `json:"requests"`
	Hits        uint64 `json:"hits"`        // answered from the cache, stale ones too
	Stale       uint64 `json:"stale"`       // of these, answered stale
	OriginSaved uint64 `json:"originSaved"` // hits, and followers that had their answer of another's fetch
}

// Command is what the controller asks of a replica: a message on the stream to it.
type Command struct {
	ID         string      `json:"id"`
	Invalidate *Invalidate `json:"invalidate,omitempty"`
}

// Invalidate is an invalidation, as POST /v1/invalidate of the admin API has it.
type Invalidate struct {
	By        string `json:"by"` // Url | Tag | Host | Policy | Namespace | All
	Value     string `json:"value,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Mode      string `json:"mode,omitempty"` // Hard | Soft
}

// Result is how a Command went.
type Result struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
	// Covered says what is invalid, as the data plane understood it.
	Covered string `json:"covered,omitempty"`
	// Shared: the replica told the whole fleet (over Redis), and Confirmed of Total
	// replicas have applied it; Silent are the others. Else it speaks for itself.
	Shared    bool     `json:"shared,omitempty"`
	Confirmed int      `json:"confirmed"`
	Total     int      `json:"total"`
	Silent    []string `json:"silent,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}
