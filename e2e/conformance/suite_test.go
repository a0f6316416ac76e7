package conformance_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/conformance"
)

func files(t *testing.T) conformance.Files {
	t.Helper()
	f, err := conformance.FindFiles()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func baseline(t *testing.T) *conformance.Baseline {
	t.Helper()
	b, err := conformance.LoadBaseline(files(t).Baseline)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func exceptions(t *testing.T) []conformance.Exception {
	t.Helper()
	e, err := conformance.Exceptions()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func weirSubject(t *testing.T) conformance.Subject {
	t.Helper()
	s, err := conformance.FindSubject(conformance.WeirSubject)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSuite runs http-cache-tests through Envoy and weir: no test may be lost against the baseline, and one that is
// gained is to be accepted, so that it cannot be lost again unseen.
func TestSuite(t *testing.T) {
	suite := conformance.Pinned(t)
	m := conformance.Measure(t, suite, weirSubject(t))
	lost, gained := files(t).Compare(t, suite, m)
	for _, c := range lost {
		t.Errorf("lost: %s", c)
	}
	for _, c := range gained {
		t.Logf("gained (accept with go run ./e2e/conformance/cmd/conformance -update): %s", c)
	}
}

// TestBaselineIsExplained: every required and optional test that weir does not pass is Envoy's own doing or an
// exception with its reason, and no exception is out of date.
func TestBaselineIsExplained(t *testing.T) {
	t.Parallel()
	suite, b, e := conformance.Pinned(t), baseline(t), exceptions(t)
	if b.Suite != suite.Edition {
		t.Fatalf("the baseline is of %s, the suite is %s", b.Suite, suite.Edition)
	}
	if ids := conformance.Unexplained(suite, b, e); len(ids) > 0 {
		t.Errorf("not passed, and no entry in exceptions.yaml: %q", ids)
	}
	if ids := conformance.Outdated(suite, b, e); len(ids) > 0 {
		t.Errorf("in exceptions.yaml, but passed or unknown: %q", ids)
	}
}

// TestGoal holds the promise of the baseline: every required test but those that Envoy fails by itself or that are
// excepted, and at least 85 % of the optional ones.
func TestGoal(t *testing.T) {
	t.Parallel()
	suite, b := conformance.Pinned(t), baseline(t)
	excepted := map[string]bool{}
	for _, e := range exceptions(t) {
		for _, id := range e.Tests {
			excepted[id] = true
		}
	}
	optimal, passed := 0, 0
	for _, test := range suite.All {
		_, failed := b.NotPassed[test.ID]
		_, envoy := b.EnvoyItself[test.ID]
		if test.Kind == conformance.Required && failed && !envoy && !excepted[test.ID] {
			t.Errorf("required, not passed: %s", test.ID)
		}
		if test.Kind == conformance.Optimal {
			optimal++
			if !failed {
				passed++
			}
		}
	}
	if passed*100 < optimal*85 {
		t.Errorf("%d of %d optional tests pass, want 85 %%", passed, optimal)
	}
}

// TestPageIsCurrent: docs/conformance.md says what was accepted.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	f := files(t)
	want, err := f.RenderPage(conformance.Pinned(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("not current: go run ./e2e/conformance/cmd/conformance -docs (-want +got)\n%s", diff)
	}
}
