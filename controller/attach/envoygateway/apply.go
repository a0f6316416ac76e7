package envoygateway

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/controller/attach"
)

// errForeign says that an object of the name exists which weir did not write.
var errForeign = errors.New("the object is not managed by weir-controller")

// apply writes the object by server-side apply, unless there says all of it already.
// there is what the cache has of ours; nil: nothing.
func apply(ctx context.Context, c client.Client, want, there *unstructured.Unstructured) error {
	if there != nil && says(there.Object["spec"], want.Object["spec"]) &&
		says(there.Object["metadata"], want.Object["metadata"]) {
		return nil
	}
	id := fmt.Sprintf("%s %s/%s", want.GetKind(), want.GetNamespace(), want.GetName())
	if there == nil {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(want.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(want), found)
		if err == nil && !isOurs(found) {
			return fmt.Errorf("%s: %w", id, errForeign)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	configuration := client.ApplyConfigurationFromUnstructured(want)
	if err := c.Apply(ctx, configuration, attach.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s: %w", id, err)
	}
	return nil
}

// says reports whether there has all that want has. A list is one value. What the API
// server filled in by default, and what others added, does not matter.
func says(there, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		t, ok := there.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range w {
			if !says(t[key], value) {
				return false
			}
		}
		return true
	case []any:
		t, ok := there.([]any)
		if !ok || len(t) != len(w) {
			return false
		}
		for i := range w {
			if !says(t[i], w[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(there, want)
	}
}

func toUnstructured(o any, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}
