package httpcache

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/cachecontrol/cacheobject"
	"pgregory.net/rapid"
)

// The directives and the freshness rules are held against
// github.com/pquerna/cachecontrol v0.2.0, an independent reading of RFC 7234.
// Where it is wrong by today's RFCs, or knows less, the generator below does not
// go, or the comparison says so:
//
//   - Of a directive given twice it takes the last; RFC 9111 §4.2.1 says the
//     first, or stale.
//   - One malformed directive makes the whole field an error, so that a no-store
//     beside it is lost; RFC 9111 §4.2.1 wants it stale, and §5.2.3 the unknown
//     ignored.
//   - It reads "\n" in a quoted string as a line feed; in RFC 9110 §5.6.4 a quoted
//     pair is the character itself.
//   - A name with a space before "=" is read as two directives.
//   - The token form of no-cache and private takes all up to a space, and so the
//     directives after a comma.
//   - private="field" counts as private; RFC 9111 §5.2.2.7 restricts it to the
//     field.
//   - The largest delta-seconds is 2³¹−1 for it and 2³¹ for us; §1.2.2 allows both.
//   - It knows neither must-understand nor CDN-Cache-Control, and reads only the
//     first line of a field.
//   - An invalid Expires counts as none and leaves room for heuristics; RFC 9111
//     §5.3 says it is in the past.
//   - A lifetime may be negative for it; ours ends at 0.

// directiveGen draws well-formed directives, none twice.
func drawCacheControl(t *rapid.T) string {
	number := rapid.StringMatching(`[0-9]{1,12}`)
	names := rapid.SampledFrom([]string{"max-age", "s-maxage", "stale-while-revalidate", "stale-if-error", "no-store",
		"no-cache", "private", "public", "must-revalidate", "proxy-revalidate", "no-transform", "ext", "foo-bar"})
	chosen := rapid.SliceOfNDistinct(names, 0, 8, rapid.ID[string]).Draw(t, "directives")
	members := make([]string, 0, len(chosen))
	for _, name := range chosen {
		arg := ""
		switch name {
		case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
			arg = "=" + number.Draw(t, "seconds")
			if rapid.Bool().Draw(t, "quoted") {
				arg = fmt.Sprintf("=%q", arg[1:])
			}
		case "no-cache":
			if rapid.Bool().Draw(t, "qualified") {
				arg = rapid.SampledFrom([]string{`="a"`, `="A, b"`, `="x-y ,z"`}).Draw(t, "fields")
			}
		case "ext", "foo-bar":
			arg = rapid.SampledFrom([]string{"", "=1", `="max-age=1, no-store"`, `="a\"b, private"`}).Draw(t, "argument")
		}
		members = append(members, randomCase(t, name)+arg)
	}
	separator := rapid.SampledFrom([]string{",", ", ", " ,\t", ",,", " , , "}).Draw(t, "separator")
	return strings.Join(members, separator)
}

func randomCase(t *rapid.T, s string) string {
	if rapid.Bool().Draw(t, "upper") {
		return strings.ToUpper(s)
	}
	return s
}

func TestDirectivesAgainstOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := drawCacheControl(t)
		theirs, err := cacheobject.ParseResponseCacheControl(value)
		if err != nil {
			t.Fatalf("the oracle refuses %q: %v", value, err)
		}
		ours := ParseDirectives(fields("Cache-Control: " + value))
		for _, flag := range []struct {
			name         string
			ours, theirs bool
		}{
			{"no-store", ours.NoStore, theirs.NoStore},
			{"no-cache", ours.NoCache || ours.NoCacheFields != nil, theirs.NoCachePresent},
			{"private", ours.Private, theirs.PrivatePresent},
			{"public", ours.Public, theirs.Public},
			{"must-revalidate", ours.MustRevalidate, theirs.MustRevalidate},
			{"proxy-revalidate", ours.ProxyRevalidate, theirs.ProxyRevalidate},
		} {
			if flag.ours != flag.theirs {
				t.Errorf("%q: %s is %v, for the oracle %v", value, flag.name, flag.ours, flag.theirs)
			}
		}
		sameDelta(t, value, ours.MaxAge, theirs.MaxAge)
		sameDelta(t, value, ours.SMaxAge, theirs.SMaxAge)
		sameDelta(t, value, ours.StaleWhileRevalidate, theirs.StaleWhileRevalidate)
		sameDelta(t, value, ours.StaleIfError, theirs.StaleIfError)
		if got, want := ours.NoCacheFields, oracleNames(theirs.NoCache); !slices.Equal(got, want) {
			t.Errorf("%q: fields of no-cache %q, for the oracle %q", value, got, want)
		}
	})
}

func sameDelta(t *rapid.T, value string, ours Delta, theirs cacheobject.DeltaSeconds) {
	t.Helper()
	want := Delta{}
	if theirs >= 0 {
		want = delta(int64(theirs))
	}
	if ours.Value == maxDelta {
		ours.Value = (1<<31 - 1) * time.Second
	}
	if ours != want {
		t.Errorf("%q: %v, for the oracle %v", value, ours, want)
	}
}

func oracleNames(fields cacheobject.FieldNames) []string {
	var names []string
	for name := range fields {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	return names
}

func TestFreshnessAgainstOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{"Cache-Control: " + drawCacheControl(t)}
		object := cacheobject.Object{NowUTC: base, ReqMethod: "GET", ReqHeaders: http.Header{}, RespHeaders: http.Header{},
			RespStatusCode: rapid.IntRange(200, 599).Draw(t, "status")}
		object.RespDirectives, _ = cacheobject.ParseResponseCacheControl(strings.TrimPrefix(lines[0], "Cache-Control: "))
		if rapid.Bool().Draw(t, "has Date") {
			object.RespDateHeader = base.Add(seconds(rapid.Int64Range(-1000, 1000).Draw(t, "Date")))
			lines = append(lines, "Date: "+object.RespDateHeader.Format(imfFixdate))
		}
		if rapid.Bool().Draw(t, "has Expires") {
			object.RespExpiresHeader = base.Add(seconds(rapid.Int64Range(-1000, 5000).Draw(t, "Expires")))
			lines = append(lines, "Expires: "+object.RespExpiresHeader.Format(imfFixdate))
			object.RespHeaders.Set("Expires", "set")
		}
		if rapid.Bool().Draw(t, "has Authorization") {
			object.ReqHeaders.Set("Authorization", "x")
		}
		compareFreshness(t, &object, lines)
	})
}

func compareFreshness(t *rapid.T, object *cacheobject.Object, lines []string) {
	t.Helper()
	var theirs cacheobject.ObjectResults
	cacheobject.CachableObject(object, &theirs)
	cacheobject.ExpirationObject(object, &theirs)

	resp := response(object.RespStatusCode, lines...)
	lifetime, _, stated := StatedLifetime(resp, ParseDirectives(resp.Header), base)
	if stated == theirs.OutExpirationTime.IsZero() {
		t.Fatalf("%q: stated %v, for the oracle it ends at %v", lines, stated, theirs.OutExpirationTime)
	}
	if want := max(0, theirs.OutExpirationTime.Sub(base)); stated && min(lifetime, maxDelta-time.Second) != want {
		t.Errorf("%q: lifetime %v, for the oracle %v", lines, lifetime, want)
	}

	req := get()
	if object.ReqHeaders.Get("Authorization") != "" {
		req = get("Authorization: x")
	}
	v := MayStore(req, resp, &Rules{})
	storable := v.OK && (v.Explicit || HeuristicallyCacheable(resp.Status))
	if knownToUsAlone(v.Reason) || resp.Status == 308 { // RFC 9110 §15.1 adds 308
		return
	}
	if storable != (len(theirs.OutReasons) == 0) {
		t.Errorf("%d %q: %+v, for the oracle %v", resp.Status, lines, v, theirs.OutReasons)
	}
}

// knownToUsAlone: refusals that RFC 7234 does not know, or leaves to the cache.
func knownToUsAlone(reason Reason) bool {
	switch reason {
	case ReasonPartial, ReasonNotModified, ReasonStatusOfRequest, ReasonStatusUnstorable, ReasonNoCacheNoValidator:
		return true
	}
	return false
}
