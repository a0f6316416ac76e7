package conformance_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

var (
	scenes = flag.Int("scenes", 600, "how many scenes TestProperty draws")
	seed   = flag.Uint64("seed", 1, "what TestProperty draws them from")
)

// TestProperty plays scenes drawn by chance through Envoy and weir, and holds each answer against an independent
// reading of the RFCs: the stored answer goes out only where nothing forbids it, as it came but for what a cache may
// change.
func TestProperty(t *testing.T) {
	t.Parallel()
	in := install(t)
	const players = 8
	outcomes := make(chan string, *scenes)
	t.Run("scenes", func(t *testing.T) {
		for player := range players {
			t.Run(fmt.Sprint(player), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(*seed, uint64(player)))
				for i := range *scenes / players {
					s := draw(r)
					outcomes <- in.play(t, &s, fmt.Sprintf("/rfc/property-%d-%d", player, i))
				}
			})
		}
	})
	close(outcomes)
	seen := map[string]int{}
	for o := range outcomes {
		seen[o]++
	}
	// A cache that forgets everything breaks no prohibition.
	if seen["missed"] > 0 || seen["hit"] < *scenes/8 || seen["validated"] < *scenes/50 || seen["on error"] == 0 {
		t.Errorf("too few answers came from the cache: %v", seen)
	}
	t.Log(seen)
}

// play plays one scene and says what became of the second request.
func (in *installation) play(t *testing.T, s *scene, path string) (outcome string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Fatalf("%+v\nCDN %+v", *s, s.cdn)
		}
	}()
	s.began = time.Now().UTC()
	in.origin.Handle(path, func(n int, r *http.Request) harness.Reply {
		if s.write != 0 && n > 1 { // the write is not counted
			n--
		}
		return s.answer(n, r)
	})
	first := harness.Do(t, harness.Get(in.envoy.URL(path), s.first.fields()...))
	if s.write != 0 {
		write := harness.Get(in.envoy.URL(path))
		write.Method = http.MethodPost
		harness.Do(t, write)
	}
	req := harness.Get(in.envoy.URL(path), s.second.fields()...)
	if s.headSecond {
		req.Method = http.MethodHead
	}
	second := harness.Do(t, req)
	return s.judge(t, first, second)
}

// judge holds the second answer against the model.
func (s *scene) judge(t *testing.T, first, second harness.Response) (outcome string) {
	t.Helper()
	status := strings.Join(second.Header.Values("Cache-Status"), ", ")
	checkCacheStatus(t, "second", second.Header, nil)
	switch {
	case second.Header.Get("X-N") != "1":
		if s.forbidsServing() == "" && s.stale() <= 0 { // what is stale may be forgotten
			t.Logf("not served although allowed: %+v\n%s", *s, fieldLines(second.Header))
			return "missed"
		}
		return "forbidden"
	case strings.Contains(status, "weir; hit") && !strings.Contains(status, "detail=stale-if-error"):
		if why := s.forbidsServing(); why != "" {
			t.Errorf("served although forbidden: %s\n%s", why, fieldLines(second.Header))
		}
		outcome = "hit"
	case strings.Contains(status, "fwd-status=304"):
		if why := s.forbidsReuse(); why != "" {
			t.Errorf("reused after 304 although forbidden: %s\n%s", why, fieldLines(second.Header))
		}
		outcome = "validated"
	default:
		if why := s.forbidsStandingIn(); why != "" || !s.secondFails {
			t.Errorf("stale on error although forbidden: %s\n%s", why, fieldLines(second.Header))
		}
		outcome = "on error"
	}
	s.checkSame(t, first, second)
	if outcome == "hit" {
		checkAge(t, "second", second.Header, max(s.age, 0))
	}
	return outcome
}

// checkSame: the stored answer is the origin's but for what a cache may change (RFC 9111 §3.1, §3.2, §4, §5.1).
func (s *scene) checkSame(t *testing.T, first, second harness.Response) {
	t.Helper()
	if second.Status != first.Status || !s.headSecond && string(second.Body) != string(first.Body) {
		t.Errorf("%d %q, the origin said %d %q", second.Status, second.Body, first.Status, first.Body)
	}
	own := func(name string) bool { // of the cache, of the message, or of Envoy
		return strings.HasPrefix(name, "X-Envoy-") || slices.Contains([]string{
			"Age", "Cache-Status", "Content-Length", "Transfer-Encoding", "Date", "Server",
		}, name)
	}
	names := slices.Sorted(maps.Keys(first.Header))
	for name := range second.Header {
		if len(first.Header.Values(name)) == 0 && !own(name) {
			t.Errorf("%s: %q, the origin said none", name, second.Header.Values(name))
		}
	}
	for _, name := range names {
		want := joined(first.Header, name)
		if name == "X-Odd" && s.directives().excluded && !s.directives().noCache {
			want = "" // no-cache="x-odd": not without validation, and never from here
		}
		if got := joined(second.Header, name); !own(name) && got != want {
			t.Errorf("%s: %q, the origin said %q", name, got, want)
		}
	}
	checkDate(t, first, second)
}

// joined are all lines of a field, with space around commas left out.
func joined(h http.Header, name string) string {
	return strings.ReplaceAll(strings.Join(h.Values(name), ","), ", ", ",")
}

// checkDate: Date is when the origin made the answer, or validated it.
func checkDate(t *testing.T, first, second harness.Response) {
	t.Helper()
	was, err := http.ParseTime(first.Header.Get("Date"))
	is, errIs := http.ParseTime(second.Header.Get("Date"))
	if err != nil || errIs != nil || is.Before(was) || is.Sub(was) > time.Minute {
		t.Errorf("Date: %q, then %q", first.Header.Get("Date"), second.Header.Get("Date"))
	}
}
