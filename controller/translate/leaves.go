package translate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// leaves is a set of the leaves of a spec, a bit for each, in the order of the API: the
// units in which policies are merged.
type leaves uint64

// leavesOf returns the leaves that a spec sets, targetRefs aside.
func leavesOf(spec *v1alpha1.CachePolicySpec) leaves {
	s := *spec
	s.TargetRefs = nil
	var set leaves
	bit := 0
	gather(reflect.ValueOf(s), &set, &bit)
	return set
}

// gather goes through a block whether it is set or not, so that each leaf keeps its bit.
func gather(block reflect.Value, set *leaves, bit *int) {
	for _, field := range block.Fields() {
		if elem := field.Type(); elem.Kind() == reflect.Pointer && isBlock(elem.Elem()) {
			if field.IsNil() {
				gather(reflect.Zero(elem.Elem()), set, bit)
			} else {
				gather(field.Elem(), set, bit)
			}
			continue
		}
		if !field.IsNil() {
			*set |= 1 << *bit
		}
		*bit++
	}
}

func isBlock(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[resource.Quantity]()
}
