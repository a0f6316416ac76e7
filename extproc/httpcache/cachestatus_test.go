package httpcache

import (
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// RFC 9211 §2.
func TestAppendCacheStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		existing string
		in       CacheStatus
		want     string
	}{
		{"hit", "", CacheStatus{Hit: true, TTL: 376, HasTTL: true}, "weir; hit; ttl=376"},
		{"stale hit", "", CacheStatus{Hit: true, TTL: -3, HasTTL: true}, "weir; hit; ttl=-3"},
		{"a ttl of 0", "", CacheStatus{Hit: true, HasTTL: true}, "weir; hit; ttl=0"},
		{"after the origin's", "OriginCache; hit; ttl=5", CacheStatus{Hit: true}, "OriginCache; hit; ttl=5, weir; hit"},
		{"after several", `a; hit,"b c";fwd=miss`, CacheStatus{Hit: true}, `a; hit,"b c";fwd=miss, weir; hit`},
		{"miss, stored", "", CacheStatus{Fwd: FwdURIMiss, Stored: true}, "weir; fwd=uri-miss; stored"},
		{"validated", "", CacheStatus{Fwd: FwdStale, FwdStatus: 304}, "weir; fwd=stale; fwd-status=304"},
		{"collapsed", "", CacheStatus{Fwd: FwdURIMiss, Collapsed: true}, "weir; fwd=uri-miss; collapsed"},
		{"all", "", CacheStatus{Fwd: FwdMiss, FwdStatus: 200, TTL: 5, HasTTL: true, Stored: true, Collapsed: true,
			Detail: "x"},
			"weir; fwd=miss; fwd-status=200; ttl=5; stored; collapsed; detail=x"},
		{"a hit was not forwarded (§2.1)", "", CacheStatus{Hit: true, Fwd: FwdMiss, FwdStatus: 200, Stored: true,
			Collapsed: true},
			"weir; hit"},
		{"nothing to say", "", CacheStatus{}, "weir"},
		{"a reason", "", CacheStatus{Fwd: FwdBypass, Detail: string(ReasonSetCookie)},
			"weir; fwd=bypass; detail=set-cookie"},
		{"words", "", CacheStatus{Detail: `say "a\b"`}, `weir; detail="say \"a\\b\""`},
		{"what no String can hold", "", CacheStatus{Detail: "a~ \x00\r\n\x7fü"}, `weir; detail="a~ ??????"`},
		{"a token that is none", "", CacheStatus{Fwd: "a b, c; hit"}, "weir; fwd=miss"},
		{"absurd numbers", "", CacheStatus{FwdStatus: 1 << 62, TTL: -1 << 62, HasTTL: true},
			"weir; fwd-status=999999999999999; ttl=-999999999999999"},
		{"a long detail is cut", "", CacheStatus{Detail: strings.Repeat("a", 500)},
			"weir; detail=" + strings.Repeat("a", maxDetail)},

		{"no list there", "OriginCache; hit; ttl=", CacheStatus{Hit: true}, "weir; hit"},
		{"a trailing comma", "OriginCache; hit,", CacheStatus{Hit: true}, "weir; hit"},
		{"an empty member", "a,,b", CacheStatus{Hit: true}, "weir; hit"},
		{"line breaks", "a\r\nb", CacheStatus{Hit: true}, "weir; hit"},
		{"only spaces", "  ", CacheStatus{Hit: true}, "weir; hit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := string(AppendCacheStatus([]byte("x: "), tt.existing, tt.in))
			wantEqual(t, "Cache-Status", got, "x: "+tt.want)
			if _, err := httpsfv.UnmarshalList([]string{tt.want}); err != nil {
				t.Errorf("%q is no list: %v", tt.want, err)
			}
		})
	}
}

// RFC 9651 §4.2, case by case; FuzzCacheStatus holds the whole against httpsfv.
func TestValidList(t *testing.T) {
	t.Parallel()
	valid := []string{
		"a", " a", "a, b", "a,b", "a \t,\t b ", "*a", "a/b:c", "A!#$%&'*+-.^_`|~",
		"1", "-1", "999999999999999", "1.5", "-1.125", "123456789012.1",
		`"a"`, `""`, `"a\"b\\"`, "?0", "?1", ":YWJj:", "::", ":YWI=:", "@1659578233", "@-1",
		`%"a%c3%bc"`, `%""`, `%"%25"`,
		"(a b)", "()", "( a  b )", `(a;x "b";y);z, c`,
		"a;b", "a;b;c=1", "a; b=?0", "a;*b=c", "a;b=c;b=d",
	}
	invalid := []string{
		"", " ", ",", "a,", "a,,b", "a b", "\ta", "é", "_a",
		"-", "1000000000000000", "1.", "1.1234", "1234567890123.1", ".5", "--1",
		`"`, `"a`, `"a\`, `"a\b"`, "\"a\x00\"", `"ü"`, "?", "?2", ":", ":a:", ":YWJj", ":Y!==:", "@", "@1.5",
		`%`, `%"`, `%"a`, `%"%C3%BC"`, `%"%c3"`, `%"%"`, `%"%ff"`, `%"ü"`,
		"(", "(a", "(a,b)", "(a(b))", ")", `(a"b")`,
		"a;", "a;B", "a;1b", "a;b=", "a ;b", "a;b =c",
	}
	for _, in := range valid {
		wantEqual(t, in, validList(in), true)
	}
	for _, in := range invalid {
		wantEqual(t, in, validList(in), false)
	}
}
