package kube_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKustomize holds that config/manager is what the chart makes, and that the server takes config/default whole.
func TestKustomize(t *testing.T) {
	t.Parallel()
	out, err := server.Helm(t.Context(), "template", "weir", weirChart, "--namespace", "weir-system", "--no-hooks",
		"--values", "config/manager/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := "# Made of charts/weir with values.yaml; do not edit.\n" + out
	const golden = "../../config/manager/weir.yaml"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%v; run the test with -update (-want +got):\n%s", err, diff)
	}

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system"}}
	if err := server.Client.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	applied, err := server.Kubectl(t.Context(), "", "apply", "--server-side", "--force-conflicts", "--dry-run=server",
		"--validate=strict", "-k", "config/default")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"customresourcedefinition.apiextensions.k8s.io/cachepolicies.weir.dev", "serviceaccount/weir-controller",
		"clusterrole.rbac.authorization.k8s.io/weir-controller ", "deployment.apps/weir-controller",
		"deployment.apps/weir-extproc", "job.batch/weir-certificates-",
	} {
		if !strings.Contains(applied, name) {
			t.Errorf("no %s in:\n%s", name, applied)
		}
	}
}
