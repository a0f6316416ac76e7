package conformance

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	b := &Baseline{Suite: "small 1", NotPassed: Verdicts{"b": Fail, "c": Dependency, "x": Fail, "y": Fail}}
	results := Results{
		"a": passed(), "b": passed(), "c": passed(), "q": outcome("Assertion", "Response 2 status is 200, not 304"),
		"r": passed(), "x": outcome("Assertion", "no"), "y": outcome("Setup", "no"),
	}
	lost, gained, err := b.Compare(small(), results)
	if err != nil {
		t.Fatal(err)
	}
	wantLost := []string{
		"q [check] was pass, is fail (Assertion: Response 2 status is 200, not 304)\n    name of q",
		"r [required] was pass, is dependency\n    name of r",
	}
	wantGained := []string{
		"b [optimal] was fail, is pass\n    name of b", "c [required] was dependency, is pass\n    name of c",
	}
	if diff := cmp.Diff(wantLost, changes(lost)); diff != "" {
		t.Errorf("lost (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(wantGained, changes(gained)); diff != "" {
		t.Errorf("gained (-want +got)\n%s", diff)
	}
	other := small()
	other.Edition = "small 2"
	if _, _, err := b.Compare(other, results); err == nil {
		t.Error("a baseline of another edition was compared")
	}
}

func changes(cs []Change) []string {
	var s []string
	for _, c := range cs {
		s = append(s, c.String())
	}
	return s
}

func TestEnvoyItself(t *testing.T) {
	t.Parallel()
	got := EnvoyItself(small(), Results{
		"a": outcome("Setup", "Response 1 status is 502, not 200"),
		"b": outcome("Assertion", "Interim response 1 not received"), // not required
		"c": outcome("Assertion", "Response 12 does not come from cache"),
		"q": outcome("Assertion", "Response 1 status is 200, not 504"), // not required
		"r": outcome("Setup", "Request 2 should have been conditional, but it was not."),
	})
	if diff := cmp.Diff(map[string]string{"a": "Response 1 status is 502, not 200"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestExplained(t *testing.T) {
	t.Parallel()
	b := &Baseline{
		EnvoyItself: map[string]string{"a": "502"},
		NotPassed:   Verdicts{"a": Setup, "b": Fail, "c": Dependency, "q": Fail, "r": Fail},
	}
	exceptions := []Exception{{Tests: []string{"b", "y", "gone"}}}
	if diff := cmp.Diff([]string{"r"}, Unexplained(small(), b, exceptions)); diff != "" {
		t.Errorf("unexplained (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"y", "gone"}, Outdated(small(), b, exceptions)); diff != "" {
		t.Errorf("outdated (-want +got)\n%s", diff)
	}
}

func TestFilesRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f.json")
	b := &Baseline{
		Suite: "small 1", EnvoyVersion: "1",
		EnvoyItself: map[string]string{"a": "<502>"}, NotPassed: Verdicts{"a": Setup},
	}
	if err := b.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := LoadBaseline(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := LoadMeasured(path); err == nil {
		t.Error("a file with unknown members was read")
	}
	if m, err := LoadMeasured(filepath.Join(t.TempDir(), "none")); err != nil || len(m.Peers) > 0 {
		t.Errorf("nothing saved yet: %+v, %v", m, err)
	}
}

func TestMeasuredKeepsTheLatest(t *testing.T) {
	t.Parallel()
	s, m := small(), &Measured{}
	m.AddPeer(s, Measurement{Subject: "nginx", Version: "1", Results: Results{"a": passed()}})
	m.AddPeer(s, Measurement{Subject: "varnish", Version: "1", Results: Results{}})
	m.AddPeer(s, Measurement{Subject: "nginx", Version: "2", Results: Results{}})
	m.AddNewer(s, Measurement{Subject: "nginx", Version: "1", Results: Results{}})
	m.AddNewer(s, Measurement{Subject: "nginx", Version: "2", Results: Results{"a": passed()}})
	m.AddNewer(s, Measurement{Subject: WeirSubject, Version: "3", Results: Results{
		"a": outcome("Assertion", "no"), "q": outcome("Assertion", "no"), "r": passed(),
	}})
	if len(m.Peers) != 2 || m.Peers[0].Version != "2" || m.Peers[0].NotPassed["a"] != Untested {
		t.Errorf("peers: %+v", m.Peers)
	}
	want := []Tallied{
		{Subject: "nginx", Version: "2", Counts: map[Kind]Count{
			Required: {Passed: 1, Failed: 2}, Optimal: {Failed: 1}, Check: {Failed: 3},
		}},
		{Subject: WeirSubject, Version: "3", Counts: map[Kind]Count{
			Required: {Failed: 2, Dependency: 1}, Optimal: {Failed: 1}, Check: {Failed: 3},
		}, NotPassed: map[string]string{"a": "no", "b": "", "c": "", "r": ""}},
	}
	if diff := cmp.Diff(want, m.Newer.Subjects); diff != "" {
		t.Errorf("newer (-want +got)\n%s", diff)
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	s := small()
	s.Carried = []Carried{{Name: "Old cache", Version: "0.1", Results: Results{"b": passed(), "a": passed()}}}
	p := Page{
		Suite: s,
		Baseline: &Baseline{
			EnvoyVersion: "1.2", EnvoyItself: map[string]string{"r": "502"}, NotPassed: Verdicts{"b": Fail, "c": Fail},
		},
		Measured: &Measured{
			Peers: []Judged{{Subject: "varnish", Version: "7.1-2+deb12", NotPassed: Verdicts{"b": Fail}}},
			Newer: &Newer{Edition: "small 2", Subjects: []Tallied{
				{Subject: "varnish", Version: "7.1-2+deb12", Counts: map[Kind]Count{Required: {Passed: 1, Failed: 1}}},
				{Subject: "weir", Version: "1.2", Counts: map[Kind]Count{Required: {Passed: 2}},
					NotPassed: map[string]string{"z": "Response 2"}},
			}},
		},
		Exceptions: []Exception{{Tests: []string{"b"}, Title: "Why not b", Why: "Because.\n"}},
	}
	page := p.Markdown()
	for _, want := range []string{
		"| **Envoy + weir** | Envoy 1.2 | here | 2 | 0 | 3 |\n",
		"| Varnish | 7.1-2+deb12 | here | 3 | 0 | 3 |\n",
		"| category | Envoy + weir | Varnish 7.1 | Old cache 0.1 |\n",
		"| Envoy + weir | Envoy 1.2 | 2 | 0 | 0 |\n| Varnish | 7.1-2+deb12 | 1 | 0 | 0 |\n",
		"Envoy + weir does not pass:\n\n- `z`: Response 2\n",
		"| Old cache | 0.1 | by the suite's authors, 2021 | 1 | 1 | 0 |\n",
		"| one (2) | 1 | 2 | 1 |\n",
		"- `r`: 502\n",
		"### Why not b\n\nBecause.\n\n- `b` (optional), passed by Old cache 0.1\n",
		"## Failed, not on purpose\n\n- `c` (required)\n",
	} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	p.Measured.Newer = nil
	if bytes.Contains(p.Markdown(), []byte("newer edition\n\n")) {
		t.Error("the page has an edition that was not measured")
	}
}
