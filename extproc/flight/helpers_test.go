package flight

import (
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// page is the primary ID of a resource that varies.
var page = PrimaryID(&cachepolicy.Key{Hash: [32]byte{0: 'p', 31: 'e'}})

// plain is a request without fields.
var plain httpcache.Fields

func accepting(encoding string) httpcache.Fields {
	return httpcache.Fields{{Name: "accept-encoding", Value: encoding}}
}

// entry returns an entry with an empty open body that varies on names, as an
// answer to req.
func entry(req httpcache.Fields, names ...string) *store.Entry {
	v := httpcache.Vary{Names: names}
	return &store.Entry{
		Status: 200, Vary: v, VaryValues: v.Select(req), Body: store.NewBody(-1), ResponseTime: t0,
	}
}

func tagged(e *store.Entry, etag string) *store.Entry {
	e.Header = append(e.Header, httpcache.Field{Name: "etag", Value: etag})
	return e
}

// mustLead joins and must become the leader.
func mustLead(t *testing.T, g *Group, id ID, req httpcache.Fields) *Lead {
	t.Helper()
	role, l, w := g.Join(id, req, t0.Add(time.Second), Limits{Owner: "leader"}, t0)
	if role != RoleLead || l == nil || w != nil {
		t.Fatalf("Join = %v, %v, %v; want the lead alone", role, l, w)
	}
	return l
}

// mustFollow joins with a deadline that lies wait ahead and must become a
// follower.
func mustFollow(t *testing.T, g *Group, id ID, req httpcache.Fields, wait time.Duration) *Waiter {
	t.Helper()
	role, l, w := g.Join(id, req, t0.Add(wait), Limits{Owner: wait}, t0)
	if role != RoleFollow || l != nil || w == nil {
		t.Fatalf("Join = %v, %v, %v; want a waiter alone", role, l, w)
	}
	return w
}

// told returns the news that must be there.
func told(t *testing.T, w *Waiter) News {
	t.Helper()
	select {
	case n := <-w.C():
		return n
	default:
		t.Fatal("the waiter was told nothing")
		return News{}
	}
}

func wantKind(t *testing.T, w *Waiter, want NewsKind) News {
	t.Helper()
	n := told(t, w)
	if n.Kind != want {
		t.Fatalf("news = %v (%s), want %v", n.Kind, n.Reason, want)
	}
	return n
}

func wantSilence(t *testing.T, w *Waiter) {
	t.Helper()
	select {
	case n := <-w.C():
		t.Fatalf("the waiter was told %v, want nothing", n.Kind)
	default:
	}
}

func wantStats(t *testing.T, g *Group, flights, waiters int) {
	t.Helper()
	if f, w, _ := g.Stats(); f != flights || w != waiters {
		t.Errorf("Stats = %d flights, %d waiters; want %d, %d", f, w, flights, waiters)
	}
	registered := make(map[*Flight]bool)
	for i := range g.shards {
		for _, f := range g.shards[i].flights {
			registered[f] = true
		}
	}
	if flights == 0 && len(registered) != 0 {
		t.Errorf("%d flights are left in the shards", len(registered))
	}
}

// content returns what the body holds now.
func content(b *store.Body) string {
	var s []byte
	for i := 0; ; i++ {
		chunk, _, _ := b.Next(i)
		if chunk == nil {
			return string(s)
		}
		s = append(s, chunk...)
	}
}

// counters is an Observer that counts.
type counters struct {
	joined   [numRoles]atomic.Int64
	told     [numNewsKinds]atomic.Int64
	tookOver [2]atomic.Int64 // not started, started
	stalled  atomic.Int64
}

func (c *counters) observer() Observer {
	return Observer{
		Joined: func(r Role) { c.joined[r].Add(1) },
		Told:   func(k NewsKind, n int) { c.told[k].Add(int64(n)) },
		TookOver: func(started bool) {
			if started {
				c.tookOver[1].Add(1)
			} else {
				c.tookOver[0].Add(1)
			}
		},
		Stalled: func() { c.stalled.Add(1) },
	}
}
