package conformance

import (
	"encoding/json"
	"fmt"
)

// Outcome is what the suite's client says of one test, before dependencies are looked at.
type Outcome struct {
	Passed bool
	// Error and Message are the client's: "Assertion" when the cache misbehaved, "Setup" when the exchange broke
	// before the point of the test was reached, else the name of what the client caught.
	Error, Message string
}

// UnmarshalJSON reads true, or [error, message].
func (o *Outcome) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &o.Passed); err == nil {
		return nil
	}
	var pair []string
	if err := json.Unmarshal(data, &pair); err != nil || len(pair) != 2 {
		return fmt.Errorf("a result is %s, want true or [error, message]", data)
	}
	o.Passed, o.Error, o.Message = false, pair[0], pair[1]
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if o.Passed {
		return []byte("true"), nil
	}
	return json.Marshal([]string{o.Error, o.Message})
}

// String is the outcome as one line.
func (o Outcome) String() string {
	if o.Passed {
		return "pass"
	}
	return o.Error + ": " + o.Message
}

// Results are the outcomes of one run, by test ID.
type Results map[string]Outcome

// Verdict is the judgement on one test.
type Verdict string

// The verdicts. Only Pass counts for a cache.
const (
	Pass       Verdict = "pass"       // for a Check: the answer is yes
	Fail       Verdict = "fail"       // for a Check: the answer is no
	Setup      Verdict = "setup"      // the exchange broke before the point of the test
	Dependency Verdict = "dependency" // a test this one depends on did not pass, so its own outcome says nothing
	Untested   Verdict = "untested"
)

// Verdicts are the judgements on one run, by test ID.
type Verdicts map[string]Verdict

// Judge applies the suite's rule: a test counts only if every test it depends on passed.
func Judge(s *Suite, r Results) Verdicts {
	tests := map[string]*Test{}
	for _, t := range s.All {
		tests[t.ID] = t
	}
	v := Verdicts{}
	var judge func(id string) Verdict
	judge = func(id string) Verdict {
		if known, ok := v[id]; ok {
			return known
		}
		t, ok := tests[id]
		if !ok {
			return Untested
		}
		v[id] = Untested // while its dependencies are judged, which ends a circle of them
		own := outcomeVerdict(r, id)
		for _, d := range t.DependsOn {
			if own != Untested && judge(d) != Pass {
				own = Dependency
			}
		}
		v[id] = own
		return own
	}
	for id := range tests {
		judge(id)
	}
	return v
}

func outcomeVerdict(r Results, id string) Verdict {
	o, ok := r[id]
	switch {
	case !ok:
		return Untested
	case o.Passed:
		return Pass
	case o.Error == "Setup":
		return Setup
	default:
		return Fail
	}
}
