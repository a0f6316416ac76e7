// Package v1alpha1 holds the API types of the group weir.dev.
//
// No inheritable field has a schema default: every leaf is optional, so that the
// policies of a Gateway and of a route can be merged leaf by leaf. What a field
// means when no policy sets it is said in package cachepolicy, which is also the
// authority on what is valid.
//
// +kubebuilder:object:generate=true
// +groupName=weir.dev
package v1alpha1
