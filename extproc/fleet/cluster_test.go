package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// connect returns a client as weir makes it of a URL.
func connect(tb testing.TB, url string) goredis.UniversalClient {
	tb.Helper()
	o, err := redis.ParseURL(url, "", "")
	if err != nil {
		tb.Fatal(err)
	}
	o.ReadTimeout, o.WriteTimeout, o.DialTimeout = patience, patience, patience
	c := redis.Connect(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// TestCluster: every resource lies in one slot, and all of them are served by the
// node that has it.
func TestCluster(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3)
	url := "redis+cluster://" + strings.Join(redistest.Addrs(servers), ",")
	a, b := join(t, connect(t, url), "a", nil), join(t, connect(t, url), "b", nil)
	b.run(t)
	for i := range 60 {
		claim := claimOf(fmt.Sprint("/", i))
		want := strings.Repeat("x", i*5000)
		l := a.granted(t, claim)
		held := b.wants(t, claim, Held)
		end := b.waits(t.Context(), claim, held)
		a.commits(t, l, a.answer(claim, want))
		if got := <-end; got.State != Found || content(got.Entry) != want {
			t.Fatalf("%d: waiting ended with %v (%v)", i, got.State, got.Err)
		}
		if err := a.Put(t.Context(), a.answer(varying(fmt.Sprint("/v", i), "gzip"), want), 4, time.Now()); err != nil {
			t.Fatal(err)
		}
		err := b.Update(t.Context(), testKey(fmt.Sprint("/v", i)), time.Now(), func(old []*store.Entry) []*store.Entry {
			e := *old[0]
			e.Status = 203
			return []*store.Entry{&e}
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Get(t.Context(), testKey(fmt.Sprint("/v", i)), httpcache.Fields{{Name: "accept-encoding", Value: "gzip"}},
			time.Now())
		if err != nil || r.Entry == nil || content(r.Entry) != want || r.Entry.Status != 203 {
			t.Fatalf("%d: Get: %+v, %v", i, r, err)
		}
	}
	receipt, err := a.Invalidate(t.Context(), Invalidation{Kind: ByAll})
	if err != nil || receipt.Confirmed != 2 {
		t.Errorf("receipt %+v, %v", receipt, err)
	}
	for _, s := range servers {
		if n, ok := s.Must("DBSIZE").(int64); !ok || n == 0 {
			t.Errorf("%s has no keys", s.Addr)
		}
	}
}

// TestSentinelFailover: the fleet goes on with the new master, and nothing old is
// believed.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	redistest.StartReplica(t, master)
	sentinel := redistest.StartSentinel(t, master)
	url := "redis+sentinel://" + sentinel.Addr + "/" + redistest.MasterName
	a, b := join(t, connect(t, url), "a", nil), join(t, connect(t, url), "b", nil)
	a.run(t)
	b.run(t)
	claim := claimOf("/")
	kept := a.commits(t, a.granted(t, claim), a.answer(claim, "before"))
	b.wants(t, claim, Found)

	master.Stop()
	redistest.Eventually(t, "both are in touch with the new master", func() error {
		for _, r := range []*replica{a, b} {
			if s := r.Fleet.Stats(); !s.InTouch || s.Histories == 0 {
				return fmt.Errorf("%s: %+v", r.opts.Replica, s)
			}
		}
		return nil
	})
	if got := a.stamps.Check(CoveredBy(kept, "shop")); got != SoftStale {
		t.Errorf("what was stored before has verdict %d, want stale", got)
	}
	l := a.granted(t, claim)
	b.wants(t, claim, Held)
	a.commits(t, l, a.answer(claim, "after"))
	if got := b.wants(t, claim, Found); content(got.Entry) != "after" {
		t.Errorf("found %q", content(got.Entry))
	}
	receipt, err := b.Invalidate(t.Context(), Invalidation{Kind: ByURL, Value: urlOf("/")})
	if err != nil || receipt.Confirmed != 2 {
		t.Errorf("receipt %+v, %v", receipt, err)
	}
}
