package httpcache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// RFC 9110 §12.5.5.
func TestParseVary(t *testing.T) {
	t.Parallel()
	anything := Vary{Any: true}
	for _, tt := range []struct {
		lines []string
		want  Vary
	}{
		{nil, Vary{}},
		{[]string{""}, Vary{}},
		{[]string{" , ,"}, Vary{}},
		{[]string{"Foo"}, Vary{Names: []string{"foo"}}},
		{[]string{"foo, BAR ,foo", "baz"}, Vary{Names: []string{"bar", "baz", "foo"}}},
		{[]string{"*"}, anything},
		{[]string{"*, *"}, anything},
		{[]string{"*", "*"}, anything},
		{[]string{", *"}, anything},
		{[]string{"", "*"}, anything},
		{[]string{"*, Foo"}, anything},
		{[]string{"Foo, *"}, anything},
		{[]string{"foo bar"}, anything},
		{[]string{`"foo"`}, anything},
		{[]string{"foo;q=1"}, anything},
		{[]string{manyNames(maxVaryNames)}, Vary{Names: strings.Split(manyNames(maxVaryNames), ",")}},
		{[]string{manyNames(maxVaryNames + 1)}, anything},
		{[]string{strings.Repeat("a,", 1000)}, Vary{Names: []string{"a"}}},
	} {
		f := fields("x: vary")
		for _, line := range tt.lines {
			f = append(f, Field{"vary", line})
		}
		if diff := cmp.Diff(tt.want, ParseVary(f)); diff != "" {
			t.Errorf("Vary %q: (-want +got)\n%s", tt.lines, diff)
		}
	}
}

func manyNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%03d", i)
	}
	return strings.Join(names, ",")
}

// RFC 9111 §4.1.
func TestSameVariant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		vary      string
		stored    []string // lines of the stored request
		presented []string
		want      bool
	}{
		{"no Vary", "", []string{"foo: 1"}, []string{"foo: 2"}, true},
		{"same", "foo", []string{"foo: 1"}, []string{"foo: 1"}, true},
		{"other", "foo", []string{"foo: 1"}, []string{"foo: 2"}, false},
		{"fields that Vary does not name", "foo", []string{"foo: 1", "bar: 1"}, []string{"foo: 1", "bar: 2"}, true},
		{"absent in the stored request", "foo", nil, []string{"foo: 1"}, false},
		{"absent in the presented one", "foo", []string{"foo: 1"}, nil, false},
		{"absent in both", "foo, bar", []string{"foo: 1"}, []string{"foo: 1"}, true},
		{"absent is not empty", "foo", nil, []string{"foo:"}, false},
		{"absent is not an empty list", "foo", nil, []string{"foo: ,"}, false},
		{"empty is not absent", "foo", []string{"foo:"}, nil, false},
		{"nor the mark for it", "foo", nil, []string{"foo: " + Absent}, false},
		{"three, one differs", "foo, bar, baz", []string{"foo: 1", "bar: abc", "baz: 789"},
			[]string{"foo: 1", "baz: 789", "bar: abcde"}, false},
		{"three, another order of the fields", "baz, foo, bar", []string{"foo: 1", "bar: abc", "baz: 789"},
			[]string{"foo: 1", "baz: 789", "bar: abc"}, true},
		{"two values do not slide into one another", "a, b", []string{"a: 1", "b: 2,3"}, []string{"a: 1,2", "b: 3"}, false},

		{"lines are joined", "foo", []string{"foo: 1, 2"}, []string{"foo: 1", "foo: 2"}, true},
		{"in their order", "foo", []string{"foo: 1, 2"}, []string{"foo: 2", "foo: 1"}, false},
		{"all of them count", "accept-encoding", []string{"accept-encoding: gzip", "accept-encoding: br"},
			[]string{"accept-encoding: gzip"}, false},
		{"whitespace around commas", "foo", []string{"foo: 1,2"}, []string{"foo:  1, 2 "}, true},
		{"tabs too", "foo", []string{"foo: 1,2"}, []string{"foo: 1\t,\t2\t"}, true},
		{"empty members", "foo", []string{"foo: 1,2"}, []string{"foo: ,1,, 2,"}, true},
		{"an empty line", "foo", []string{"foo: 1,2"}, []string{"foo: 1", "foo:", "foo: 2"}, true},
		{"whitespace within a member stays", "foo", []string{"foo: a b"}, []string{"foo: ab"}, false},
		{"but how much of it does not matter", "foo", []string{"foo: a b"}, []string{"foo: a \t b"}, true},
		{"a comma in quotes is no list", "foo", []string{`foo: "a,b"`}, []string{`foo: "a, b"`}, false},
		{"an escaped quote does not end them", "foo", []string{`foo: "a\",b"`}, []string{`foo: "a\", b"`}, false},
		{"after the quotes it is one", "foo", []string{`foo: "a" , b`}, []string{`foo: "a",b`}, true},
		{"quotes that do not end", "foo", []string{`foo: "a, b`}, []string{`foo: "a,b`}, false},

		{"case counts", "foo", []string{"foo: a"}, []string{"foo: A"}, false},
		{"but not that of codings", "accept-encoding", []string{"accept-encoding: gzip"},
			[]string{"accept-encoding: GZip"}, true},
		{"nor of languages", "accept-language", []string{"accept-language: en, de"},
			[]string{"accept-language: eN ,   De"}, true},
		{"the order may count", "accept-language", []string{"accept-language: en, de"},
			[]string{"accept-language: de, en"}, false},
		{"whitespace in what is no list", "user-agent", []string{"user-agent: a (b, c)"},
			[]string{"user-agent: a (b,c)"}, false},
		{"nor in a cookie", "cookie", []string{"cookie: a=1,2"}, []string{"cookie: a=1, 2"}, false},
		{"a quote in what is no list", "user-agent", []string{`user-agent: a "b`}, []string{`user-agent: a "b`}, true},
		{"a value built to collide", "accept-encoding", []string{"accept-encoding: br,gzip,xxx,jdcqiab"},
			[]string{"accept-encoding: gzip"}, false},
		{"a long value", "foo", []string{"foo: " + strings.Repeat("x", 5000)}, []string{"foo: " + strings.Repeat("x",
			5000)}, true},
		{"a long value that differs at the end", "foo", []string{"foo: " + strings.Repeat("x", 5000)},
			[]string{"foo: " + strings.Repeat("x", 4999) + "y"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := ParseVary(fields("vary: " + tt.vary))
			values := v.Select(fields(tt.stored...))
			wantEqual(t, "SameVariant", SameVariant(v.Names, values, fields(tt.presented...)), tt.want)
			presented := v.Select(fields(tt.presented...))
			wantEqual(t, "same selected values", cmp.Equal(values, presented), tt.want)
		})
	}
}

func TestSameVariantOfBrokenEntry(t *testing.T) {
	t.Parallel()
	if SameVariant([]string{"a", "b"}, []string{"1"}, fields("a: 1")) {
		t.Error("an entry with fewer values than names matches")
	}
}

// Fields that are no list keep the whitespace beside a comma (RFC 9110 §5.5).
func TestSameVariantSingletons(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"user-agent", "cookie", "authorization", "proxy-authorization", "referer", "date",
		"if-modified-since", "if-unmodified-since", "if-range"} {
		values := Vary{Names: []string{name}}.Select(Fields{{name, "Mon, 30"}})
		wantEqual(t, name, SameVariant([]string{name}, values, Fields{{name, "Mon,30"}}), false)
		wantEqual(t, name, SameVariant([]string{name}, values, Fields{{name, " Mon, 30 "}}), true)
	}
}
