package feed

import (
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// Policy is one CachePolicy: resource "policy/<namespace>/<name>". Only policies that
// cachepolicy.Validate accepts are sent.
type Policy struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	// Spec is what the user wrote, without targetRefs. The data plane merges and
	// compiles: a Gateway's policy is sent once, however many routes it covers.
	Spec v1alpha1.CachePolicySpec `json:"spec"`
	// Empty are the lists of the spec that are there and empty, which its JSON leaves
	// out. Encode sets it, Decode takes it into the spec.
	Empty []string `json:"empty,omitempty"`
}

// Route is what policies are in force on of one route object: resource
// "route/<kind>/<namespace>/<name>", with the kind in lower case.
type Route struct {
	Kind      string `json:"kind"` // HTTPRoute | VirtualService
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Rules     []Rule `json:"rules"`
}

// Rule is one rule of a route.
type Rule struct {
	// Policies are the names (namespace/name) of the policies in force on the rule,
	// the least specific first: they are merged in this order (Gateway, Gateway
	// listener, route, rule). The last one names the merged policy. Empty: none is in
	// force, and its requests pass: such a rule is there so that none less specific
	// takes them.
	Policies []string `json:"policies"`
	// Scope is the first part of every cache key made under the rule: namespace and
	// name of the route and a hash of the rule's matches. It is the identity of the
	// rule too (metadata x-weir-scope), and does not move when rules are reordered
	// or a policy is renamed.
	Scope string `json:"scope"`
	// EnvoyRoutes are the names that Envoy may give the rule's routes
	// (xds.route_name). One that ends in "/*" stands for all names with that prefix.
	EnvoyRoutes []string `json:"envoyRoutes,omitempty"`
	// Hosts and Matches are the rule's own, for requests that say neither policy nor
	// route: all pairs are compared by the order of the Gateway API. No hosts: every
	// host. No matches: every path.
	Hosts   []string `json:"hosts,omitempty"`
	Matches []Match  `json:"matches,omitempty"`
	// Created orders rules of different routes that match equally well: Unix seconds
	// of the route's creation, then namespace/name, then the rule's place.
	Created int64 `json:"created,omitempty"`
	// Entrances name the Entrance resources through which a detached fetch may come
	// back into the Gateway. Empty where none is possible: behind authentication, in
	// a sidecar, where the listener wants client certificates. The winner carries
	// the fetch then.
	Entrances []string `json:"entrances,omitempty"`
	// MessageTimeoutMillis is what the ext_proc filter on the rule is configured
	// with, and MaxMessageTimeoutMillis what it may be extended to; 0: as the flags
	// --envoy-message-timeout and --envoy-max-message-timeout say.
	MessageTimeoutMillis    int64 `json:"messageTimeoutMillis,omitempty"`
	MaxMessageTimeoutMillis int64 `json:"maxMessageTimeoutMillis,omitempty"`
}

// Match is a match of a rule as the Gateway API has it: all that is said must hold.
type Match struct {
	Path    *PathMatch   `json:"path,omitempty"` // nil: every path
	Method  string       `json:"method,omitempty"`
	Headers []ValueMatch `json:"headers,omitempty"`
	Query   []ValueMatch `json:"query,omitempty"`
}

// PathMatch matches a path.
type PathMatch struct {
	Type  string `json:"type"` // Exact | PathPrefix | RegularExpression
	Value string `json:"value"`
}

// ValueMatch matches a header field or a query parameter.
type ValueMatch struct {
	Type  string `json:"type"` // Exact | RegularExpression
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Entrance is where detached fetches enter a Gateway: resource
// "entrance/<namespace>/<gateway>/<listener>".
type Entrance struct {
	Namespace string `json:"namespace"`
	Gateway   string `json:"gateway"`
	Listener  string `json:"listener"`
	Address   string `json:"address"` // host:port
	Scheme    string `json:"scheme"`  // http | https: of the requests that come in here
	// Hosts are what the listener serves, "*.example" stands for all names under it;
	// none: every host. For another host Envoy would answer 404 here.
	Hosts []string `json:"hosts,omitempty"`
	// CA is the PEM of the certificates that the listener's is verified against; no
	// CA with https: the system's. The server name is the request's host.
	CA string `json:"ca,omitempty"`
}
