package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
)

// Baseline is what was last accepted, for the pinned edition of the suite: every test that is not named here passes.
type Baseline struct {
	Suite        string `json:"suite"`
	EnvoyVersion string `json:"envoyVersion"`
	// EnvoyItself holds the required tests that Envoy fails without weir, for reasons no cache behind it can mend,
	// and what the suite's client says.
	EnvoyItself map[string]string `json:"envoyItself"`
	// NotPassed holds the tests of any kind that weir does not pass.
	NotPassed Verdicts `json:"notPassed"`
}

// LoadBaseline reads a baseline. An unknown member is an error.
func LoadBaseline(path string) (*Baseline, error) {
	b := &Baseline{}
	if err := readJSON(path, b); err != nil {
		return nil, fmt.Errorf("load the baseline: %w", err)
	}
	return b, nil
}

// Save writes the baseline.
func (b *Baseline) Save(path string) error {
	if err := writeJSON(path, b); err != nil {
		return fmt.Errorf("save the baseline: %w", err)
	}
	return nil
}

// NotPassed returns the verdicts other than Pass.
func (v Verdicts) NotPassed() Verdicts {
	n := maps.Clone(v)
	maps.DeleteFunc(n, func(_ string, verdict Verdict) bool { return verdict == Pass })
	return n
}

// Change is a test that fares otherwise than the baseline says.
type Change struct {
	Test    *Test
	Was, Is Verdict
	Outcome Outcome
}

// String names the test, what changed and what the suite's client says.
func (c Change) String() string {
	s := fmt.Sprintf("%s [%s] was %s, is %s", c.Test.ID, c.Test.Kind, c.Was, c.Is)
	if c.Is != Pass && c.Is != Dependency {
		s += " (" + c.Outcome.String() + ")"
	}
	return s + "\n    " + c.Test.Name
}

// Compare returns the tests that passed by the baseline and do not pass now, and the reverse, in the suite's order.
// It fails when the baseline is of another edition.
func (b *Baseline) Compare(s *Suite, r Results) (lost, gained []Change, err error) {
	if b.Suite != s.Edition {
		return nil, nil, fmt.Errorf("the baseline is of %s, the suite is %s", b.Suite, s.Edition)
	}
	verdicts := Judge(s, r)
	for _, t := range s.All {
		was, ok := b.NotPassed[t.ID]
		if !ok {
			was = Pass
		}
		c := Change{Test: t, Was: was, Is: verdicts[t.ID], Outcome: r[t.ID]}
		switch {
		case c.Was == Pass && c.Is != Pass:
			lost = append(lost, c)
		case c.Was != Pass && c.Is == Pass:
			gained = append(gained, c)
		}
	}
	return lost, gained, nil
}

// EnvoyItself picks from the results of Envoy without a cache the required tests that failed for another reason than
// that there is no cache: a cache would have answered, or would have validated, or the test depends on such a one.
func EnvoyItself(s *Suite, r Results) map[string]string {
	wantsCache := regexp.MustCompile(`^Response \d+ does not come from cache$|` +
		`^Request \d+ should have been conditional, but it was not\.$`)
	itself := map[string]string{}
	for _, t := range s.All {
		if o := r[t.ID]; t.Kind == Required && !o.Passed && !wantsCache.MatchString(o.Message) {
			itself[t.ID] = o.Message
		}
	}
	return itself
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func writeJSON(path string, v any) error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// sortedKeys is the order in which maps are shown.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
