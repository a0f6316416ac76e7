package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func test(id string, kind Kind, dependsOn ...string) Test {
	return Test{ID: id, Name: "name of " + id, Kind: kind, DependsOn: dependsOn}
}

// small is a suite of two categories: b depends on a, c on b, x and y on each other.
func small() *Suite {
	return &Suite{Edition: "small 1", Categories: []Category{
		{ID: "one", Tests: []Test{test("a", Required), test("b", Optimal, "a"), test("c", Required, "b")}},
		{ID: "two", Tests: []Test{
			test("q", Check), test("r", Required, "q"), test("x", Check, "y"), test("y", Check, "x"),
		}},
	}}
}

func outcome(errorName, message string) Outcome { return Outcome{Error: errorName, Message: message} }

func passed() Outcome { return Outcome{Passed: true} }

func TestJudge(t *testing.T) {
	t.Parallel()
	fails := outcome("Assertion", "Response 2 comes from cache")
	for _, tt := range []struct {
		name    string
		results Results
		want    Verdicts
	}{
		{
			name:    "all pass",
			results: Results{"a": passed(), "b": passed(), "c": passed(), "q": passed(), "r": passed()},
			want:    Verdicts{"a": Pass, "b": Pass, "c": Pass, "q": Pass, "r": Pass, "x": Untested, "y": Untested},
		},
		{
			name:    "a failure spreads to all that depend on it, whatever their own outcome",
			results: Results{"a": fails, "b": passed(), "c": fails, "q": passed(), "r": fails},
			want: Verdicts{"a": Fail, "b": Dependency, "c": Dependency, "q": Pass, "r": Fail, "x": Untested,
				"y": Untested},
		},
		{
			name:    "an answer of no spreads too",
			results: Results{"q": fails, "r": passed()},
			want: Verdicts{"a": Untested, "b": Untested, "c": Untested, "q": Fail, "r": Dependency, "x": Untested,
				"y": Untested},
		},
		{
			name: "setup, and what the client caught",
			results: Results{
				"a": outcome("Setup", "retry"), "b": passed(), "q": outcome("FetchError", "socket hang up"),
			},
			want: Verdicts{"a": Setup, "b": Dependency, "c": Untested, "q": Fail, "r": Untested, "x": Untested,
				"y": Untested},
		},
		{
			name:    "a circle of dependencies ends",
			results: Results{"x": passed(), "y": passed()},
			want: Verdicts{"a": Untested, "b": Untested, "c": Untested, "q": Untested, "r": Untested, "x": Dependency,
				"y": Dependency},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Judge(small(), tt.results)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	v := Verdicts{"a": Pass, "b": Fail, "c": Dependency, "q": Setup, "r": Pass, "x": Untested, "y": Pass}
	want := []Row{
		{Category: "one", Counts: map[Kind]Count{Required: {Passed: 1, Dependency: 1}, Optimal: {Failed: 1}}},
		{Category: "two", Counts: map[Kind]Count{Required: {Passed: 1}, Check: {Passed: 1, Failed: 2}}},
		{Category: "total", Counts: map[Kind]Count{
			Required: {Passed: 2, Dependency: 1}, Optimal: {Failed: 1}, Check: {Passed: 1, Failed: 2},
		}},
	}
	rows := Tally(small(), v)
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var out strings.Builder
	if err := WriteTally(&out, rows); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 5 {
		t.Errorf("%d lines, want 2 of heading and 3 rows:\n%s", lines, &out)
	}
}

func TestWriteSideBySide(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := WriteSideBySide(&out, small(), []Measurement{
		{Subject: "weir", Results: Results{"a": passed(), "b": passed(), "q": passed()}},
		{Subject: "nginx", Results: Results{"b": passed()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	want := [][]string{
		{"category", "of", "weir", "nginx"},
		{"one", "2", "1", "0", "1", "1", "0", "0", "0", "0"},
		{"two", "1", "0", "3", "0", "0", "1", "0", "0", "0"},
		{"total", "3", "1", "3", "1", "1", "1", "0", "0", "0"},
	}
	for i, fields := range want {
		if diff := cmp.Diff(fields, strings.Fields(lines[i])); diff != "" {
			t.Errorf("line %d (-want +got)\n%s", i, diff)
		}
	}
}

func TestParseResults(t *testing.T) {
	t.Parallel()
	const document = "{\n  \"a\": true,\n  \"b\": [\n    \"Setup\",\n    \"retry\"\n  ]\n}\n"
	want := Results{"a": passed(), "b": outcome("Setup", "retry")}
	for _, tt := range []struct {
		name, output string
		want         Results
		fails        bool
	}{
		{name: "alone", output: document, want: want},
		{name: "after remarks", output: "ERROR: {x}\nmore\n" + document, want: want},
		{name: "empty", output: "", fails: true},
		{name: "remarks alone", output: "ERROR\n", fails: true},
		{name: "cut", output: document[:len(document)/2], fails: true},
		{name: "no results", output: "{\n\"a\": \"x\"\n}", fails: true},
		{name: "half a pair", output: "{\n\"a\": [\"Setup\"]\n}", fails: true},
		{name: "false", output: "{\n\"a\": 7\n}", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseResults(tt.output)
			if (err != nil) != tt.fails {
				t.Fatalf("error %v, want one: %v", err, tt.fails)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOutcomeRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []Outcome{passed(), outcome("Assertion", `says "no"`)} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Outcome
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Errorf("%+v became %s, then %+v (%v)", want, data, got, err)
		}
	}
}

func TestParseEnvoyVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ said, want string }{
		{"\n/opt/a/b/envoy  version: 1a2b3c/1.40.0/Clean/RELEASE/BoringSSL\n\n", "1.40.0"},
		{"/opt/a/b/envoy: not found", ""},
		{"version: 1a2b3c", ""},
	} {
		if got, ok := parseEnvoyVersion(tt.said); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%q: %q, %v, want %q", tt.said, got, ok, tt.want)
		}
	}
}
