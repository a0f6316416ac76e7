package istio

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

var update = flag.Bool("update", false, "write the .out.yaml files anew")

// attachmentsIn is an input of EnvoyFilters: a file *.in.yaml.
type attachmentsIn struct {
	Attachments []translate.Attachment `json:"attachments"`
	// Selectors are by namespace/name of a classic Gateway, Ports by that of a Service.
	Selectors map[string]map[string]string `json:"selectors,omitempty"`
	Ports     map[string][]int32           `json:"ports,omitempty"`
}

func options(in *attachmentsIn) Options {
	o := Options{RootNamespace: "istio-system", ClusterDomain: "cluster.local", DataPlane: attach.DataPlane{
		Service: types.NamespacedName{Namespace: "weir-system", Name: "weir-extproc"}, Port: 9002, Resolves: true}}
	o.Selectors = map[types.NamespacedName]map[string]string{}
	for name, selector := range in.Selectors {
		o.Selectors[named(name)] = selector
	}
	o.ServicePorts = map[types.NamespacedName][]int32{}
	for name, ports := range in.Ports {
		o.ServicePorts[named(name)] = ports
	}
	return o
}

func named(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// render is what a golden file has: the EnvoyFilters, then where each attachment went.
func render(t *testing.T, in *attachmentsIn) string {
	t.Helper()
	filters, placed := EnvoyFilters(in.Attachments, options(in))
	var out bytes.Buffer
	for _, f := range filters {
		document, err := yaml.Marshal(f.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s---\n", document)
	}
	document, err := yaml.Marshal(map[string]any{"placed": placed})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(document)
	return out.String()
}

func golden(t *testing.T, pattern string, render func(t *testing.T, document []byte) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.yaml"), func(t *testing.T) {
			t.Parallel()
			document, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := render(t, document)
			path := strings.TrimSuffix(file, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got), -update writes it anew:\n%s", path, diff)
			}
		})
	}
}

// TestEnvoyFilters: from attachments to EnvoyFilters.
func TestEnvoyFilters(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/envoyfilters/*.in.yaml", func(t *testing.T, document []byte) string {
		var in attachmentsIn
		if err := yaml.UnmarshalStrict(document, &in); err != nil {
			t.Fatal(err)
		}
		// In whatever order they come.
		sorted := render(t, &in)
		filters, _ := EnvoyFilters(in.Attachments, options(&in))
		rand.Shuffle(len(in.Attachments), func(i, j int) {
			in.Attachments[i], in.Attachments[j] = in.Attachments[j], in.Attachments[i]
		})
		shuffled, _ := EnvoyFilters(in.Attachments, options(&in))
		if diff := cmp.Diff(filters, shuffled); diff != "" {
			t.Errorf("the order of the attachments shows (-sorted +shuffled):\n%s", diff)
		}
		return sorted
	})
}
