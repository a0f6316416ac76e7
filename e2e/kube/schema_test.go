package kube_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestNoDefaultsToInherit holds design §3: a default in the schema would be set on the policy of a route and beat what
// its Gateway's policy says.
func TestNoDefaultsToInherit(t *testing.T) {
	t.Parallel()
	walkSchema(crdSchema(t, "weir.dev_cachepolicies.yaml"), "", func(path string, s *apiextensionsv1.JSONSchemaProps) {
		if s.Default != nil && strings.HasPrefix(path, "spec.") {
			t.Errorf("%s has the default %s", path, s.Default.Raw)
		}
	})
}

// TestSchemaIsBounded holds that every list, string and number has bounds, and that nothing is a map, a float, or
// of unknown fields.
func TestSchemaIsBounded(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"weir.dev_cachepolicies.yaml", "weir.dev_cacheinvalidations.yaml"} {
		walkSchema(crdSchema(t, file), "", func(path string, s *apiextensionsv1.JSONSchemaProps) {
			if fault := unbounded(path, s); fault != "" {
				t.Errorf("%s: %s", path, fault)
			}
		})
	}
}

// unbounded says what the schema of a value lacks; empty if nothing.
func unbounded(path string, s *apiextensionsv1.JSONSchemaProps) string {
	lacks := func(what string, missing bool) string {
		if missing {
			return "lacks " + what + ";"
		}
		return ""
	}
	if s.XIntOrString {
		return lacks("a pattern", s.Pattern == "")
	}
	switch s.Type {
	case "string":
		return lacks("maxLength or values", s.MaxLength == nil && len(s.Enum) == 0 && s.Format != "date-time")
	case "array":
		return lacks("maxItems", s.MaxItems == nil)
	case "integer":
		return lacks("minimum", s.Minimum == nil) +
			lacks("maximum", s.Maximum == nil && strings.HasPrefix(path, "spec."))
	case "object":
		return lacks("properties", len(s.Properties) == 0 || s.XPreserveUnknownFields != nil)
	}
	return "lacks a type that is one of string, array, integer, object"
}
