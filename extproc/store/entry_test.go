package store

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/extproc/httpcache"
)

const forever = time.Duration(math.MaxInt64)

func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func TestAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		initial, held time.Duration
		want          time.Duration
	}{
		{"fresh from the origin", 0, 0, 0},
		{"resident time counts", 0, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"on top of the initial age", 10 * time.Second, 5 * time.Second, 15 * time.Second},
		{"never negative when the clock steps back", time.Second, -time.Minute, 0},
		{"does not overflow", forever, time.Hour, forever},
		{"nor below", -forever, -time.Hour, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := &Entry{ResponseTime: noon(), InitialAge: c.initial}
			if got := e.Age(noon().Add(c.held)); got != c.want {
				t.Errorf("Age = %v, want %v", got, c.want)
			}
		})
	}
}

func TestExpiresAt(t *testing.T) {
	t.Parallel()
	etag := httpcache.Fields{{Name: "etag", Value: `"1"`}}
	modified := httpcache.Fields{{Name: "last-modified", Value: "Mon, 30 Nov 2026 12:00:00 GMT"}}
	for _, c := range []struct {
		name  string
		entry Entry
		want  time.Duration
	}{
		{"lifetime", Entry{Lifetime: time.Minute}, time.Minute},
		{"less the age it came with", Entry{Lifetime: time.Minute, InitialAge: 20 * time.Second}, 40 * time.Second},
		{"the longer window counts: while-revalidate",
			Entry{Lifetime: time.Minute, WhileRevalidate: 5 * time.Second, IfError: time.Second}, 65 * time.Second},
		{"the longer window counts: if-error",
			Entry{Lifetime: time.Minute, WhileRevalidate: time.Second, IfError: time.Hour}, time.Hour + time.Minute},
		{"a validator is worth keeping", Entry{Header: etag}, ValidatorGrace},
		{"so is a date", Entry{Header: modified, Lifetime: time.Second}, time.Second + ValidatorGrace},
		{"no-cache without validator is of no use", Entry{ValidateAlways: true}, 0},
		{"older than its life", Entry{Lifetime: time.Second, InitialAge: time.Hour}, time.Second - time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := c.entry
			e.ResponseTime = noon()
			if got := e.ExpiresAt().Sub(noon()); got != c.want {
				t.Errorf("ExpiresAt is %v after the response, want %v", got, c.want)
			}
		})
	}
}

func TestUsefulIsBeforeExpiresAt(t *testing.T) {
	t.Parallel()
	duration := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 2000).Draw(t, "seconds")) * time.Second
	})
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			ResponseTime: noon(), Lifetime: duration.Draw(t, "lifetime"), InitialAge: duration.Draw(t, "age"),
			WhileRevalidate: duration.Draw(t, "whileRevalidate"), IfError: duration.Draw(t, "ifError"),
		}
		if rapid.Bool().Draw(t, "validator") {
			e.Header = httpcache.Fields{{Name: "etag", Value: `"1"`}}
		}
		at := e.ExpiresAt()
		if !e.Useful(at.Add(-1)) || e.Useful(at) {
			t.Fatalf("useful before its end: %v, at its end: %v", e.Useful(at.Add(-1)), e.Useful(at))
		}
	})
}

func TestHugeLivesDoNotOverflow(t *testing.T) {
	t.Parallel()
	e := Entry{
		ResponseTime: noon(), Lifetime: forever, WhileRevalidate: forever, IfError: forever,
		Header: httpcache.Fields{{Name: "etag", Value: `"1"`}},
	}
	if !e.Useful(noon().Add(100*365*24*time.Hour)) || e.ExpiresAt().Before(noon()) {
		t.Errorf("an entry for ever expires at %v", e.ExpiresAt())
	}
}
