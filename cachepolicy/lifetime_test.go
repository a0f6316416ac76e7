package cachepolicy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/cachepolicy"
)

func TestLifetime(t *testing.T) {
	t.Parallel()
	const (
		plain     = `{}`
		def       = `{ttl: {default: 60s}}`
		clamped   = `{ttl: {default: 60s, min: 30s, max: 90s}}`
		fresh     = `{ttl: {default: 60s, origin: IgnoreFreshness}}`
		heuristic = `{ttl: {default: 60s, heuristic: Enabled}}`
		negative  = `{ttl: {default: 60s, min: 30s}, negativeTTL: [{status: "404", ttl: 10s}, {status: 4xx, ttl: 5s},
			{status: 5xx, ttl: 1s}, {status: Unreachable, ttl: 2s}, {status: "410", ttl: 0s}]}`
	)
	const s = time.Second
	// An answer anybody might have got, and one to a request with credentials.
	anyone := func(status int) cachepolicy.LifetimeInput {
		return cachepolicy.LifetimeInput{Status: status, Anonymous: true, PolicyMayExtend: true}
	}
	someone := func(status int) cachepolicy.LifetimeInput { return cachepolicy.LifetimeInput{Status: status} }
	states := func(in cachepolicy.LifetimeInput, d time.Duration) cachepolicy.LifetimeInput {
		in.Stated, in.HasStated = d, true
		return in
	}
	guess := func(in cachepolicy.LifetimeInput, d time.Duration) cachepolicy.LifetimeInput {
		in.Heuristic, in.HasHeuristic = d, true
		return in
	}
	unreachable := anyone(503)
	unreachable.Unreachable = true
	prohibited := states(anyone(200), 60*s)
	prohibited.Prohibited = true
	tests := []struct {
		name   string
		policy string
		in     cachepolicy.LifetimeInput
		want   time.Duration
		reason cachepolicy.LifetimeReason // none of the lifetime if want is < 0
	}{
		{"the origin states one", plain, states(anyone(200), 5*s), 5 * s, "stated"},
		{"the origin states 0: kept for validation and stale windows", plain, states(anyone(200), 0), 0, "stated"},
		{"the origin states none, nor does the policy", plain, anyone(200), -1, "no-lifetime"},
		{"the policy's default", def, anyone(200), 60 * s, "ttl-default"},
		{"the origin beats the default", def, states(anyone(200), 5*s), 5 * s, "stated"},
		{"no default for answers to credentials", def, someone(200), -1, "no-lifetime"},
		{"prohibited beats all", def, prohibited, -1, "prohibited"},

		{"raised to min", clamped, states(anyone(200), 5*s), 30 * s, "ttl-min"},
		{"max-age=0 is a statement, not a prohibition", clamped, states(anyone(200), 0), 30 * s, "ttl-min"},
		{"not raised for answers to credentials", clamped, states(someone(200), 5*s), 5 * s, "stated"},
		{"lowered to max", clamped, states(anyone(200), 500*s), 90 * s, "ttl-max"},
		{"lowered to max for answers to credentials too", clamped, states(someone(200), 500*s), 90 * s, "ttl-max"},
		{"the default max", plain, states(anyone(200), 48*time.Hour), 24 * time.Hour, "ttl-max"},

		{"origin ignored", fresh, states(anyone(200), 5*s), 60 * s, "ttl-default"},
		{"origin ignored, policy not allowed: the shorter", fresh, states(someone(200), 500*s), 60 * s, "stated"},
		{"origin ignored, policy not allowed: the shorter, again", fresh, states(someone(200), 5*s), 5 * s, "stated"},
		{"origin ignored, policy not allowed, none stated", fresh, someone(200), -1, "no-lifetime"},

		{"heuristic before default", heuristic, guess(anyone(200), 7*s), 7 * s, "heuristic"},
		{"stated before heuristic", heuristic, guess(states(anyone(200), 5*s), 7*s), 5 * s, "stated"},
		{"no Last-Modified", heuristic, anyone(200), 60 * s, "ttl-default"},
		{"heuristic disabled", def, guess(anyone(200), 7*s), 60 * s, "ttl-default"},
		{"heuristic of an ignored origin", `{ttl: {default: 60s, origin: IgnoreAll, heuristic: Enabled}}`,
			guess(anyone(200), 7*s), 60 * s, "ttl-default"},
		{"no heuristic for answers to credentials", heuristic, guess(someone(200), 7*s), -1, "no-lifetime"},

		{"exact status", negative, anyone(404), 10 * s, "negative-ttl"},
		{"class", negative, anyone(403), 5 * s, "negative-ttl"},
		{"other class", negative, anyone(500), s, "negative-ttl"},
		{"made by Envoy", negative, unreachable, 2 * s, "negative-ttl"},
		{"exact 0s keeps nothing, whatever the class", negative, anyone(410), -1, "negative-zero"},
		{"capped by the origin's own", negative, states(anyone(404), 3*s), 3 * s, "negative-ttl"},
		{"never lengthened by the origin's own", negative, states(anyone(404), 99*s), 10 * s, "negative-ttl"},
		{"the origin says at once", negative, states(anyone(404), 0), -1, "negative-zero"},
		{"an error is never raised to min", negative, states(anyone(404), s), s, "negative-ttl"},
		{"an error to credentials may be theirs alone", negative, someone(404), -1, "no-lifetime"},
		{"unless the origin says how long", negative, states(someone(404), 3*s), 3 * s, "stated"},

		{"no default for errors", def, anyone(404), -1, "no-lifetime"},
		{"heuristic for errors, where the rules allow one", heuristic, guess(anyone(404), 7*s), 7 * s, "heuristic"},
		{"the origin's own for errors", def, states(anyone(503), 3*s), 3 * s, "stated"},
		{"lowered to max for errors", clamped, states(anyone(404), 500*s), 90 * s, "ttl-max"},
		{"origin ignored for errors", fresh, states(anyone(404), 5*s), -1, "no-lifetime"},
		{"made by Envoy, with no rule", `{negativeTTL: [{status: 5xx, ttl: 1s}, {status: "503", ttl: 1s}]}`, unreachable, -1,
			"no-lifetime"},
		{"made by Envoy: the origin states nothing", negative, states(unreachable, s/2), 2 * s, "negative-ttl"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			want := cachepolicy.Lifetime{TTL: max(tc.want, 0), OK: tc.want >= 0, Reason: tc.reason,
				Negative: tc.in.Status >= 400 || tc.in.Unreachable}
			if diff := cmp.Diff(want, compile(t, tc.policy).Lifetime(tc.in)); diff != "" {
				t.Errorf("lifetime (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLifetimeProperties holds for every answer, whatever the policy.
func TestLifetimeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, in := drawLifetime(t)
		got := p.Lifetime(in)
		if got.TTL < 0 || got.TTL > p.TTL.Max {
			t.Fatalf("%v is not between 0 and ttl.max", got.TTL)
		}
		if !got.OK && got.TTL != 0 {
			t.Fatalf("%v of an answer that is not stored", got.TTL)
		}
		if in.Prohibited && got.OK {
			t.Fatal("a prohibited answer is stored")
		}
	})
}

// TestLifetimeHeedsTheOrigin: what was made for one user, and errors, never
// outlive what the origin says.
func TestLifetimeHeedsTheOrigin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, in := drawLifetime(t)
		got := p.Lifetime(in)
		credentials := !in.PolicyMayExtend && !in.Anonymous
		if got.OK && credentials && (!in.HasStated || got.TTL > in.Stated) {
			t.Fatalf("%v for an answer to credentials, of which the origin says %v, %v", got.TTL, in.Stated, in.HasStated)
		}
		honored := in.HasStated && !in.Unreachable && p.TTL.Origin == cachepolicy.OriginHonor
		if got.OK && got.Negative && honored && got.TTL > in.Stated {
			t.Fatalf("an error is kept for %v, the origin says %v", got.TTL, in.Stated)
		}
	})
}

func drawLifetime(t *rapid.T) (*cachepolicy.Policy, cachepolicy.LifetimeInput) {
	seconds := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Second
	}
	flag := func(label string) bool { return rapid.Bool().Draw(t, label) }
	p := &cachepolicy.Policy{TTL: cachepolicy.TTL{
		Default: seconds("default", 100), HasDefault: flag("hasDefault"), Min: seconds("min", 100), Max: 100 * time.Second,
		Heuristic: flag("heuristic"),
		Origin:    rapid.SampledFrom([]cachepolicy.OriginMode{"Honor", "IgnoreFreshness", "IgnoreAll"}).Draw(t, "origin"),
	}}
	if flag("negative") {
		p.NegativeTTL.Class = map[int]time.Duration{4: seconds("4xx", 300), 5: seconds("5xx", 300)}
	}
	return p, cachepolicy.LifetimeInput{
		Status: rapid.IntRange(200, 599).Draw(t, "status"), Unreachable: flag("unreachable"),
		Stated: seconds("stated", 300), HasStated: flag("hasStated"),
		Heuristic: seconds("guess", 300), HasHeuristic: flag("hasGuess"),
		PolicyMayExtend: flag("mayExtend"), Anonymous: flag("anonymous"), Prohibited: flag("prohibited"),
	}
}
