package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/kube"
)

const crdsChart = "charts/weir-crds"

// TestCRDChartRenders holds that the chart's definitions are those of config/crd, with labels and annotations that
// values name.
func TestCRDChartRenders(t *testing.T) {
	t.Parallel()
	out, err := server.Helm(t.Context(), "template", "crds", crdsChart,
		"--set", `labels.team=edge,annotations.owner=edge,labels.app\.kubernetes\.io/part-of=mine`)
	if err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for document := range strings.SplitSeq(out, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		rendered++
		got := decodeCRD(t, []byte(document))
		data, err := os.ReadFile(filepath.Join("../../config/crd", "weir.dev_"+got.Spec.Names.Plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		want := decodeCRD(t, data)
		if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
			t.Errorf("%s differs from config/crd (-want +got):\n%s", got.Name, diff)
		}
		for key, value := range want.Labels {
			if got.Labels[key] != value {
				t.Errorf("%s: label %s: %q, want %q", got.Name, key, got.Labels[key], value)
			}
		}
		if got.Labels["team"] != "edge" || got.Annotations["owner"] != "edge" ||
			got.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s: labels %v, annotations %v", got.Name, got.Labels, got.Annotations)
		}
	}
	if rendered != 2 {
		t.Errorf("the chart renders %d definitions, want 2", rendered)
	}
}

func decodeCRD(t *testing.T, data []byte) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// TestCRDChartRefusesUnknownValues holds values.schema.json.
func TestCRDChartRefusesUnknownValues(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"keeep=false", "keep=maybe", "labels.a.b=c"} {
		if _, err := server.Helm(t.Context(), "template", "crds", crdsChart, "--set", value); err == nil {
			t.Errorf("helm template --set %s: no error", value)
		}
	}
}

// TestCRDChartLifecycle installs, upgrades and uninstalls the chart: policies outlive it unless keep is false.
func TestCRDChartLifecycle(t *testing.T) {
	t.Parallel()
	own := kube.Start(t) // the definitions go
	helm := func(args ...string) string {
		t.Helper()
		out, err := own.Helm(t.Context(), append(args, "--namespace", "default")...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	namespace := own.Namespace(t)
	o := policy(namespace, map[string]any{"mode": "Shadow"})
	if err := own.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if out := helm("install", "crds", crdsChart, "--take-ownership"); !strings.Contains(out, "They stay") {
		t.Errorf("the notes do not say that the definitions stay:\n%s", out)
	}
	helm("uninstall", "crds")
	if err := own.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Errorf("a policy after the chart was uninstalled: %v", err)
	}
	helm("install", "crds", crdsChart, "--take-ownership", "--set", "keep=false")
	helm("upgrade", "crds", crdsChart, "--set", "keep=false,labels.team=edge")
	crd := &apiextensionsv1.CustomResourceDefinition{}
	key := types.NamespacedName{Name: "cachepolicies.weir.dev"}
	if err := own.Client.Get(t.Context(), key, crd); err != nil || crd.Labels["team"] != "edge" {
		t.Errorf("after the upgrade: labels %v, %v", crd.Labels, err)
	}
	helm("uninstall", "crds")
	harness.Eventually(t, 30*time.Second, "the definition is gone", func() bool {
		return apierrors.IsNotFound(own.Client.Get(t.Context(), key, crd))
	})
}
