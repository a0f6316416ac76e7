package policydir

import (
	"strings"
	"testing"
)

func TestFaultLine(t *testing.T) {
	t.Parallel()
	flow := "a: {b: 1,\n  c: 2,\n  d: [1,\n   2]}\n" // four lines that can be read only together
	tests := []struct {
		name, text string
		want       int
	}{
		{"brace that is not closed", "a: 1\nb: {c: 1\nd: 2\n", 2},
		{"quote that is not closed", "a: 1\nb: \"c\nd: 2\n", 2},
		{"key at the wrong depth", "a:\n    b: 1\n    c: 2\n  d: 3\ne: 4\n", 4},
		{"list item among keys", "a: 1\nb: 2\n- c\nd: 3\n", 3},
		{"in the first line", "a: }\nb: 1\n", 1},
		{"in the last line, without an end", "a: 1\nb: 2\nc: }", 3},
		{"tab", "a:\n\tb: 1\n", 2},
		{"control character", "a: 1\nb: \x01\nc: 1\n", 2},
		{"not UTF-8", "a: 1\nb: \xff\nc: 1\n", 2},
		{"after values over several lines", strings.Repeat(flow, 50) + "b: }\n" + strings.Repeat("c: 1\n", 90), 201},
		{"in the second document", "a: 1\n---\nb: 1\nc: }\n---\nd: 1\n", 4},
		{"undefined alias", "a: 1\nb: *none\nc: 1\n", 2},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if readable([]byte(tc.text)) {
				t.Fatal("this is YAML")
			}
			if got := faultLine([]byte(tc.text)); got != tc.want {
				t.Errorf("line %d, want %d", got, tc.want)
			}
		})
	}
}
