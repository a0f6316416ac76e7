package translate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// Input is what there is in the cluster. The order of the objects does not matter,
// and none of them is changed.
type Input struct {
	CachePolicies   []*v1alpha1.CachePolicy
	GatewayClasses  []*gatewayv1.GatewayClass
	Gateways        []*gatewayv1.Gateway
	HTTPRoutes      []*gatewayv1.HTTPRoute
	ReferenceGrants []*gatewayv1.ReferenceGrant
	// Namespaces are needed for their labels, where a listener's allowedRoutes selects
	// by them. A namespace that is not here has no labels.
	Namespaces []*corev1.Namespace
	// VirtualServices and ClassicGateways are Istio's own kinds of routes and Gateways.
	VirtualServices []*VirtualService
	ClassicGateways []*ClassicGateway
	// Services are needed where routes have Services as parents (mesh).
	Services []*corev1.Service

	// Controllers are the implementations of the Gateway API to whose Gateways the
	// filter can be attached. Empty (--attach=none): any, the user attaches.
	Controllers []Controller
	// Guards are what the attachments know of what stands before or behind the filter.
	Guards []Guard
	// Addresses are where listeners are reached, where an attachment knows better than
	// the Gateway's status does.
	Addresses []Address
	// Certificates are the PEM of what a listener's certificate can be verified
	// against, by Secret: its ca.crt, or else its tls.crt. Of Secrets that are not here
	// the system's roots are believed.
	Certificates map[types.NamespacedName][]byte
}

// Controller is an implementation of the Gateway API that an attachment handles.
type Controller struct {
	// Name is a GatewayClass's spec.controllerName.
	Name string
	// Attachment is its word in --attach: envoy-gateway, istio.
	Attachment string
	// RouteNames says how it names its routes in Envoy.
	RouteNames RouteNames
	// Refusal is why nothing can be attached to its Gateways: a full sentence, empty if
	// something can.
	Refusal string
	// Mesh: it serves routes whose parent is a Service, too.
	Mesh bool
	// HoldMargin: the filter's message timeout is the longest wait of the rule's merged
	// policy plus this, and cannot be extended. 0: as MessageTimeout says.
	HoldMargin time.Duration
	// MessageTimeout and MaxMessageTimeout are what the filter is configured with, the
	// same on every route. 0: as the data plane's flags say.
	MessageTimeout, MaxMessageTimeout time.Duration
}

// RouteNames says whether xds.route_name is an identity, and which.
type RouteNames string

// The ways in which routes are named.
const (
	// RouteNamesNone: a route's name does not tell what it comes from.
	RouteNamesNone RouteNames = ""
	// RouteNamesEnvoyGateway: httproute/<namespace>/<name>/rule/<i>/match/<j>/<host>.
	RouteNamesEnvoyGateway RouteNames = "EnvoyGateway"
)

// Target is what a policy or a Guard points at.
type Target struct {
	Kind        string // Gateway | HTTPRoute | VirtualService | Service
	Namespace   string
	Name        string
	SectionName string // a listener's or rule's name; empty: all of it
}

// Guard is what an attachment learned of one target: of the policies of others on it,
// as a rule. Where several of a class hold for a rule at a Gateway, the most specific
// ones decide alone (rule, route, listener, Gateway), as a SecurityPolicy of Envoy
// Gateway replaces the less specific one; an empty Guard so lifts those above it.
type Guard struct {
	Target Target
	// Class is what it comes from (SecurityPolicy, say). Guards of one class do not lift
	// those of another.
	Class string
	// Controller: it only holds at Gateways whose class has this controllerName; empty:
	// everywhere.
	Controller string
	// Inherits: what less specific Guards say holds beside this one.
	Inherits bool
	// RefuseReason, if not empty, refuses the target: no policy is in force on it. It
	// is the reason of Accepted, and RefuseMessage its message, full sentences.
	RefuseReason, RefuseMessage string
	// Note is said in Accepted's message where a policy is in force. A full sentence.
	Note string
	// NoDetachedFetch: a fetch of weir's own would not come through here, as behind
	// authentication or where client certificates are asked for.
	NoDetachedFetch bool
}

// Address is where a listener of a Gateway is reached from within the cluster. Of
// several for the same listeners None beats the others.
type Address struct {
	Gateway  types.NamespacedName
	Listener string // empty: all listeners
	Host     string // a name or IP address; the port is the listener's, unless Port says else
	Port     int32
	// None: there is no way in from here. It beats the Gateway's status.
	None bool
}

// Output is what is to be served, attached and said. Everything in it is sorted, and
// shares no memory with the Input that is written later.
type Output struct {
	// Policies, Routes and Entrances are the feed, sorted by resource name. All of it
	// decodes and compiles: what does not is told in Verdicts instead.
	Policies  []feed.Policy
	Routes    []feed.Route
	Entrances []feed.Entrance
	// Verdicts has one of each CachePolicy of the Input, by namespace and name.
	Verdicts []Verdict
	// Affected are the objects on which policies are in force, for the condition
	// weir.dev/CachePolicyAffected.
	Affected []Affected
	// Attached has one for each rule and listener (or Service) at which a policy is in
	// force.
	Attached []Attachment
}

// Condition is a condition as it is to be written; type, time and generation are the
// writer's.
type Condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Override says how far other policies supersede a policy at an ancestor.
type Override string

// The extents of an Override.
const (
	OverrideNone    Override = ""
	OverridePartial Override = "Partial" // Programmed is True with reason PartiallyProgrammed
	OverrideFull    Override = "Full"    // Programmed is False with reason Overridden
)

// Verdict is what is to be said of one CachePolicy.
type Verdict struct {
	Policy     types.NamespacedName
	Generation int64
	// Ancestors are at most MaxAncestors, the most important first: not accepted,
	// overridden, the rest; then by name. A writer that has room for fewer, for there
	// are entries of other controllers, drops the last ones.
	Ancestors []Ancestor
	// Omitted is the number of ancestors beyond MaxAncestors. The last message says so.
	Omitted int
}

// MaxAncestors bounds status.ancestors, as the Gateway API does.
const MaxAncestors = 16

// Ancestor is what is to be said of a policy at one ancestor: a Gateway; a Service for
// mesh routes; the target itself where it has no parent or does not exist.
type Ancestor struct {
	Ref gatewayv1.ParentReference // all of group, kind, namespace and name are set
	// Accepted and ResolvedRefs are to be written as they are.
	Accepted, ResolvedRefs Condition
	// Override and OverrideMessage decide over Programmed, which is absent unless
	// Accepted is True.
	Override        Override
	OverrideMessage string
	// Resources are the names in the feed that every replica must run for Programmed:
	// the policy and the routes that it is in force on at this ancestor, sorted.
	Resources []string
	// Controller is the Gateway's class's controllerName; empty: not a known Gateway.
	Controller string
}

// Affected is an object on which policies are in force.
type Affected struct {
	Kind       string // Gateway | HTTPRoute | VirtualService
	Namespace  string
	Name       string
	Generation int64
	// Policies are namespace/name, sorted. Policies that a Gateway's routes have, but
	// the Gateway itself has not, are not of the Gateway.
	Policies []string
	// Parents are, for a route, the parentRefs at which they are in force.
	Parents []gatewayv1.ParentReference
}

// Layer is a policy in force, and by which of its targets.
type Layer struct {
	Policy string // namespace/name
	Target Target
}

// Attachment is a rule at a listener of a Gateway, or at a Service, on which a policy
// is in force.
type Attachment struct {
	// Route is the route object: a Target without section.
	Route Target
	// RuleIndex is the rule's place in spec.rules, and RuleName its name, if it has one.
	RuleIndex int
	RuleName  string
	// EnvoyNames are what the rule's routes are called in Envoy, where the rule's name
	// alone does not tell (VirtualService).
	EnvoyNames []string
	// Matches are the rule's. None: every request.
	Matches []feed.Match
	// Hosts are what the route's hostnames and the listener's have in common. None:
	// every host.
	Hosts []string
	// Layers are the policies that claim the rule here, the least specific first, and by
	// which of their targets: all of these are the rule, the route, the listener or the
	// Gateway of this Attachment. They are in force, unless the rule has other policies
	// at an older Gateway or a listener before: then those are, as the feed says of the
	// Scope, and Ancestor.Override says so. Scope tells the data plane which hold.
	Layers []Layer
	Scope  string

	// Parent is the Gateway or Service.
	Parent gatewayv1.ParentReference
	// Listener, Port and Protocol are the listener's, or of Services the port.
	Listener string
	Port     int32
	Protocol gatewayv1.ProtocolType
	// Class is the GatewayClass and Controller its spec.controllerName; empty for a
	// Service.
	Class, Controller string

	// LongestWait is for how long the merged policy may hold a request.
	LongestWait time.Duration
}
