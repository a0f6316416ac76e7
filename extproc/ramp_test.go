package extproc_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/extproctest"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/refill"
)

// twoASecond lets two fetches a second through for half a minute.
func twoASecond(o *extproc.Options) {
	o.Ramp = refill.RampOptions{From: 2, To: 2, Duration: 30 * time.Second}
}

// warmed is a world whose ramp is over.
func warmed(t *testing.T, spec string, change func(*extproc.Options)) *world {
	t.Helper()
	w := newWorld(t, spec, page(10*time.Millisecond), change)
	w.get("/first")
	time.Sleep(31 * time.Second)
	w.seen()
	return w
}

// burst asks for n pages at once and returns how many of them the origin was asked
// for in each of the next seconds.
func (w *world) burst(prefix string, n, seconds int) []int {
	w.t.Helper()
	answers := make([]<-chan extproctest.Result, n)
	for i := range answers {
		answers[i] = w.start(fmt.Sprintf("/%s/%d", prefix, i))
	}
	perSecond := w.perSecond(seconds)
	for i, c := range answers {
		if r := <-c; r.Status != 200 {
			w.t.Errorf("page %d: status %d", i, r.Status)
		}
	}
	return perSecond
}

// perSecond counts the next seconds' fetches, those on the stroke in the one that
// begins.
func (w *world) perSecond(seconds int) []int {
	n := make([]int, seconds)
	time.Sleep(999 * time.Millisecond)
	for i := range n {
		n[i] = len(w.seen())
		time.Sleep(time.Second)
	}
	return n
}

func wantPerSecond(t *testing.T, when string, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: fetches per second %v, want %v", when, got, want)
	}
}

const minute = `{ttl: {default: 60s}, jitterPercent: 0, xfetch: {mode: "Off"}}`

// TestRampAfterColdStart: requests that lead wait for the ramp like those in the
// queue, and all get their answer.
func TestRampAfterColdStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, minute, page(10*time.Millisecond), twoASecond)
		wantPerSecond(t, "cold", w.burst("a", 8, 5), []int{2, 2, 2, 2, 0})
		if o := w.service.Origins(); len(o) != 1 || o[0].Policy != "shop/catalog" || o[0].Rate != 2 || o[0].Granted != 8 {
			t.Errorf("origins %+v", o)
		}
		time.Sleep(30 * time.Second)
		wantPerSecond(t, "later", w.burst("b", 8, 2), []int{8, 0})
	})
}

// TestNoRamp: without one only originLimits hold fetches back.
func TestNoRamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `{ttl: {default: 60s}, originLimits: {maxConcurrentFetches: 2}}`, page(time.Second), nil)
		wantPerSecond(t, "two at a time", w.burst("a", 6, 4), []int{2, 2, 2, 0})
	})
}

// TestRampAfterInvalidation: what makes the cache cold begins the ramp anew, for
// those it is about; what names single answers does not.
func TestRampAfterInvalidation(t *testing.T) {
	t.Parallel()
	ramped, at := []int{2, 2, 0}, []int{4, 0, 0}
	tests := []struct {
		name             string
		kind             fleet.Kind
		namespace, value string
		mode             fleet.Mode
		want             []int
	}{
		{"everything", fleet.ByAll, "", "", fleet.Hard, ramped},
		{"everything, softly", fleet.ByAll, "", "", fleet.Soft, ramped},
		{"the namespace", fleet.ByNamespace, "shop", "shop", fleet.Hard, ramped},
		{"the policy", fleet.ByPolicy, "shop", "shop/catalog", fleet.Hard, ramped},
		{"the host", fleet.ByHost, "", "shop.test", fleet.Hard, ramped},
		{"another namespace", fleet.ByNamespace, "blog", "blog", fleet.Hard, at},
		{"another policy", fleet.ByPolicy, "shop", "shop/news", fleet.Hard, at},
		{"another host", fleet.ByHost, "", "blog.test", fleet.Hard, at},
		{"a tag", fleet.ByTag, "shop", "p7", fleet.Hard, at},
		{"a URL", fleet.ByURL, "shop", "http://shop.test/b/0", fleet.Hard, at},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := warmed(t, minute, twoASecond)
				w.stamps.Add(tt.kind, tt.namespace, tt.value, tt.mode, time.Now())
				wantPerSecond(t, "after", w.burst("b", 4, 3), tt.want)
				time.Sleep(30 * time.Second)
				wantPerSecond(t, "once it is over", w.burst("c", 4, 3), at)
			})
		})
	}
}

// TestSoftInvalidationOfAll: everything is served stale at once, and one refresh
// each comes at the ramp's pace.
func TestSoftInvalidationOfAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := warmed(t, minute, twoASecond)
		w.burst("a", 6, 1)
		w.stamps.Add(fleet.ByAll, "", "", fleet.Soft, time.Now())
		for range 3 {
			for i := range 6 {
				if r := w.get(fmt.Sprintf("/a/%d", i)); r.Status != 200 || r.FirstByte != 0 {
					t.Errorf("page %d: status %d after %v", i, r.Status, r.FirstByte)
				}
			}
		}
		wantPerSecond(t, "refreshes", w.perSecond(4), []int{2, 2, 2, 0})
	})
}

// TestPopularFirst: of those who wait for their turn, the page that is read most
// goes first, although it came last.
func TestPopularFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := warmed(t, minute, twoASecond)
		for range 100 {
			w.get("/hot")
		}
		w.stamps.Add(fleet.ByAll, "", "", fleet.Hard, time.Now())
		w.seen()
		var answers []<-chan extproctest.Result
		for _, path := range []string{"/0", "/1", "/2", "/3", "/hot"} {
			answers = append(answers, w.start(path))
			synctest.Wait()
		}
		for _, c := range answers {
			<-c
		}
		var order []string
		for _, a := range w.seen() {
			order = append(order, a.path)
		}
		if want := []string{"/0", "/hot", "/1", "/2", "/3"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// TestPopularRefreshesFirst: so it is with refreshes that no client waits for.
func TestPopularRefreshesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := warmed(t, minute, twoASecond)
		paths := []string{"/0", "/1", "/2", "/3", "/hot"}
		for _, path := range paths {
			w.get(path)
		}
		for range 100 {
			w.get("/hot")
		}
		w.stamps.Add(fleet.ByAll, "", "", fleet.Soft, time.Now())
		w.seen()
		for _, path := range paths {
			w.get(path)
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		var order []string
		for _, a := range w.seen() {
			order = append(order, a.path)
		}
		if want := []string{"/0", "/hot", "/1", "/2", "/3"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// TestRampOverflow: who finds no place in the queue gets stale, or a 503 that
// says when to come again.
func TestRampOverflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := warmed(t, `{ttl: {default: 60s}, jitterPercent: 0, xfetch: {mode: "Off"}, stale: {whileRevalidate: 0s},
			originLimits: {maxQueue: 1}}`, twoASecond)
		w.get("/stale")
		w.stamps.Add(fleet.ByAll, "", "", fleet.Soft, time.Now())
		runs, waits := w.start("/a"), w.start("/b")
		synctest.Wait()
		if r := w.get("/c"); r.Status != 503 || r.Header.Get("retry-after") == "" {
			t.Errorf("no room: status %d, %v", r.Status, r.Header)
		}
		if r := w.get("/stale"); r.Status != 200 || r.FirstByte > 250*time.Millisecond {
			t.Errorf("a stale page: status %d after %v", r.Status, r.FirstByte)
		}
		if a, b := <-runs, <-waits; a.Status != 200 || b.Status != 200 {
			t.Errorf("statuses %d, %d", a.Status, b.Status)
		}
	})
}
