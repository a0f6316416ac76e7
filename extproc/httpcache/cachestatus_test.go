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
		{"all", "", CacheStatus{Fwd: FwdMiss, FwdStatus: 200, TTL: 5, HasTTL: true, Stored: true, Collapsed: true, Detail: "x"},
			"weir; fwd=miss; fwd-status=200; ttl=5; stored; collapsed; detail=x"},
		{"a hit was not forwarded (§2.1)", "", CacheStatus{Hit: true, Fwd: FwdMiss, FwdStatus: 200, Stored: true, Collapsed: true},
			"weir; hit"},
		{"nothing to say", "", CacheStatus{}, "weir"},
		{"a reason", "", CacheStatus{Fwd: FwdBypass, Detail: string(ReasonSetCookie)}, "weir; fwd=bypass; detail=set-cookie"},
		{"words", "", CacheStatus{Detail: `say "a\b"`}, `weir; detail="say \"a\\b\""`},
		{"what no String can hold", "", CacheStatus{Detail: "a\x00\r\n\x7fü"}, `weir; detail="a??????"`},
		{"a token that is none", "", CacheStatus{Fwd: "a b, c; hit"}, "weir; fwd=miss"},
		{"absurd numbers", "", CacheStatus{FwdStatus: 1 << 62, TTL: -1 << 62, HasTTL: true},
			"weir; fwd-status=999999999999999; ttl=-999999999999999"},
		{"a long detail is cut", "", CacheStatus{Detail: strings.Repeat("a", 500)}, "weir; detail=" + strings.Repeat("a", maxDetail)},

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
	for in, want := range map[string]bool{
		"a": true, " a": true, "a, b": true, "a,b": true, "a \t,\t b ": true, "*a": true, "a/b:c": true, "A!#$%&'*+-.^_`|~": true,
		"": false, " ": false, ",": false, "a,": false, "a,,b": false, "a b": false, "\ta": false, "é": false, "_a": false,
		"1": true, "-1": true, "999999999999999": true, "1.5": true, "-1.125": true, "123456789012.1": true,
		"-": false, "1000000000000000": false, "1.": false, "1.1234": false, "1234567890123.1": false, ".5": false, "--1": false,
		`"a"`: true, `""`: true, `"a\"b\\"`: true,
		`"`: false, `"a`: false, `"a\`: false, `"a\b"`: false, "\"a\x00\"": false, `"ü"`: false,
		"?0": true, "?1": true, "?": false, "?2": false,
		":YWJj:": true, "::": true, ":YWI=:": true, ":": false, ":a:": false, ":YWJj": false, ":Y!==:": false,
		"@1659578233": true, "@-1": true, "@": false, "@1.5": false,
		`%"a%c3%bc"`: true, `%""`: true, `%"%25"`: true,
		`%`: false, `%"`: false, `%"a`: false, `%"%C3%BC"`: false, `%"%c3"`: false, `%"%"`: false, `%"%ff"`: false, `%"ü"`: false,
		"(a b)": true, "()": true, "( a  b )": true, `(a;x "b";y);z, c`: true,
		"(": false, "(a": false, "(a,b)": false, "(a(b))": false, ")": false, `(a"b")`: false,
		"a;b": true, "a;b;c=1": true, "a; b=?0": true, "a;*b=c": true, "a;b=c;b=d": true,
		"a;": false, "a;B": false, "a;1b": false, "a;b=": false, "a ;b": false, "a;b =c": false,
	} {
		wantEqual(t, in, validList(in), want)
	}
}
