package httpcache

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// drawFields draws field lines of few names and values that matter somewhere.
func drawFields(t *rapid.T, label string) Fields {
	names := []string{"a", "b", "cache-control", "connection", "content-length", "content-encoding", "content-type",
		"etag", "vary", "set-cookie", "age", "date", "last-modified", "keep-alive", "transfer-encoding", "expires"}
	values := []string{"", "a", "b, a", `"x"`, `W/"x"`, "max-age=60", `no-cache="a"`, "private=b", "10", "close",
		at(0), at(-60)}
	line := rapid.Custom(func(t *rapid.T) Field {
		return Field{rapid.SampledFrom(names).Draw(t, "name"), rapid.SampledFrom(values).Draw(t, "value")}
	})
	return rapid.SliceOfN(line, 0, 12).Draw(t, label)
}

// A response that says what forbids storing is not stored, whatever else it
// says, in whatever order, well-formed or not (RFC 9111 §3).
func TestPropertyProhibitionHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		member := rapid.SampledFrom([]string{"max-age=60", "s-maxage=60", "public", "max-age", `x="y, z"`, `x="\""`,
			"a;b", "=", "",
			"must-revalidate", `no-cache="a"`, "stale-if-error=60", "max-age =5", "\x00", "é", `"q"`})
		members := rapid.SliceOfN(member, 0, 6).Draw(t, "members")
		forbidding := rapid.SampledFrom([]string{"no-store", "NO-STORE", "no-store=1", `no-store="x"`, " no-store\t",
			"private", "Private",
			"no-store; x", "x; private", `private=""`, `private="vary"`, "no-store =x"}).Draw(t, "prohibition")
		at := rapid.IntRange(0, len(members)).Draw(t, "position")
		members = slices.Insert(members, at, forbidding)
		cut := rapid.IntRange(0, len(members)).Draw(t, "second line from")
		resp := response(rapid.IntRange(200, 599).Draw(t, "status"),
			"Cache-Control: "+strings.Join(members[:cut], ","), "Cache-Control: "+strings.Join(members[cut:], ", "))
		r := &Rules{Origin: rapid.SampledFrom([]OriginMode{OriginHonor, OriginIgnoreFreshness}).Draw(t, "mode"),
			IgnoreCookies: true, StripSetCookie: true, Heuristic: true}
		if v := MayStore(get(), resp, r); v.OK {
			t.Errorf("%q is stored: %+v", resp.Header, v)
		}
	})
}

// must-revalidate, proxy-revalidate and no-cache leave no stale window
// (RFC 9111 §4.2.4).
func TestPropertyStaleForbidden(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]string{"stale-while-revalidate=60", "stale-if-error=60", "max-age=1",
			"s-maxage=1", "public"})
		members := rapid.SliceOfN(window, 0, 5).Draw(t, "members")
		forbidding := rapid.SampledFrom([]string{"must-revalidate", "Proxy-Revalidate", "no-cache",
			"must-revalidate;x"}).Draw(t, "prohibition")
		members = slices.Insert(members, rapid.IntRange(0, len(members)).Draw(t, "position"), forbidding)
		d := ParseDirectives(fields("Cache-Control: " + strings.Join(members, ", ")))
		swr, sie := StaleWindows(d, &Rules{StaleWhileRevalidate: time.Hour, StaleIfError: time.Hour})
		if swr != 0 || sie != 0 {
			t.Errorf("%q: %v, %v", members, swr, sie)
		}
	})
}

// What is stored is what came, but for what the RFC excepts (RFC 9111 §3.1).
func TestPropertyStorableFields(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawFields(t, "response")
		d := ResponseDirectives(in)
		got := StorableFields(&Response{Status: 200, Header: in}, d, &Rules{})
		var want Fields
		for _, f := range in {
			if !neverStored(f.Name) && !d.excludes(f.Name) && !nominated(in, f.Name) {
				want = append(want, f)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v of %v", got, in)
		}
		for _, f := range got {
			if f.Name == "set-cookie" || f.Name == "age" || f.Name == "connection" {
				t.Errorf("%s is stored", f.Name)
			}
		}
	})
}

// Freshening keeps what did not come, takes what came, never touches what
// describes the stored body, and does nothing the second time (RFC 9111 §3.2).
func TestPropertyFreshen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := drawFields(t, "stored")
		stored := StorableFields(&Response{Header: first}, ResponseDirectives(first), &Rules{})
		came := drawFields(t, "304")
		got := Freshen(stored, came)
		d := ResponseDirectives(got)
		for _, name := range namesOf(stored, came) {
			want := linesOf(stored, name)
			takes := came.Has(name) && !neverStored(name) && !ofStoredBody(name) && !nominated(came, name)
			if name == "etag" && stored.Has("etag") {
				takes = false
			}
			if takes {
				want = linesOf(came, name)
			}
			if d.excludes(name) || neverStored(name) || ofStoredBody(name) && !stored.Has(name) {
				want = nil
			}
			if have := linesOf(got, name); !slices.Equal(have, want) {
				t.Errorf("%s: %q, want %q", name, have, want)
			}
		}
		if again := Freshen(got, came); !cmp.Equal(sorted(got), sorted(again)) {
			t.Errorf("the second time: %v, then %v", got, again)
		}
	})
}

func namesOf(all ...Fields) (names []string) {
	for _, f := range slices.Concat(all...) {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

func linesOf(f Fields, name string) (values []string) {
	for _, line := range f {
		if line.Name == name {
			values = append(values, line.Value)
		}
	}
	return values
}

func sorted(f Fields) Fields {
	f = slices.Clone(f)
	slices.SortStableFunc(f, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// Two requests match exactly if their selected values are the same, and each
// matches itself (RFC 9111 §4.1).
func TestPropertyVariants(t *testing.T) {
	t.Parallel()
	names := []string{"accept-encoding", "foo", "user-agent"}
	value := rapid.StringOfN(rapid.SampledFrom([]rune("aA ,\t\"\\;=\x00é")), 0, 8, -1)
	request := rapid.Custom(func(t *rapid.T) Fields {
		var f Fields
		for range rapid.IntRange(0, 4).Draw(t, "lines") {
			f = append(f, Field{rapid.SampledFrom(names).Draw(t, "name"), value.Draw(t, "value")})
		}
		return f
	})
	v := Vary{Names: names}
	rapid.Check(t, func(t *rapid.T) {
		a, b := request.Draw(t, "a"), request.Draw(t, "b")
		selectedA, selectedB := v.Select(a), v.Select(b)
		if !SameVariant(names, selectedA, a) {
			t.Errorf("%v does not match itself", a)
		}
		if got, want := SameVariant(names, selectedA, b), slices.Equal(selectedA, selectedB); got != want {
			t.Errorf("%v against %v: %v, want %v", a, b, got, want)
		}
		for i, name := range names {
			if selectedA[i] == Absent {
				continue
			}
			if again := v.Select(Fields{{name, selectedA[i]}})[i]; again != selectedA[i] {
				t.Errorf("the normal form %q has the normal form %q", selectedA[i], again)
			}
		}
	})
}

// Every date that a form can hold is read back (RFC 9110 §5.6.7).
func TestPropertyDates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Add(0).
			AddDate(rapid.IntRange(0, 9998).Draw(t, "year"), 0, rapid.IntRange(0, 365).Draw(t, "day")).
			Add(seconds(rapid.Int64Range(0, 86399).Draw(t, "second")))
		for _, layout := range []string{imfFixdate, "Mon Jan _2 15:04:05 2006"} {
			text := want.Format(layout)
			if got, ok := parseDate(text, base); !ok || !got.Equal(want) {
				t.Errorf("%q = %v, %v, want %v", text, got, ok, want)
			}
		}
		if want.Month() == time.February && want.Day() == 29 {
			return // another century may have had no such day
		}
		text := want.Format("Monday, 02-Jan-06 15:04:05 GMT")
		got, ok := parseDate(text, base)
		if !ok || got.Year()%100 != want.Year()%100 || got.Sub(base).Abs() > 51*366*24*time.Hour {
			t.Errorf("%q = %v, %v", text, got, ok)
		}
	})
}

// Ranges lie inside the body and ask for no more than all of it (RFC 9110
// §14.1.2, §17.15).
func TestPropertyRanges(t *testing.T) {
	t.Parallel()
	position := rapid.OneOf(rapid.StringMatching(`[0-9]{0,3}`), rapid.SampledFrom([]string{"",
		"9223372036854775807", "99999999999999999999"}))
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 1000).Draw(t, "size")
		var specs []string
		for range rapid.IntRange(1, 20).Draw(t, "specs") {
			specs = append(specs, position.Draw(t, "first")+"-"+position.Draw(t, "last"))
		}
		checkRanges(t, "bytes="+strings.Join(specs, ","), size)
	})
}

func checkRanges(t interface{ Errorf(string, ...any) }, value string, size int64) {
	ranges, outcome := ParseRange(value, size)
	if (outcome == RangePartial) != (len(ranges) > 0) {
		t.Errorf("%q of %d: %v with %v", value, size, outcome, ranges)
	}
	var sum int64
	for _, r := range ranges {
		if r.Start < 0 || r.Length < 1 || r.Start > size-r.Length {
			t.Errorf("%q of %d: %v is outside", value, size, r)
		}
		if !isContentRange(string(AppendContentRange(nil, r, size))) {
			t.Errorf("%v makes no Content-Range", r)
		}
		sum += r.Length
	}
	if sum > max(size, 0) || len(ranges) > maxRanges {
		t.Errorf("%q of %d: %v is too much", value, size, ranges)
	}
}

// Cache-Status is a list whatever it was made of, weir last and the members that
// were there before it (RFC 9211 §2).
func TestPropertyCacheStatus(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		existing := rapid.OneOf(rapid.String(),
			rapid.StringMatching(`[a-z*][a-zA-Z0-9]{0,5}(; ?[a-z]{1,3}(=(-?[0-9]{1,4}|"[a-z]*"))?){0,3}`)).Draw(t, "existing")
		checkCacheStatus(t, existing, CacheStatus{
			Hit: rapid.Bool().Draw(t, "hit"), Fwd: rapid.OneOf(rapid.String(), rapid.Just(FwdStale)).Draw(t, "fwd"),
			FwdStatus: rapid.Int().Draw(t, "status"), TTL: rapid.Int64().Draw(t, "ttl"), HasTTL: rapid.Bool().Draw(t,
				"has ttl"),
			Stored: rapid.Bool().Draw(t, "stored"), Collapsed: rapid.Bool().Draw(t, "collapsed"),
			Detail: rapid.String().Draw(t, "detail"),
		})
	})
}

func checkCacheStatus(t interface{ Errorf(string, ...any) }, existing string, s CacheStatus) {
	got := string(AppendCacheStatus(nil, existing, s))
	list, err := httpsfv.UnmarshalList([]string{got})
	if err != nil || len(list) == 0 {
		t.Errorf("%q is no list: %v", got, err)
		return
	}
	before, err := httpsfv.UnmarshalList([]string{existing})
	if err != nil {
		before = nil
	}
	if diff := cmp.Diff(before, list[:len(list)-1], cmpopts.EquateEmpty(),
		cmp.AllowUnexported(httpsfv.Params{})); diff != "" {
		t.Errorf("%q after %q: (-before +after)\n%s", got, existing, diff)
	}
	if item, ok := list[len(list)-1].(httpsfv.Item); !ok || item.Value != httpsfv.Token("weir") {
		t.Errorf("%q does not end with weir", got)
	}
}
