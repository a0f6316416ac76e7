// Package conformance measures how well a cache keeps the HTTP caching specifications. It runs the public test
// suite http-cache-tests, unchanged, through Envoy with weir and through other caches, judges the results the way
// the suite's own page does, and compares them with a committed baseline.
package conformance

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Kind says what a test of the suite asks of a cache.
type Kind string

// The kinds of tests, as the suite names them.
const (
	Required Kind = "required" // the specification demands it
	Optimal  Kind = "optimal"  // a good cache does it; the suite's page calls these optional
	Check    Kind = "check"    // a question with no right answer
)

// Test is one test of the suite. Tests for browsers are left out when a suite is loaded.
type Test struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Kind      Kind     `json:"kind"`
	DependsOn []string `json:"dependsOn"`
}

// Category is a group of tests; the suite's files name it a "test suite".
type Category struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Tests []Test `json:"tests"`
}

// Carried is a result that the suite's package carries: another cache, measured by the suite's authors.
type Carried struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Results Results `json:"results"`
}

// Suite is an installed edition of http-cache-tests.
type Suite struct {
	// Dir is the root of the edition.
	Dir string `json:"-"`
	// Edition names it in the baseline and on the page: "http-cache-tests 0.4.5".
	Edition    string     `json:"edition"`
	Categories []Category `json:"categories"`
	// Carried holds the results for proxies and CDNs; results for browsers are left out.
	Carried []Carried `json:"carried"`

	server, client string // paths of the origin's and the client's programs
}

//go:embed list.mjs
var listScript string

// LoadSuite reads the edition of http-cache-tests in dir: its tests and the results it carries. Both layouts that
// editions have had are understood. It needs node.
func LoadSuite(ctx context.Context, dir string) (*Suite, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("locate the suite: %w", err)
	}
	s := &Suite{Dir: dir}
	for _, engine := range []string{dir, filepath.Join(dir, "test-engine")} {
		client := filepath.Join(engine, "cli.mjs")
		if _, err := os.Stat(client); err == nil {
			s.client, s.server = client, filepath.Join(engine, "server", "server.mjs")
		}
	}
	if s.client == "" {
		return nil, fmt.Errorf("no http-cache-tests in %s: it has no cli.mjs", dir)
	}
	node := exec.CommandContext(ctx, "node", "--no-warnings", "--input-type=module", "-e", listScript, dir)
	node.Stderr = os.Stderr
	out, err := node.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests in %s: %w", dir, err)
	}
	if err := json.Unmarshal(out, s); err != nil {
		return nil, fmt.Errorf("list the tests in %s: %w", dir, err)
	}
	return s, nil
}

// All yields every test with its category, in the suite's order.
func (s *Suite) All(yield func(*Category, *Test) bool) {
	for i := range s.Categories {
		c := &s.Categories[i]
		for j := range c.Tests {
			if !yield(c, &c.Tests[j]) {
				return
			}
		}
	}
}
