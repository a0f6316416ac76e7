package kube_test

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// rule is a CEL rule of a CRD.
type rule struct {
	path    string // of what it is about, [] for any index: spec.targetRefs[]
	reports string // the path that its message names
	message string
	text    string
}

// rulesOf reads the CEL rules of a CRD.
func rulesOf(t *testing.T, file string) []rule {
	t.Helper()
	var rules []rule
	walkSchema(crdSchema(t, file), "", func(path string, s *apiextensionsv1.JSONSchemaProps) {
		for _, v := range s.XValidations {
			rules = append(rules, rule{path, path + v.FieldPath, v.Message, v.Rule})
		}
	})
	return rules
}

// crdSchema reads the schema of the one version of a CRD.
func crdSchema(t *testing.T, file string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s has %d versions, the tests know 1", file, len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walkSchema calls f for each node below spec and status.
func walkSchema(s *apiextensionsv1.JSONSchemaProps, path string, f func(string, *apiextensionsv1.JSONSchemaProps)) {
	if path != "" {
		f(path, s)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		switch {
		case path != "":
			walkSchema(&child, path+"."+name, f)
		case name == "spec" || name == "status":
			walkSchema(&child, name, f)
		}
	}
	if s.Items != nil {
		walkSchema(s.Items.Schema, path+"[]", f)
	}
}

// coverage remembers which rules let an object pass and which one refused.
type coverage struct {
	mu      sync.Mutex
	passed  map[string]bool // paths with a value in an object that was accepted
	refused map[string]bool // reported path + message
}

func newCoverage() *coverage {
	return &coverage{passed: map[string]bool{}, refused: map[string]bool{}}
}

func (c *coverage) accept(object map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, root := range []string{"spec", "status"} {
		if value, ok := object[root]; ok {
			c.visit(root, value)
		}
	}
}

func (c *coverage) visit(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		c.passed[path] = true
		for name, child := range v {
			c.visit(path+"."+name, child)
		}
	case []any:
		c.passed[path] = c.passed[path] || len(v) > 0
		for _, child := range v {
			c.visit(path+"[]", child)
		}
	default:
		c.passed[path] = true
	}
}

func (c *coverage) refuse(causes []metav1.StatusCause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cause := range causes {
		c.refused[withoutIndex(cause.Field)+" "+cause.Message] = true
	}
}

// check fails the test for each rule that no case passed, or none failed.
func (c *coverage) check(t *testing.T, rules []rule) {
	t.Helper()
	if len(rules) == 0 {
		t.Error("the CRD has no CEL rules")
	}
	for _, r := range rules {
		if !c.passed[r.path] {
			t.Errorf("no case passes the rule of %s: %s", r.path, r.text)
		}
		refused := false
		for report := range c.refused {
			refused = refused || strings.HasPrefix(report, r.reports+" ") && strings.HasSuffix(report, r.message)
		}
		if !refused {
			t.Errorf("no case fails the rule of %s: %s", r.path, r.text)
		}
	}
}

var index = regexp.MustCompile(`\[(\d+|"[^"]*")\]`)

// withoutIndex replaces each index in a path by [].
func withoutIndex(path string) string { return index.ReplaceAllString(path, "[]") }

// causesOf returns what the server says is wrong with an object; none if the error is another.
func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return nil
	}
	// Of no field is the remark that other rules were not looked at.
	return slices.DeleteFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "<nil>" })
}
