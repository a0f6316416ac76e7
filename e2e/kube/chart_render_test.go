package kube_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/e2e/harness"
)

const weirChart = "charts/weir"

var update = flag.Bool("update", false, "write the files that charts must render to")

// rendered are the objects that the chart makes of values, with the hooks.
func rendered(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	args := append([]string{"template", "weir", weirChart, "--namespace", "weir-system"}, values...)
	out, err := server.Helm(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+out, "\n---\n") {
		if o := decode(t, strings.Join(values, " "), document); len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// find returns the object of this kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

// TestChartGolden holds what values make of the chart: testdata/chart/NAME.values.yaml to NAME.yaml.
func TestChartGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/chart/*.values.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files of values, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".values.yaml"), func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			for _, o := range rendered(t, "--values", filepath.Join("e2e/kube", file)) {
				text, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n" + string(text))
			}
			golden := strings.TrimSuffix(file, ".values.yaml") + ".yaml"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%v; look at it, and run the test with -update (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestChartIsAccepted sends what the chart makes to the server, which knows each field, and the pods as such to a
// namespace in which they must keep the strictest of Kubernetes' security standards.
func TestChartIsAccepted(t *testing.T) {
	t.Parallel()
	_, err := envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{
		Paths: []string{harness.CertManagerCRDs(t), harness.PrometheusOperatorCRDs(t)}, MaxTime: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := server.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/chart/*.values.yaml")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".values.yaml"), func(t *testing.T) {
			t.Parallel()
			objects := rendered(t, "--values", filepath.Join("e2e/kube", file),
				"--set", "namespaceOverride="+namespace.Name)
			pods := 0
			for _, o := range objects {
				if err := server.Client.Create(t.Context(), o.DeepCopy(), dryRun); err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
				if pod := podOf(t, o); pod != nil {
					pods++
					pod.Namespace, pod.GenerateName = namespace.Name, "pod-"
					if err := server.Client.Create(t.Context(), pod.DeepCopy(), dryRun); err != nil {
						t.Errorf("pod of %s %s: %v", o.GetKind(), o.GetName(), err)
					}
					pod.Spec.SecurityContext.RunAsNonRoot = nil
					if server.Client.Create(t.Context(), pod, dryRun) == nil {
						t.Error("the namespace takes pods that run as root: this test shows nothing")
					}
				}
			}
			if pods < 2 {
				t.Errorf("%d pods", pods)
			}
		})
	}
}

// podOf returns the pod that an object makes; nil: none.
func podOf(t *testing.T, o *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	path := map[string][]string{
		"Deployment": {"spec", "template", "spec"}, "DaemonSet": {"spec", "template", "spec"},
		"Job": {"spec", "template", "spec"}, "CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
		"Pod": {"spec"},
	}[o.GetKind()]
	if path == nil {
		return nil
	}
	spec, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod.Spec); err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestChartObjectsAreAlike holds what must be true of every object, whatever the values.
func TestChartObjectsAreAlike(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/chart/*.values.yaml")
	cluster := []string{"ClusterRole", "ClusterRoleBinding"}
	for _, file := range files {
		for _, o := range rendered(t, "--values", filepath.Join("e2e/kube", file), "--set", "commonLabels.team=edge",
			"--set-string", `commonLabels.app\.kubernetes\.io/name=mine`) {
			where := file + ": " + o.GetKind() + " " + o.GetName()
			if slices.Contains(cluster, o.GetKind()) != (o.GetNamespace() == "") {
				t.Errorf("%s: namespace %q", where, o.GetNamespace())
			}
			labels := o.GetLabels()
			for label, want := range map[string]string{
				"app.kubernetes.io/name": "weir", "app.kubernetes.io/instance": "weir", "app.kubernetes.io/part-of": "weir",
				"app.kubernetes.io/managed-by": "Helm", "team": "edge",
			} {
				if labels[label] != want {
					t.Errorf("%s: label %s: %q, want %q", where, label, labels[label], want)
				}
			}
			if pod := podOf(t, o); pod != nil {
				checkPod(t, where, pod)
			}
		}
	}
}

// checkPod holds that a pod can write nowhere, has bounds, and that nothing but the controller talks to the API server.
func checkPod(t *testing.T, where string, pod *corev1.Pod) {
	t.Helper()
	for _, c := range pod.Spec.Containers {
		if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil ||
			!*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s: container %s may write to its root", where, c.Name)
		}
		if c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: container %s has no limit of memory", where, c.Name)
		}
		asks := strings.Contains(c.Image, "weir-controller")
		if mounts := pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken; mounts != asks {
			t.Errorf("%s: container %s has the token: %v", where, c.Name, mounts)
		}
	}
}

// TestChartNamesFit holds that names stay within what Kubernetes allows, whatever the release is called.
func TestChartNamesFit(t *testing.T) {
	t.Parallel()
	out, err := server.Helm(t.Context(), "template", strings.Repeat("r", 53), weirChart, "--namespace",
		strings.Repeat("n", 63), "--set", "extproc.callers=Certificate")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq("\n"+out, "\n---\n") {
		o := decode(t, "names", document)
		most := map[string]int{"CronJob": 52, "ClusterRole": 253, "ClusterRoleBinding": 253}[o.GetKind()]
		if most == 0 {
			most = 63
		}
		if len(o.GetName()) > most || strings.HasSuffix(o.GetName(), "-") {
			t.Errorf("%s %s: %d characters", o.GetKind(), o.GetName(), len(o.GetName()))
		}
		for label, value := range o.GetLabels() {
			if len(value) > 63 {
				t.Errorf("%s: label %s has %d characters", o.GetKind(), label, len(value))
			}
		}
	}
}
