package httpcache

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/pquerna/cachecontrol/cacheobject"
)

// Whatever the field says: what the oracle sees forbidden is forbidden, and no
// lifetime is longer than the oracle's. The oracle gives up on malformed fields,
// and takes the last of two; there only our own invariants are left.
func FuzzDirectives(f *testing.F) {
	for _, seed := range []string{
		"", "max-age=60", "public; max-age=30", "private; max-age=30", `max-age="60"`, "MAX-AGE=60",
		"max-age=60, max-age=600",
		"max-age=-5", "max-age=99999999999999", "max-age=9223372037", `x="\", max-age=60, y"`, "no-store, max-age=60",
		`ext="max-age=1, no-store", public`,
		`no-cache="a, b", private="c`,
		"max-age =3600", "max-age= 3600", `x="y\"`, "=,==,\x00", "no-cache=a,no-store", `no-cache = "a, no-store"`,
		`"no-store"`,
		"s-maxage=1,stale-while-revalidate=2,stale-if-error=3,max-stale,min-fresh=4,only-if-cached,must-understand",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		ours := ParseDirectives(Fields{{"cache-control", value}})
		checkInvariants(t, value, &ours)
		theirs, err := cacheobject.ParseResponseCacheControl(value)
		if err != nil {
			return
		}
		forbids := func(what string, theirs, ours bool) {
			if theirs && !ours {
				t.Errorf("%q: %s is lost", value, what)
			}
		}
		forbids("no-store", theirs.NoStore, ours.NoStore)
		forbids("must-revalidate", theirs.MustRevalidate, ours.MustRevalidate)
		forbids("no-cache", theirs.NoCachePresent, ours.NoCache || ours.NoCacheFields != nil)
		forbids("private", theirs.PrivatePresent, ours.Private || ours.PrivateFields != nil)
		twice := strings.Count(strings.ToLower(value), "max-age") != 1
		if longest := seconds(max(0, int64(theirs.MaxAge)) + 1); !twice && ours.MaxAge.Value > longest {
			t.Errorf("%q: %v, for the oracle %d", value, ours.MaxAge, theirs.MaxAge)
		}
	})
}

func checkInvariants(t *testing.T, value string, d *Directives) {
	t.Helper()
	for _, v := range []Delta{d.MaxAge, d.SMaxAge, d.StaleWhileRevalidate, d.StaleIfError, d.MinFresh, d.MaxStale} {
		if v.Value < 0 || v.Value > maxDelta || v.Valid && !v.Set || !v.Valid && v.Value != 0 {
			t.Errorf("%q: %+v", value, v)
		}
	}
	for _, name := range append(d.NoCacheFields, d.PrivateFields...) {
		if !isToken(name) || name != strings.ToLower(name) || indispensable(name) {
			t.Errorf("%q: field %q", value, name)
		}
	}
}

// A targeted field counts exactly if it is a dictionary that is not empty and
// whose known members have their types (RFC 9213 §2.1).
func FuzzTargeted(f *testing.F) {
	for _, seed := range []string{
		"", "max-age=60", "max-age=10000, &&&&&", `max-age="60"`, "no-store, private, no-cache", `no-cache="a, b"`,
		"none", "a=(1 2);x, b",
		"max-age=-5", "max-age=5.0", "no-store=?0", "MaX-aGe=5", "max-age=999999999999999", "private=@5",
		`no-cache=%"a"`, "no-cache=:YQ==:",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		d := ResponseDirectives(fields("cache-control: public").with("cdn-cache-control", value))
		dict, err := httpsfv.UnmarshalDictionary([]string{value})
		if valid := err == nil && len(dict.Names()) > 0; d.Targeted && !valid {
			t.Errorf("%q is no dictionary, but counts: %+v", value, d)
		}
		if !d.Targeted && !d.Public {
			t.Errorf("%q: neither field counts", value)
		}
		if d.MaxAge.Value < 0 || d.MaxAge.Value > maxDelta {
			t.Errorf("%q: %v", value, d.MaxAge)
		}
	})
}

func (f Fields) with(name, value string) Fields { return append(f, Field{name, value}) }

// What is a date is the same date in the preferred form, and for the standard library, which knows neither leap seconds
// nor our rule for years of two digits.
func FuzzDate(f *testing.F) {
	for _, seed := range []string{
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "0", "-1", "",
		"Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18  Aug  2050 02:01:18 GMT", "Thu, 18-Aug-2050 02:01:18 GMT",
		"SUN, 06 NOV 1994 08:49:60 gmt", "Thu, 31 Feb 2050 02:01:18 GMT", "Wed Feb 29 02:01:18 2023",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, ok := parseDate(value, base)
		if !ok {
			return
		}
		oracle, err := http.ParseTime(spelled(value))
		leap := strings.Contains(value, ":60")
		if !leap && (err != nil || got.YearDay() != oracle.YearDay() && got.Year() == oracle.Year() ||
			got.Format(time.TimeOnly) != oracle.Format(time.TimeOnly)) {
			t.Errorf("%q = %v, for the oracle %v, %v", value, got, oracle, err)
		}
		if again, ok := parseDate(got.Format(imfFixdate), base); !ok || !again.Equal(got) {
			if got.Year() <= 9999 { // a leap second may end the last year
				t.Errorf("%q = %v, formatted %v, %v", value, got, again, ok)
			}
		}
	})
}

// spelled writes the names in a date as the standard library wants them: "Sun", "Nov", "GMT".
func spelled(date string) string {
	words := regexp.MustCompile(`[A-Za-z]+`).ReplaceAllStringFunc(date, func(word string) string {
		return strings.ToUpper(word[:1]) + strings.ToLower(word[1:])
	})
	return strings.Replace(words, "Gmt", "GMT", 1)
}

// Whatever is asked for lies inside the body.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{
		"bytes=0-99", "bytes=1-", "bytes=-1", "bytes=0-9, 20-29,,-5", "bytes=-0", "bytes=9-0",
		"bytes=99999999999999999999-", "items=1-2",
		"bytes=0-,0-,0-", "bytes=0-99999999999999999999", "bytes=--1", "Bytes=0-0,-1",
	} {
		f.Add(seed, int64(1000))
	}
	f.Add("bytes=0-,-5", int64(0))
	f.Add("bytes=999-1000", int64(1000))
	f.Add("bytes=1-9223372036854775807", int64(1)<<40)
	f.Fuzz(func(t *testing.T, value string, size int64) {
		checkRanges(t, value, min(size, 1<<50))
	})
}

// A variant matches the request it was made of, and no request that differs by
// more than whitespace, commas and case.
func FuzzVary(f *testing.F) {
	f.Add("foo", "1, 2", "1,2")
	f.Add("Accept-Encoding, *", "gzip", "br,gzip,xxx,jdcqiab")
	f.Add("user-agent,,x-y", "a (b, c)", "a (b,c)")
	f.Add("foo", `"a, \" b", c`, "\x00")
	f.Fuzz(func(t *testing.T, vary, a, b string) {
		v := ParseVary(Fields{{"vary", vary}})
		if v.Any {
			return
		}
		if len(v.Names) > maxVaryNames {
			t.Errorf("%q: %d names", vary, len(v.Names))
		}
		var reqA, reqB Fields
		for _, name := range v.Names {
			reqA, reqB = reqA.with(name, a), reqB.with(name, b)
		}
		values := v.Select(reqA)
		if !SameVariant(v.Names, values, reqA) {
			t.Errorf("%q does not match itself", a)
		}
		if len(v.Names) > 0 && SameVariant(v.Names, values, nil) {
			t.Errorf("%q matches a request without the field", a)
		}
		if len(v.Names) > 0 && SameVariant(v.Names, values, reqB) && letters(a) != letters(b) {
			t.Errorf("%q matches %q", a, b)
		}
	})
}

// letters drops what a normal form may differ in.
func letters(s string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "\t", "", ",", "", "\x00", "").Replace(s))
}

// The field is a list, whatever was there before.
func FuzzCacheStatus(f *testing.F) {
	for _, seed := range []string{
		"", "OriginCache; hit; ttl=5", `a;detail="x\"y", b`, "a,", "a;b=", "(a b);c, :YWJj:", `%"a%c3%bc"`,
		"@1, ?0, -1.5", "a;b=1000000000000000",
	} {
		f.Add(seed, "detail words", "stale", int64(-3))
	}
	f.Fuzz(func(t *testing.T, existing, detail, fwd string, ttl int64) {
		checkCacheStatus(t, existing, CacheStatus{Fwd: fwd, Detail: detail, TTL: ttl, HasTTL: true, FwdStatus: int(ttl)})
		list, err := httpsfv.UnmarshalList([]string{existing})
		if want := err == nil && len(list) > 0; validList(existing) != want {
			t.Errorf("validList(%q) = %v, for httpsfv %v", existing, !want, err)
		}
	})
}

// A 304 is only for who named the stored entity tag, or "*".
func FuzzIfNoneMatch(f *testing.F) {
	f.Add(`"a", W/"b"`, `"b"`)
	f.Add(`*`, ``)
	f.Add(`"a,b"`, `b"`)
	f.Add(`W/"a`, `W/"a`)
	f.Fuzz(func(t *testing.T, list, tag string) {
		got := EvaluatePreconditions(Fields{{"if-none-match", list}}, Fields{{"etag", tag}}, 200)
		bare := strings.Trim(strings.TrimPrefix(trimOWS(tag), "W/"), `"`)
		if got == NotModified && trimOWS(list) != "*" && !strings.Contains(list, bare) {
			t.Errorf("%q names %q?", list, tag)
		}
		self := Fields{{"if-none-match", `"x", ` + tag}}
		if clean := !strings.ContainsAny(bare, `",`) && bare != ""; clean && tag == `"`+bare+`"` &&
			EvaluatePreconditions(self, Fields{{"etag", tag}}, 200) != NotModified {
			t.Errorf("%q does not match itself", tag)
		}
	})
}

// What is invalidated has the origin of the target (RFC 9111 §4.4).
func FuzzInvalidate(f *testing.F) {
	for _, seed := range []string{"/a", "../b?c#d", "//b.test/", "https://a.test:443/x", "https://a.test@b.test/",
		"mailto:x", "%zz", "?", ""} {
		f.Add("a.test", "/dir/x?y", seed)
	}
	f.Add("[::1]:443", "//x", "https:x")
	f.Fuzz(func(t *testing.T, authority, path, location string) {
		req := &Request{Method: "POST", Scheme: "https", Authority: authority, Path: path}
		targets := InvalidatedBy(req, &Response{Status: 201, Header: Fields{{"location", location}}})
		if len(targets) == 0 || len(targets) > 2 || targets[0] != TargetOf(req) {
			t.Fatalf("targets %q", targets)
		}
		for _, target := range targets[1:] {
			if target.Scheme != "https" || target.Authority != targets[0].Authority || !strings.HasPrefix(target.Path, "/") ||
				strings.Contains(target.Path, "#") {
				t.Errorf("%q of %q leads to %v", location, path, target)
			}
		}
	})
}
