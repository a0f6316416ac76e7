// Package translate says what CachePolicies mean for the routes of a cluster: which
// policy is in force on which rule of which route, what the data plane is told, what
// is to be attached where, and what each policy's status has to say.
//
// It is pure: the same objects, in whatever order, give the same Output. It reads
// neither clock nor cluster, and knows nothing of how a filter is attached: what that
// changes here is told by Controller, Guard and Address.
package translate
