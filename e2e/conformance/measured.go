package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Measured is what is kept of measurements for the page docs/conformance.md, beside the baseline.
type Measured struct {
	// Peers are the other caches, by the pinned edition.
	Peers []Judged `json:"peers"`
	// Newer holds tallies by a later edition of the suite, whose code is not part of this repository.
	Newer *Newer `json:"newer,omitempty"`
}

// Judged is a measurement of one subject, judged: every test that is not named in NotPassed passes.
type Judged struct {
	Subject   string   `json:"subject"`
	Version   string   `json:"version"`
	NotPassed Verdicts `json:"notPassed"`
}

// Newer holds tallies by one edition of the suite.
type Newer struct {
	Edition  string    `json:"edition"`
	Subjects []Tallied `json:"subjects"`
}

// Tallied is the total of one subject.
type Tallied struct {
	Subject string         `json:"subject"`
	Version string         `json:"version"`
	Counts  map[Kind]Count `json:"counts"`
	// NotPassed names the required and optional tests that weir does not pass, and what the suite's client says; of
	// other subjects nothing is kept.
	NotPassed map[string]string `json:"notPassed,omitempty"`
}

// LoadMeasured reads what was saved; nothing saved yet is empty.
func LoadMeasured(path string) (*Measured, error) {
	m := &Measured{}
	if err := readJSON(path, m); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load what was measured: %w", err)
	}
	return m, nil
}

// Save writes it.
func (m *Measured) Save(path string) error {
	if err := writeJSON(path, m); err != nil {
		return fmt.Errorf("save what was measured: %w", err)
	}
	return nil
}

// AddPeer keeps a measurement by the pinned edition in place of an earlier one of the same subject.
func (m *Measured) AddPeer(s *Suite, x Measurement) {
	j := Judged{Subject: x.Subject, Version: x.Version, NotPassed: Judge(s, x.Results).NotPassed()}
	i := slices.IndexFunc(m.Peers, func(p Judged) bool { return p.Subject == x.Subject })
	if i < 0 {
		m.Peers = append(m.Peers, j)
		return
	}
	m.Peers[i] = j
}

// AddNewer keeps the total of a measurement by another edition; tallies by a third edition are dropped.
func (m *Measured) AddNewer(s *Suite, x Measurement) {
	if m.Newer == nil || m.Newer.Edition != s.Edition {
		m.Newer = &Newer{Edition: s.Edition}
	}
	verdicts := Judge(s, x.Results)
	rows := Tally(s, verdicts)
	t := Tallied{Subject: x.Subject, Version: x.Version, Counts: rows[len(rows)-1].Counts}
	if x.Subject == WeirSubject {
		t.NotPassed = map[string]string{}
		for _, test := range s.All {
			if test.Kind != Check && verdicts[test.ID] != Pass {
				t.NotPassed[test.ID] = x.Results[test.ID].Message
			}
		}
	}
	i := slices.IndexFunc(m.Newer.Subjects, func(o Tallied) bool { return o.Subject == x.Subject })
	if i < 0 {
		m.Newer.Subjects = append(m.Newer.Subjects, t)
		return
	}
	m.Newer.Subjects[i] = t
}

// Verdicts are those of every test of the suite.
func (j Judged) Verdicts(s *Suite) Verdicts { return fill(s, j.NotPassed) }

// fill adds Pass for every test that is not in notPassed.
func fill(s *Suite, notPassed Verdicts) Verdicts {
	v := Verdicts{}
	for _, t := range s.All {
		v[t.ID] = Pass
		if verdict, ok := notPassed[t.ID]; ok {
			v[t.ID] = verdict
		}
	}
	return v
}
