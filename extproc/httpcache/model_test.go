package httpcache

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// scene is a request and its response in parts, so that a model can say what
// must happen without reading header fields.
type scene struct {
	status                               int
	noStore, noCache, private, public    bool
	mustRevalidate, mustUnderstand       bool
	maxAge, sMaxAge, expires, age, pause int // seconds; -1: absent
	modifiedBefore                       int // seconds before Date; -1: absent
	etag, authorization                  bool
	vary, firstFoo, secondFoo            string
}

func drawScene(t *rapid.T) scene {
	flag := func(name string) bool { return rapid.IntRange(0, 4).Draw(t, name) == 0 }
	number := func(name string) int { return rapid.SampledFrom([]int{-1, -1, 0, 1, 60, 100}).Draw(t, name) }
	foo := rapid.SampledFrom([]string{"", "1", "2"})
	return scene{
		status:  rapid.SampledFrom([]int{200, 200, 200, 206, 302, 304, 404, 416, 429, 500, 503, 599}).Draw(t, "status"),
		noStore: flag("no-store"), noCache: flag("no-cache"), private: flag("private"), public: flag("public"),
		mustRevalidate: flag("must-revalidate"), mustUnderstand: flag("must-understand"),
		maxAge: number("max-age"), sMaxAge: number("s-maxage"), expires: number("Expires"), age: number("Age"),
		pause: rapid.IntRange(0, 120).Draw(t, "pause"), modifiedBefore: rapid.SampledFrom([]int{-1, 0, 1000}).Draw(t,
			"Last-Modified"),
		etag: flag("ETag"), authorization: flag("Authorization"),
		vary:     rapid.SampledFrom([]string{"", "", "foo", "*"}).Draw(t, "Vary"),
		firstFoo: foo.Draw(t, "first Foo"), secondFoo: foo.Draw(t, "second Foo"),
	}
}

// expect is RFC 9111 §3, §3.5, §4, §4.1, §4.2 read once more, as plainly as it
// can be written.
func (s *scene) expect() outcome {
	heuristic := s.status == 200 || s.status == 404 || s.public
	switch {
	case s.unstorable(), s.vary == "*", s.vary == "foo" && s.firstFoo != s.secondFoo:
		return notCached
	case !s.noCache && s.lifetime(heuristic) > 10*(max(s.age, 0)+s.pause):
		return cached
	case s.etag, s.modifiedBefore >= 0:
		return validated
	}
	return notCached
}

func (s *scene) unstorable() bool {
	switch {
	case slices.Contains([]int{206, 304, 416, 429}, s.status):
		return true
	case s.mustUnderstand && s.status == 599, s.noStore && !s.mustUnderstand, s.private:
		return true
	}
	return s.authorization && !s.public && !s.mustRevalidate && s.sMaxAge < 0
}

// lifetime is in tenths of a second, for the tenth that is heuristic.
func (s *scene) lifetime(heuristic bool) int {
	switch {
	case s.sMaxAge >= 0:
		return 10 * s.sMaxAge
	case s.maxAge >= 0:
		return 10 * s.maxAge
	case s.expires >= 0:
		return 10 * s.expires
	case heuristic && s.modifiedBefore >= 0 && !s.authorization:
		return s.modifiedBefore
	}
	return 0
}

func (s *scene) directives() string {
	var d []string
	for name, set := range map[string]bool{"no-store": s.noStore, "no-cache": s.noCache, "private": s.private,
		"public": s.public, "must-revalidate": s.mustRevalidate, "must-understand": s.mustUnderstand} {
		if set {
			d = append(d, name)
		}
	}
	for name, value := range map[string]int{"max-age": s.maxAge, "s-maxage": s.sMaxAge} {
		if value >= 0 {
			d = append(d, fmt.Sprintf("%s=%d", name, value))
		}
	}
	return strings.Join(d, ", ")
}

func (s *scene) response() *Response {
	lines := []string{"Date: " + at(0), "Cache-Control: " + s.directives()}
	if s.expires >= 0 {
		lines = append(lines, "Expires: "+at(s.expires))
	}
	if s.age >= 0 {
		lines = append(lines, fmt.Sprintf("Age: %d", s.age))
	}
	if s.modifiedBefore >= 0 {
		lines = append(lines, "Last-Modified: "+at(-s.modifiedBefore))
	}
	if s.etag {
		lines = append(lines, `ETag: "a"`)
	}
	if s.vary != "" {
		lines = append(lines, "Vary: "+s.vary)
	}
	return response(s.status, lines...)
}

// An answer is served from the store exactly when the model allows it.
func TestPropertyServedAsTheModelSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		var first, second []string
		if s.authorization {
			first = append(first, "Authorization: x")
		}
		if s.firstFoo != "" {
			first = append(first, "Foo: "+s.firstFoo)
		}
		if s.secondFoo != "" {
			second = append(second, "Foo: "+s.secondFoo)
		}
		got := replay(get(first...), s.response(), get(second...), time.Duration(s.pause)*time.Second)
		if want := s.expect(); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	})
}
