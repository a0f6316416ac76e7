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
			switch {
			case s.XPreserveUnknownFields != nil:
				t.Errorf("%s keeps unknown fields", path)
			case s.XIntOrString:
				if s.Pattern == "" {
					t.Errorf("%s, an integer or string, has no pattern", path)
				}
			case s.Type == "string":
				if s.MaxLength == nil && len(s.Enum) == 0 && s.Format != "date-time" {
					t.Errorf("%s, a string, has neither maxLength nor values", path)
				}
			case s.Type == "array":
				if s.MaxItems == nil {
					t.Errorf("%s, a list, has no maxItems", path)
				}
			case s.Type == "integer":
				if s.Minimum == nil {
					t.Errorf("%s, an integer, has no minimum", path)
				}
			case s.Type == "object":
				if s.AdditionalProperties != nil || len(s.Properties) == 0 {
					t.Errorf("%s is a map", path)
				}
			default:
				t.Errorf("%s is of type %q", path, s.Type)
			}
			if s.Type == "integer" && strings.HasPrefix(path, "spec.") && s.Maximum == nil {
				t.Errorf("%s, an integer, has no maximum", path)
			}
		})
	}
}
