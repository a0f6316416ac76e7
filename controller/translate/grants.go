package translate

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// From is where a reference across namespaces comes from.
type From struct{ Group, Kind, Namespace string }

// Permitted reports whether a reference to the object of that group and kind may be
// made: within a namespace always, across namespaces if a ReferenceGrant in that of the
// object says so.
func Permitted(grants []*gatewayv1.ReferenceGrant, from From, group, kind string, to types.NamespacedName) bool {
	if from.Namespace == to.Namespace {
		return true
	}
	return slices.ContainsFunc(grants, func(g *gatewayv1.ReferenceGrant) bool {
		return g.Namespace == to.Namespace &&
			slices.ContainsFunc(g.Spec.From, func(f gatewayv1.ReferenceGrantFrom) bool {
				return From{string(f.Group), string(f.Kind), string(f.Namespace)} == from
			}) &&
			slices.ContainsFunc(g.Spec.To, func(t gatewayv1.ReferenceGrantTo) bool {
				return string(t.Group) == group && string(t.Kind) == kind && (t.Name == nil || string(*t.Name) == to.Name)
			})
	})
}
