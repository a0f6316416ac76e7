package kube_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

const fieldsPage = "../../docs/reference/cachepolicy-fields.md"

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// accepted holds that the server takes an object, wherever it belongs, and, of a CachePolicy, that the data plane does.
func accepted(t *testing.T, where, namespace string, o *unstructured.Unstructured) {
	t.Helper()
	if o.GetNamespace() != "" || !slices.Contains([]string{"Namespace", "GatewayClass"}, o.GetKind()) {
		o.SetNamespace(namespace)
	}
	if o.GetName() == "" && o.GetGenerateName() == "" {
		o.SetGenerateName("example-")
	}
	if o.GetKind() == "CachePolicy" {
		text, err := yaml.Marshal(o.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		spec := &v1alpha1.CachePolicySpec{}
		if err := yaml.UnmarshalStrict(text, spec); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		for _, fault := range cachepolicy.Validate(spec) {
			t.Errorf("%s: %v", where, fault)
		}
	}
	if err := server.Client.Create(t.Context(), o, dryRun); err != nil {
		t.Errorf("%s: %s: %v", where, o.GetKind(), err)
	}
}

// TestDocsExamples sends each YAML block of the documentation to the server: an object as it is, the spec of a
// CachePolicy as one.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	namespace, found := server.Namespace(t), map[string]int{}
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" || strings.Contains(path, "/design/") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(data), -1) {
			o := decode(t, path, block[1])
			switch {
			case o.GetAPIVersion() != "":
			case o.Object["spec"] != nil && len(o.Object) == 1:
				o = policy(namespace, o.Object["spec"].(map[string]any))
			default:
				continue // the settings of a program
			}
			accepted(t, path+":\n"+block[1], namespace, o)
			found[filepath.Base(path)]++
		}
		return nil
	})
	if err != nil || found["cachepolicy-fields.md"] < 15 {
		t.Errorf("examples: %v, %v", found, err)
	}
}

// TestSamplesOfGatewaysAreAccepted sends the samples for Envoy Gateway to the server. There are no definitions of
// kgateway in reach: of its samples only ours and the Gateway API's are sent.
func TestSamplesOfGatewaysAreAccepted(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	files, _ := filepath.Glob("../../config/samples/*gateway/*.yaml")
	if len(files) < 6 {
		t.Fatalf("%d samples", len(files))
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq("\n"+string(data), "\n---\n") {
			if o := decode(t, path, document); !strings.HasPrefix(o.GetAPIVersion(), "gateway.kgateway.dev/") {
				accepted(t, path, namespace, o)
			}
		}
	}
}

// TestFieldsPageIsWhole holds that the page has a heading for each field of a CachePolicy's spec, and for no other.
func TestFieldsPageIsWhole(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../config/crd/weir.dev_cachepolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	spec := decodeCRD(t, data).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	fieldsOf("spec", &spec, want)
	page, err := os.ReadFile(fieldsPage)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^##+ (spec\.\S+)$`).FindAllStringSubmatch(string(page), -1) {
		got[heading[1]] = true
		if !want[heading[1]] {
			t.Errorf("there is no field %s", heading[1])
		}
	}
	for path := range want {
		if !got[path] {
			t.Errorf("the page says nothing of %s", path)
		}
	}
}

// fieldsOf collects the fields of a schema. What the Gateway API defines, and names in a list, are one field.
func fieldsOf(path string, s *apiextensionsv1.JSONSchemaProps, to map[string]bool) {
	if s.Items != nil {
		if path == "spec.targetRefs" || path == "spec.key.query.names" {
			return
		}
		fieldsOf(path+"[]", s.Items.Schema, to)
		return
	}
	for name, property := range s.Properties {
		to[path+"."+name] = true
		fieldsOf(path+"."+name, &property, to)
	}
}
