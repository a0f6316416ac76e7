package httpcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// RFC 9110 §13.1.2, §8.8.3.2.
func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		etag string // stored; "" for none
		inm  []string
		want Precondition
	}{
		{`"a"`, []string{`"a"`}, NotModified},
		{`"a"`, []string{`"b"`}, Full},
		{`"a"`, []string{`"A"`}, Full},
		{`"a"`, []string{`W/"a"`}, NotModified},
		{`W/"a"`, []string{`"a"`}, NotModified},
		{`W/"a"`, []string{`W/"a"`}, NotModified},
		{`"a"`, []string{`"a", "b", "c"`}, NotModified},
		{`"a"`, []string{`"b", "a" , "c"`}, NotModified},
		{`"a"`, []string{`"b","c","a"`}, NotModified},
		{`"a"`, []string{`"b"`, `"a"`}, NotModified},
		{`"a"`, []string{` ,, "a"`}, NotModified},
		{`"a,b"`, []string{`"x", "a,b"`}, NotModified},
		{`"b"`, []string{`"a,b"`}, Full},
		{`b"`, []string{`"a,b"`}, Full},
		{`""`, []string{`""`}, NotModified},
		{`""`, []string{``}, Full},
		{`"a\"`, []string{`"a\"`}, NotModified}, // nothing is escaped in an entity tag
		{`"a"`, []string{`*`}, NotModified},
		{"", []string{`*`}, NotModified},
		{"", []string{`"a"`}, Full},
		{"", []string{``}, Full},
		{`"a"`, []string{``}, Full},
		{`"abcdefü"`, []string{`"abcdefü"`}, NotModified},
		{`abc`, []string{`abc`}, NotModified},
		{`w/"a"`, []string{`w/"a"`}, NotModified},
		{`W"a"`, []string{`W"a"`}, NotModified},
		{`"a"`, []string{`"`}, Full},
		{`"`, []string{`"`}, NotModified},
	} {
		stored, req := fields("a: b"), Fields(nil)
		if tt.etag != "" {
			stored = append(stored, Field{"etag", tt.etag})
		}
		for _, line := range tt.inm {
			req = append(req, Field{"if-none-match", line})
		}
		if got := EvaluatePreconditions(req, stored, 200); got != tt.want {
			t.Errorf("If-None-Match %q of %q = %v, want %v", tt.inm, tt.etag, got, tt.want)
		}
	}
}

// RFC 9110 §13.1.3, RFC 9111 §4.3.2.
func TestIfModifiedSince(t *testing.T) {
	t.Parallel()
	modified := []string{"Last-Modified: " + at(-3000), "Date: " + at(0)}
	for _, tt := range []struct {
		name   string
		stored []string
		ims    []string
		want   Precondition
	}{
		{"the same", modified, []string{at(-3000)}, NotModified},
		{"later", modified, []string{at(-2000)}, NotModified},
		{"a second before", modified, []string{at(-3001)}, Full},
		{"RFC 850", modified, []string{"Monday, 30-Nov-26 11:10:00 GMT"}, NotModified},
		{"asctime", modified, []string{"Mon Nov 30 11:10:00 2026"}, NotModified},
		{"invalid", modified, []string{"yesterday"}, Full},
		{"two that differ", modified, []string{at(-3000), at(-2000)}, Full},
		{"no Last-Modified: Date, earlier", []string{"Date: " + at(0)}, []string{at(-3000)}, Full},
		{"no Last-Modified: Date, the same", []string{"Date: " + at(0)}, []string{at(0)}, NotModified},
		{"neither", nil, []string{at(0)}, Full},
		{"an invalid Last-Modified", []string{"Last-Modified: x", "Date: " + at(0)}, []string{at(0)}, Full},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var req Fields
			for _, line := range tt.ims {
				req = append(req, Field{"if-modified-since", line})
			}
			wantEqual(t, "outcome", EvaluatePreconditions(req, fields(tt.stored...), 200), tt.want)
		})
	}
}

// RFC 9110 §13.2.1, §13.2.2.
func TestPreconditionPrecedence(t *testing.T) {
	t.Parallel()
	stored := fields(`ETag: "a"`, "Last-Modified: "+at(-3000), "Date: "+at(0))
	for _, tt := range []struct {
		name   string
		status int
		req    Fields
		want   Precondition
	}{
		{"unconditional", 200, fields("Accept: x"), Full},
		{"If-None-Match matches, If-Modified-Since does not", 200,
			fields("If-Modified-Since: "+at(-5000), `If-None-Match: "a"`), NotModified},
		{"the other way round", 200, fields(`If-None-Match: "b"`, "If-Modified-Since: "+at(0)), Full},
		{"an empty If-None-Match still beats it", 200, fields("If-None-Match:", "If-Modified-Since: "+at(0)), Full},
		{"not where the answer is no 2xx", 404, fields(`If-None-Match: "a"`), Full},
		{"nor a redirect", 301, fields("If-None-Match: *"), Full},
		{"but of any 2xx", 203, fields(`If-None-Match: "a"`), NotModified},
		{"If-Match and If-Unmodified-Since are for the origin", 200,
			fields(`If-Match: "b"`, "If-Unmodified-Since: "+at(-9000)), Full},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantEqual(t, "outcome", EvaluatePreconditions(tt.req, stored, tt.status), tt.want)
		})
	}
}

func TestStripConditionals(t *testing.T) {
	t.Parallel()
	if got := StripConditionals(fields("Accept: x", "Cookie: y")); got != nil {
		t.Errorf("of an unconditional request = %q, want nil", got)
	}
	got := StripConditionals(fields("Range: a", "If-None-Match: b", "X: y", "If-None-Match: c", "If-Range: d",
		"If-Match: e", "If-Modified-Since: f", "If-Unmodified-Since: g"))
	want := []string{"range", "if-none-match", "if-range", "if-match", "if-modified-since", "if-unmodified-since"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// RFC 9111 §4.3.1: the values go to the origin byte for byte.
func TestValidators(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		stored Fields
		want   Fields
	}{
		{"none", fields("Date: " + at(0)), nil},
		{"an entity tag", fields(`ETag: W/"a"`), fields(`If-None-Match: W/"a"`)},
		{"one without quotes", fields("ETag: a"), fields("If-None-Match: a")},
		{"an empty one", fields("ETag:"), nil},
		{"a date, in the form it came", fields("Last-Modified: Sun Nov  6 08:49:37 1994"),
			fields("If-Modified-Since: Sun Nov  6 08:49:37 1994")},
		{"an invalid date", fields("Last-Modified: 0"), nil},
		{"both", fields("Last-Modified: "+at(0), `ETag: "a"`), fields(`If-None-Match: "a"`, "If-Modified-Since: "+at(0))},
	} {
		if diff := cmp.Diff(tt.want, Validators(tt.stored)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}
