package translate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"short", strings.Repeat("a", maxMessage), strings.Repeat("ä", maxMessage)} {
		got := yes("Accepted", text).Message
		if len(got) > maxMessage || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
		}
		if len(text) <= maxMessage && got != text {
			t.Error("cut without need")
		}
	}
}

func TestExamples(t *testing.T) {
	t.Parallel()
	var e examples
	made := 0
	say := func(s string) func() string {
		return func() string {
			made++
			return s
		}
	}
	if got := e.String(); got != "" {
		t.Errorf("nothing to say: %q", got)
	}
	same := &rule{}
	for _, s := range []string{"A.", "B."} {
		e.add(same, say(s)) // twice about one rule
	}
	e.add(&rule{}, say("C."))
	if got, want := e.String(), "A. C."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 10 {
		e.add(nil, say("D."))
	}
	if got, want := e.String(), "A. C. D. And 9 more."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if made != maxExamples {
		t.Errorf("%d sentences were made, %d are said", made, maxExamples)
	}
	var once examples
	for _, s := range []string{"A.", "", "A.", "B.", "C.", "D."} {
		once.once(s)
	}
	if got, want := once.String(), "A. B. C."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
