package main

import (
	"bytes"
	"os"
	"testing"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		bar   bool
		total int
		steps []int
		want  string
	}{
		{name: "lines", total: 40, steps: []int{0, 1, 3, 4, 21, 40, 40},
			want: "  0 %  0 of 40\n 10 %  4 of 40\n 50 %  21 of 40\n100 %  40 of 40\n"},
		{name: "a bar", bar: true, total: 40, steps: []int{0, 10},
			want: "\r[░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░]   0 % 0/40" +
				"\r[██████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░]  25 % 10/40\n"},
		{name: "of nothing", steps: []int{0}, want: "100 %  0 of 0\n"},
	}
	for _, tt := range tests {
		var b bytes.Buffer
		p := newProgress(&b, tt.total)
		p.bar = tt.bar
		for _, done := range tt.steps {
			p.show(done)
		}
		p.end()
		if b.String() != tt.want {
			t.Errorf("%s:\n%q, want\n%q", tt.name, b.String(), tt.want)
		}
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if isTerminal(file) || isTerminal(&bytes.Buffer{}) {
		t.Error("a file or a buffer is a terminal")
	}
}
