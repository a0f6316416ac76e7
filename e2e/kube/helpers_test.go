package kube_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// object returns an object of weir.dev/v1alpha1 with the spec as its author wrote it.
func object(kind, namespace string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "weir.dev/v1alpha1", "kind": kind,
		"metadata": map[string]any{"generateName": "case-", "namespace": namespace},
		"spec":     spec,
	}}
}

func policy(namespace string, spec map[string]any) *unstructured.Unstructured {
	return object("CachePolicy", namespace, spec)
}

// dryRun has the server say what it would do, and do nothing.
var dryRun = client.DryRunAll

func decode(t *testing.T, path, document string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return o
}

// readYAML reads a table of cases.
func readYAML[T any](t *testing.T, path string) T {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out
}

// largestPolicy is a spec in which every list is full and every name as long as it may be.
func largestPolicy() string {
	list := func(n, length int, format string) string {
		items := make([]string, n)
		for i := range items {
			name := fmt.Sprintf("%03d", i)
			items[i] = fmt.Sprintf(format, name+strings.Repeat("x", length-len(name)))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	statuses := make([]string, 32)
	for i := range statuses {
		statuses[i] = fmt.Sprintf(`{status: "%d", ttl: 00001h00001m00001s00001ms}`, 400+i)
	}
	return fmt.Sprintf("targetRefs: %s\nnegativeTTL: [%s]\nkey: {query: {names: %s}, headers: %s, cookies: %s}\n",
		list(16, 253, "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: %s, sectionName: "+
			strings.Repeat("s", 253)+"}"),
		strings.Join(statuses, ", "),
		list(64, 256, "{type: Prefix, value: %s}"), list(16, 256, "x%.255s"), list(16, 256, "c%.255s"))
}
