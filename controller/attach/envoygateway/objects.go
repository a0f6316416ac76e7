package envoygateway

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// maxParallelRequests bounds the streams to the data plane from one Envoy. A held
// request is one, so it is far above the 1024 that Envoy assumes; the data plane's own
// bound is coalescing.maxWaiters.
const maxParallelRequests = 100_000

// extensionPolicy returns the EnvoyExtensionPolicy as it is applied.
//
// What it says of the filter: fail open; headers are sent, bodies only where the data
// plane asks for them; a route's name is its identity; a stream whose replica is gone
// before it answered goes to another one.
func extensionPolicy(key objectKey, o *object, w *attach.Wanted) *unstructured.Unstructured {
	dataPlane := w.DataPlane
	extProc := map[string]any{
		"backendRefs": []any{map[string]any{
			"group": "", "kind": "Service", "name": dataPlane.Service.Name, "namespace": dataPlane.Service.Namespace,
			"port": int64(dataPlane.Port),
		}},
		"failOpen":       true,
		"messageTimeout": fmt.Sprintf("%dms", (o.longest + holdMargin).Milliseconds()),
		"processingMode": map[string]any{
			"allowModeOverride": true,
			"request":           map[string]any{"attributes": []any{"xds.route_name"}},
			"response":          map[string]any{"attributes": []any{"response.code_details"}},
		},
		"metadata": map[string]any{"writableNamespaces": []any{"weir"}},
		"backendSettings": map[string]any{
			"circuitBreaker": map[string]any{
				"maxParallelRequests": int64(maxParallelRequests), "maxPendingRequests": int64(maxParallelRequests),
			},
			"healthCheck": map[string]any{
				"active": map[string]any{
					"type": "GRPC", "grpc": map[string]any{}, "interval": "3s", "timeout": "1s",
					"unhealthyThreshold": int64(2), "healthyThreshold": int64(1),
				},
				// With most replicas gone, requests go to those that are left, or past the
				// cache: not to dead ones, which cost each the whole message timeout.
				"panicThreshold": int64(0),
			},
			"retry": map[string]any{
				"numRetries": int64(1),
				"retryOn":    map[string]any{"triggers": []any{"connect-failure", "refused-stream", "reset", "unavailable"}},
			},
		},
	}
	spec := map[string]any{"targetRefs": references(o.targets), "extProc": []any{extProc}}
	if key.name == nameRoutes {
		spec["mergeType"] = "StrategicMerge"
	}
	var refs []any
	for _, policy := range o.owners {
		if owner, ok := w.Owners[policy]; ok && w.Release == nil {
			refs = append(refs, ownerReference(owner))
		}
	}
	if w.Release != nil {
		refs = []any{ownerReference(*w.Release)}
	}
	return generated(gvk(kindExtensionPolicy), key.namespace, key.name, refs, spec)
}

func references(targets []translate.Target) []any {
	refs := make([]any, len(targets))
	for i, t := range targets {
		ref := map[string]any{"group": gatewayv1.GroupName, "kind": t.Kind, "name": t.Name}
		if t.SectionName != "" {
			ref["sectionName"] = t.SectionName
		}
		refs[i] = ref
	}
	return refs
}

// referenceGrant lets EnvoyExtensionPolicies of a namespace name the data plane's
// Service. It goes with the Service.
func referenceGrant(namespace string, dataPlane attach.DataPlane) *unstructured.Unstructured {
	owner := metav1.OwnerReference{
		APIVersion: "v1", Kind: "Service", Name: dataPlane.Service.Name, UID: dataPlane.UID,
	}
	return generated(grantGVK(), dataPlane.Service.Namespace, grantPrefix+namespace, []any{ownerReference(owner)},
		map[string]any{
			"from": []any{map[string]any{"group": group, "kind": kindExtensionPolicy, "namespace": namespace}},
			"to":   []any{map[string]any{"group": "", "kind": "Service", "name": dataPlane.Service.Name}},
		})
}

func ownerReference(o metav1.OwnerReference) map[string]any {
	return map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": string(o.UID)}
}

func generated(kind schema.GroupVersionKind, namespace, name string, owners []any,
	spec map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{
		"namespace": namespace, "name": name,
		"labels": map[string]any{labelManagedBy: attach.ManagedBy, labelPartOf: "weir"},
	}
	if len(owners) > 0 {
		metadata["ownerReferences"] = owners
	}
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata, "spec": spec}}
	o.SetGroupVersionKind(kind)
	return o
}
