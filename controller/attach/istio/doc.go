// Package istio attaches the filter to Istio's proxies: those of Gateways of class istio, of the classic Gateways of
// networking.istio.io, and the sidecars of callers in the mesh.
//
// The means is the EnvoyFilter, which patches what istiod sends to Envoy: it puts the filter before the router, off,
// and turns it on for the routes on which a policy is in force. Each such patch names the policy and the rule in gRPC
// metadata, since Istio's route names are no identities: a named rule's route is called just that, in whatever
// HTTPRoute and namespace it stands. So a patch is matched by virtual host and route name, and a rule that these two
// do not tell apart from another is refused.
//
// An EnvoyFilter works in its proxy's namespace, or in Istio's root namespace for all. Neither need be a policy's,
// whose owner reference could not reach there. What is written here carries labels by which it is found again, and
// belongs to a cluster-scoped object of the release: what removes weir removes it, also where the controller is gone.
package istio
