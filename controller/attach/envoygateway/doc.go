// Package envoygateway attaches the filter to the Gateways of Envoy Gateway, by
// EnvoyExtensionPolicies.
//
// Of these there are at most two in a namespace, each with many targets, since each
// adds a filter to every listener it reaches: one for Gateways and listeners, and one
// for routes and rules, which is merged into the user's EnvoyExtensionPolicy on the
// Gateway above (mergeType), so that it does not silence it.
//
// Envoy Gateway runs JWT, API keys, basic authentication, OIDC and ext_auth before
// ext_proc, and RBAC (authorization) and rate limits after it. So a target with
// authorization is refused, and what stands behind authentication gets no detached
// fetch.
package envoygateway
