// Package controller is weir-controller: it watches CachePolicies, Gateways and routes,
// says what they mean together (package translate), serves that to the data plane
// (package feed) and, on the elected replica, attaches the filter (package attach) and
// writes status (package status).
//
// Every replica watches, translates and serves, so that the data plane can ask any; only
// the elected one writes. What the data plane serves does not depend on any of them
// being there.
package controller
