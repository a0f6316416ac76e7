package kube_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// created makes the policy catalog for the HTTPRoute catalog.
func created(t *testing.T, namespace string) *v1alpha1.CachePolicy {
	t.Helper()
	p := &v1alpha1.CachePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "catalog", Namespace: namespace},
		Spec: v1alpha1.CachePolicySpec{
			Mode: new(v1alpha1.Mode("Shadow")),
			TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
					Group: gatewayv1.GroupName, Kind: "HTTPRoute", Name: "catalog",
				},
				SectionName: new(gatewayv1.SectionName("products")),
			}},
		},
	}
	if err := server.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// ancestor is the status of a policy at one Gateway.
func ancestor(gateway string, programmed metav1.ConditionStatus, reason string) gatewayv1.PolicyAncestorStatus {
	now := metav1.NewTime(time.Now())
	return gatewayv1.PolicyAncestorStatus{
		AncestorRef:    gatewayv1.ParentReference{Name: gatewayv1.ObjectName(gateway)},
		ControllerName: "weir.dev/controller",
		Conditions: []metav1.Condition{
			{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: now},
			{Type: "Programmed", Status: programmed, Reason: reason, LastTransitionTime: now},
		},
	}
}

// TestPrintColumns holds what kubectl get shows: of a policy that nobody has looked at, and of one with a status.
func TestPrintColumns(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	p := created(t, namespace)
	get := func(args ...string) string {
		t.Helper()
		out, err := server.Kubectl(t.Context(), "", append([]string{"get", "-n", namespace}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return columns(out)
	}
	want := "NAME | TARGET KIND | TARGET NAME | ACCEPTED | PROGRAMMED | AGE\ncatalog | HTTPRoute | catalog |  |  | AGE\n"
	if diff := cmp.Diff(want, get("cpol")); diff != "" {
		t.Errorf("without status (-want +got):\n%s", diff)
	}

	p.Status = v1alpha1.CachePolicyStatus{
		PolicyStatus: gatewayv1.PolicyStatus{Ancestors: []gatewayv1.PolicyAncestorStatus{
			ancestor("public", metav1.ConditionFalse, "Reconciling"), ancestor("private", metav1.ConditionTrue, "Programmed"),
		}},
		Traffic: &v1alpha1.CachePolicyTraffic{
			LastUpdateTime: new(metav1.NewTime(time.Now())), PeriodSeconds: 300, HitPercent: new(int32(97)),
		},
	}
	if err := server.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	want = "NAME | TARGET KIND | TARGET NAME | ACCEPTED | PROGRAMMED | AGE | SECTION | MODE | REASON | HIT %\n" +
		"catalog | HTTPRoute | catalog | True | False | AGE | products | Shadow | Reconciling | 97\n"
	if diff := cmp.Diff(want, get("cachepolicies", "-o", "wide")); diff != "" {
		t.Errorf("wide, with status (-want +got):\n%s", diff)
	}

	i := object("CacheInvalidation", namespace, map[string]any{"tag": "product-42"})
	if err := server.Client.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	want = "NAME | MODE | CONFIRMED | REPLICAS | OF | AGE | COVERED | REASON\n" + i.GetName() +
		" | Hard |  |  |  | AGE |  | \n"
	if diff := cmp.Diff(want, get("cinv", "-o", "wide")); diff != "" {
		t.Errorf("invalidation (-want +got):\n%s", diff)
	}
	for _, name := range []string{"cachepolicy.weir.dev/catalog", "cacheinvalidation.weir.dev/" + i.GetName()} {
		if got := get("weir", "-o", "name"); !strings.Contains(got, name) {
			t.Errorf("kubectl get weir shows no %s:\n%s", name, got)
		}
	}
}

// columns divides a table by | at its columns, which begin where the heads do; ages become AGE.
func columns(table string) string {
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	var starts []int
	for i := range lines[0] {
		if lines[0][i] != ' ' && (i == 0 || i > 1 && lines[0][i-2:i] == "  ") {
			starts = append(starts, i)
		}
	}
	var out strings.Builder
	for n, line := range lines {
		var cells []string
		for i, start := range starts {
			end := len(line)
			if i+1 < len(starts) {
				end = min(starts[i+1], end)
			}
			cell := strings.TrimSpace(line[min(start, end):end])
			if head := strings.TrimSpace(lines[0][start:min(start+4, len(lines[0]))]); head == "AGE" && n > 0 {
				cell = "AGE"
			}
			cells = append(cells, cell)
		}
		fmt.Fprintln(&out, strings.Join(cells, " | "))
	}
	return out.String()
}

// TestKubectlRefuses holds what an author sees: the fields that are unknown, or wrong, by name.
func TestKubectlRefuses(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	tests := []struct{ name, spec, want string }{
		{"an unknown field", "{ttl: {fallback: 60s}}", `unknown field "spec.ttl.fallback"`},
		{"an unknown block", "{cache: {}}", `unknown field "spec.cache"`},
		{"a negative lifetime", "{ttl: {default: -1s}}", `spec.ttl.default: Invalid value: "-1s"`},
		{"a lifetime above its maximum", "{ttl: {default: 2h, max: 1h}}", "default must not be above max"},
		{"no spec", "", "spec: Required value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := "apiVersion: weir.dev/v1alpha1\nkind: CachePolicy\nmetadata: {name: bad}\n"
			if tt.spec != "" {
				text += "spec: " + tt.spec + "\n"
			}
			_, err := server.Kubectl(t.Context(), text, "apply", "-n", namespace, "-f", "-")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("kubectl apply: %v, want %s", err, tt.want)
			}
		})
	}
}

// TestKubectlExplains holds that the schema carries the documentation of the fields.
func TestKubectlExplains(t *testing.T) {
	t.Parallel()
	out, err := server.Kubectl(t.Context(), "", "explain", "cachepolicy.spec.ttl.max")
	if err != nil || !strings.Contains(out, "Default 24h") {
		t.Errorf("kubectl explain: %v\n%s", err, out)
	}
}

// TestKustomizationIsWhole holds that config/crd/kustomization.yaml names every definition.
func TestKustomizationIsWhole(t *testing.T) {
	t.Parallel()
	out, err := server.Kubectl(t.Context(), "", "kustomize", "config/crd")
	files, _ := filepath.Glob("../../config/crd/weir.dev_*.yaml")
	if got := strings.Count(out, "\nkind: CustomResourceDefinition\n"); err != nil || got == 0 || got != len(files) {
		t.Errorf("%d definitions of %d files: %v", got, len(files), err)
	}
}

// TestSamplesAreAccepted sends each object of weir.dev in config/samples to the server.
func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	namespace, found := server.Namespace(t), 0
	err := filepath.WalkDir("../../config/samples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq("\n"+string(data), "\n---\n") {
			if !strings.Contains(document, "\napiVersion: weir.dev/") {
				continue
			}
			found++
			o := decode(t, path, document)
			o.SetNamespace(namespace)
			if err := server.Client.Create(t.Context(), o, dryRun); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("found %d objects of weir.dev, %v", found, err)
	}
}
