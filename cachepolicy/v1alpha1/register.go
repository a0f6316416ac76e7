package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of weir's resources.
const GroupName = "weir.dev"

// Version is the API version of this package.
const Version = "v1alpha1"

// Kind is the kind of a CachePolicy resource.
const Kind = "CachePolicy"

// InvalidationKind is the kind of a CacheInvalidation resource.
const InvalidationKind = "CacheInvalidation"

// GroupVersion returns the group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	gv := GroupVersion()
	scheme.AddKnownTypes(gv, &CachePolicy{}, &CachePolicyList{}, &CacheInvalidation{}, &CacheInvalidationList{})
	metav1.AddToGroupVersion(scheme, gv)
	return nil
}
