package httpcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// RFC 9111 §3.2, §4.3.4.
func TestFreshen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		stored, from304 Fields
		want            Fields
	}{
		{"what came replaces, what did not stays",
			fields("A: 1", "B: 2", "B: 3"), fields("B: 4", "C: 5", "C: 6"),
			fields("A: 1", "B: 4", "C: 5", "C: 6")},
		{"nothing came", fields("A: 1"), nil, fields("A: 1")},
		{"a new lifetime", fields("Cache-Control: max-age=1", "Expires: x", "Date: d"),
			fields("Cache-Control: max-age=3600", "Date: e"),
			fields("Expires: x", "Cache-Control: max-age=3600", "Date: e")},
		{"what describes the stored body stays",
			fields("Content-Length: 36", "Content-Encoding: br", "Content-MD5: x", "Content-Digest: d"),
			fields("Content-Length: 0", "Content-Encoding: gzip", "Content-MD5: y", "Content-Range: z", "Content-Digest: e"),
			fields("Content-Length: 36", "Content-Encoding: br", "Content-MD5: x", "Content-Digest: d")},
		{"other Content-* fields are as any",
			fields("Content-Type: a", "Content-Location: /a", "Content-Foo: 1"),
			fields("Content-Type: b", "Content-Location: /b", "Content-Foo: 2"),
			fields("Content-Type: b", "Content-Location: /b", "Content-Foo: 2")},
		{"a stored entity tag stays", fields(`ETag: "a"`), fields(`ETag: W/"a"`), fields(`ETag: "a"`)},
		{"one that was missing is added", fields("A: 1"), fields(`ETag: "a"`), fields("A: 1", `ETag: "a"`)},
		{"fields of the connection do not come in",
			fields("A: 1", "B: 1"), fields("Connection: b", "B: 2", "Keep-Alive: x", "Transfer-Encoding: x",
				"Proxy-Authenticate: x"),
			fields("A: 1", "B: 1")},
		{"no cookie, no Age", fields("A: 1"), fields("Set-Cookie: sid=1", "Age: 7"), fields("A: 1")},
		{"fields that the new directives list go",
			fields("Cache-Control: max-age=1", "A: 1", "B: 1"), fields(`Cache-Control: no-cache="a", private="c"`, "C: 1"),
			fields("B: 1", `Cache-Control: no-cache="a", private="c"`)},
		{"Vary is updated", fields("Vary: a"), fields("Vary: b"), fields("Vary: b")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stored, came := append(Fields(nil), tt.stored...), append(Fields(nil), tt.from304...)
			if diff := cmp.Diff(tt.want, Freshen(tt.stored, tt.from304)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !cmp.Equal(stored, tt.stored) || !cmp.Equal(came, tt.from304) {
				t.Error("an argument was changed")
			}
		})
	}
}

// RFC 9111 §4.3.4, §4.3.3.
func TestIdentifies(t *testing.T) {
	t.Parallel()
	lm, other := "Last-Modified: "+at(-60), "Last-Modified: "+at(-61)
	sentA := fields(`If-None-Match: "a"`)
	for _, tt := range []struct {
		name            string
		stored, from304 Fields
		identifies      bool
		validated       bool // our request named "a" and no other
	}{
		{"the same strong tag", fields(`ETag: "a"`), fields(`ETag: "a"`), true, true},
		{"the same strong tag, another date", fields(`ETag: "a"`, lm), fields(`ETag: "a"`, other), true, true},
		{"another strong tag", fields(`ETag: "a"`), fields(`ETag: "b"`), false, true},
		{"another strong tag, not ours", fields(`ETag: "c"`), fields(`ETag: "b"`), false, false},
		{"a strong tag of a weak one", fields(`ETag: W/"a"`), fields(`ETag: "a"`), false, false},
		{"a weak tag that corresponds", fields(`ETag: "a"`), fields(`ETag: W/"a"`), true, true},
		{"a weak tag that does not", fields(`ETag: "c"`), fields(`ETag: W/"b"`), false, false},
		{"the same date", fields(lm), fields(lm), true, true},
		{"the same date in another form", fields("Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT"),
			fields("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"), true, true},
		{"another date", fields(lm), fields(other), false, false},
		{"a date, and none stored", fields("A: 1"), fields(lm), false, false},
		{"a tag, none stored, the same date", fields(lm), fields(lm, `ETag: "a"`), true, true},
		{"a tag, none stored, no date", fields(lm), fields(`ETag: "a"`), false, false},
		{"no validator on either side", fields("A: 1"), fields("A: 2"), true, true},
		{"no validator came", fields(`ETag: "a"`), fields("A: 2"), false, true},
		{"no validator came, a date is stored", fields(lm), fields("A: 2"), false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantEqual(t, "Identifies", Identifies(tt.stored, tt.from304), tt.identifies)
			wantEqual(t, "Validated", Validated(tt.stored, sentA, tt.from304), tt.validated)
		})
	}
}

// A request that named more tags than ours leaves open which one the 304 means.
func TestSameStrongTag(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`"a"`, `"a"`, true}, {`"a"`, `"b"`, false}, {`W/"a"`, `W/"a"`, false}, {`W/"a"`, `"a"`, false}, {"", "", false},
		{`"a"`, "", false}, {"a", "a", false},
	} {
		a, b := fields("X: y"), fields("X: y")
		if tt.a != "" {
			a = a.with("etag", tt.a)
		}
		if tt.b != "" {
			b = b.with("etag", tt.b)
		}
		wantEqual(t, tt.a+" "+tt.b, SameStrongTag(a, b), tt.want)
	}
}

func TestValidatedNeedsOurTagAlone(t *testing.T) {
	t.Parallel()
	stored, came := fields(`ETag: "a"`), fields(`ETag: "b"`)
	wantEqual(t, "two tags", Validated(stored, fields(`If-None-Match: "a", "b"`), came), false)
	wantEqual(t, "none", Validated(stored, nil, came), false)
	wantEqual(t, "no tag stored, none sent", Validated(fields(), nil, came), false)
}

// RFC 9111 §4.3.5.
func TestHeadFreshens(t *testing.T) {
	t.Parallel()
	lm := "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"
	for _, tt := range []struct {
		name         string
		stored, head Fields
		ok           bool
	}{
		{"no validators", fields("A: 1"), fields("A: 2"), true},
		{"the same", fields(`ETag: "a"`, lm, "Content-Length: 5"), fields(`ETag: "a"`, lm, "Content-Length: 5"), true},
		{"not received", fields(`ETag: "a"`, lm, "Content-Length: 5"), fields("A: 1"), true},
		{"another tag", fields(`ETag: "a"`), fields(`ETag: "b"`), false},
		{"a weaker tag", fields(`ETag: "a"`), fields(`ETag: W/"a"`), false},
		{"a tag, none stored", fields("A: 1"), fields(`ETag: "a"`), false},
		{"another date", fields(lm), fields("Last-Modified: " + at(0)), false},
		{"the same date in another form", fields(lm), fields("Last-Modified: Sun Nov  6 08:49:37 1994"), true},
		{"another length", fields("Content-Length: 5"), fields("Content-Length: 6"), false},
		{"a length, none stored", fields("A: 1"), fields("Content-Length: 6"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, invalidate := HeadFreshens(tt.stored, tt.head)
			wantEqual(t, "ok", got, tt.ok)
			wantEqual(t, "invalidate", invalidate, !tt.ok)
		})
	}
}
