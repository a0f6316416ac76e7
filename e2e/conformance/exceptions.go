package conformance

import (
	_ "embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// Exception is a decision not to pass some tests.
type Exception struct {
	// Tests are their IDs.
	Tests []string `json:"tests"`
	// Title is a heading on the page.
	Title string `json:"title"`
	// Why is Markdown.
	Why string `json:"why"`
}

//go:embed exceptions.yaml
var exceptionsFile []byte

// Exceptions returns the decisions in exceptions.yaml.
func Exceptions() ([]Exception, error) {
	var e []Exception
	if err := yaml.UnmarshalStrict(exceptionsFile, &e); err != nil {
		return nil, fmt.Errorf("read exceptions.yaml: %w", err)
	}
	return e, nil
}

// Unexplained returns the required and optimal tests that the baseline does not pass and nothing explains: neither
// Envoy itself, nor an exception, nor a dependency on a test that does not pass.
func Unexplained(s *Suite, b *Baseline, exceptions []Exception) []string {
	var ids []string
	for _, t := range s.All {
		verdict, failed := b.NotPassed[t.ID]
		if !failed || t.Kind == Check || verdict == Dependency {
			continue
		}
		if _, ok := b.EnvoyItself[t.ID]; ok {
			continue
		}
		if !slices.ContainsFunc(exceptions, func(e Exception) bool { return slices.Contains(e.Tests, t.ID) }) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// Outdated returns the tests of exceptions that the baseline passes, or that the suite does not have.
func Outdated(s *Suite, b *Baseline, exceptions []Exception) []string {
	known := map[string]bool{}
	for _, t := range s.All {
		known[t.ID] = true
	}
	var ids []string
	for _, e := range exceptions {
		for _, id := range e.Tests {
			if _, failed := b.NotPassed[id]; !failed || !known[id] {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
