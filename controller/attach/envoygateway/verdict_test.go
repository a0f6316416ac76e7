package envoygateway

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weirproxy/weir/controller/attach"
)

// TestVerdict holds what is read from the status that Envoy Gateway writes.
func TestVerdict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, ancestors string
		want            attach.State
	}{
		{"no status", "", attach.Pending},
		{"accepted", `{ancestorRef: {name: public, namespace: infra}, controllerName: C, conditions: [A2]}`, attach.Attached},
		{"accepted at the listener", `{ancestorRef: {name: public, namespace: infra, sectionName: http}, controllerName: C, conditions: [A2]}`, attach.Attached},
		{"accepted at another listener", `{ancestorRef: {name: public, namespace: infra, sectionName: x}, controllerName: C, conditions: [A2]}`, attach.Pending},
		{"accepted elsewhere", `{ancestorRef: {name: public, namespace: x}, controllerName: C, conditions: [A2]}`, attach.Pending},
		{"accepted before", `{ancestorRef: {name: public, namespace: infra}, controllerName: C, conditions: [A1]}`, attach.Pending},
		{"by somebody else", `{ancestorRef: {name: public, namespace: infra}, controllerName: x/y, conditions: [A2]}`, attach.Pending},
		{"refused", `{ancestorRef: {name: public, namespace: infra}, controllerName: C, conditions: [R2]}`, attach.Blocked},
		{"left out of too many", `{ancestorRef: {name: x, namespace: infra}, controllerName: C, conditions: [A2, G]}`, attach.Attached},
	}
	words := strings.NewReplacer("controllerName: C", "controllerName: "+controllerName,
		"A2", `{type: Accepted, status: "True", observedGeneration: 2}`, "A1", `{type: Accepted, status: "True", observedGeneration: 1}`,
		"R2", `{type: Accepted, status: "False", observedGeneration: 2, message: Because.}`, "G", `{type: Aggregated, status: "True"}`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := parse(t, "metadata: {namespace: shop, name: weir-routes}\nstatus: {ancestors: ["+words.Replace(tt.ancestors)+"]}\n")[0]
			o.SetGeneration(2)
			a := attachment(onRoute)
			if got := readStatus(objectKey{"shop", nameRoutes}, o).verdict(&a); got.State != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
	a := attachment(onRoute)
	if got := readStatus(objectKey{"shop", nameRoutes}, nil).verdict(&a); got.State != attach.Pending {
		t.Errorf("without the object: %+v", got)
	}
}

// TestSays holds which differences between what is there and what is wanted are written.
func TestSays(t *testing.T) {
	t.Parallel()
	want := map[string]any{"a": map[string]any{"b": int64(1)}, "l": []any{map[string]any{"x": "y"}}}
	tests := []struct {
		name  string
		there map[string]any
		want  bool
	}{
		{"the same", map[string]any{"a": map[string]any{"b": int64(1)}, "l": []any{map[string]any{"x": "y"}}}, true},
		{"defaults beside", map[string]any{"a": map[string]any{"b": int64(1), "d": 2}, "l": []any{map[string]any{"x": "y", "weight": 1}}}, true},
		{"another value", map[string]any{"a": map[string]any{"b": int64(2)}, "l": []any{map[string]any{"x": "y"}}}, false},
		{"a longer list", map[string]any{"a": map[string]any{"b": int64(1)}, "l": []any{map[string]any{"x": "y"}, "z"}}, false},
		{"nothing", nil, false},
		{"another type", map[string]any{"a": "b", "l": "c"}, false},
	}
	for _, tt := range tests {
		if got := says(tt.there, want); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if says((*unstructured.Unstructured)(nil), want) {
		t.Error("no object says it")
	}
}
