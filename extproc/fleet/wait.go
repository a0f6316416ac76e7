package fleet

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// Waited is the end of waiting. Its State is Found, VaryChanged, Apart (the answer
// could not be shared), Failed, Free, Unavailable, or Held if ctx ended.
type Waited struct {
	State State
	Entry *store.Entry   // Found
	Vary  httpcache.Vary // VaryChanged
	Err   error          // Unavailable
}

// The net below the wake-ups: a waiter looks after a random time up to a bound
// that doubles.
const (
	minLook = 50 * time.Millisecond
	maxLook = time.Second
)

// Wait waits for what becomes of the fetch that held says another process makes.
// It is woken by that process; should the word be lost it looks by itself, with
// exponential back-off and full jitter, and when the lease should have ended. One
// goroutine of a process waits for all that want the variant.
func (f *Fleet) Wait(ctx context.Context, c Claim, held Claimed) Waited {
	woken := f.waiters.add(redis.NameOf(c.Key).String(), redis.VariantName(c.Vary.Names, c.Vary.Select(c.Header)))
	defer woken.remove()
	w := f.wait(ctx, &c, held, woken)
	f.counts.waits[w.State].Add(1)
	return w
}

func (f *Fleet) wait(ctx context.Context, c *Claim, held Claimed, woken *waiter) Waited {
	timer := time.NewTimer(0) // look at once: word may have come before we listened
	defer timer.Stop()
	limit, token := minLook, held.Token
	for {
		select {
		case <-ctx.Done():
			return Waited{State: Held}
		case m := <-woken.c:
			switch {
			case m.Token < token: // of an earlier fetch
			case m.Wake == redis.WakeUncacheable:
				return Waited{State: Apart}
			case m.Wake == redis.WakeFailed:
				return Waited{State: Failed}
			}
		case <-timer.C:
			f.counts.looks.Add(1)
		}
		got := f.claim(ctx, c, "", max(token, 1))
		if got.State != Held {
			return Waited{State: got.State, Entry: got.Entry, Vary: got.Vary, Err: got.Err}
		}
		token = got.Token
		timer.Reset(min(rand.N(limit)+time.Millisecond, got.Left+rand.N(minLook)))
		limit = min(2*limit, maxLook)
	}
}

// waiters are those of this process who wait for a wake-up, by resource.
type waiters struct {
	mu     sync.Mutex
	byName map[string]map[*waiter]struct{}
}

// waiter is one of them.
type waiter struct {
	all           *waiters
	name, variant string
	c             chan redis.Message // has room for one: what was dropped, a look finds
}

func (ws *waiters) add(name, variant string) *waiter {
	w := &waiter{all: ws, name: name, variant: variant, c: make(chan redis.Message, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byName == nil {
		ws.byName = map[string]map[*waiter]struct{}{}
	}
	if ws.byName[name] == nil {
		ws.byName[name] = map[*waiter]struct{}{}
	}
	ws.byName[name][w] = struct{}{}
	return w
}

func (w *waiter) remove() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	delete(w.all.byName[w.name], w)
	if len(w.all.byName[w.name]) == 0 {
		delete(w.all.byName, w.name)
	}
}

// wake wakes those whom a message concerns: who waits for the variant, and when an
// answer was stored all who wait for the resource, since it may be theirs.
func (ws *waiters) wake(m redis.Message) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.byName[m.Name] {
		if m.Wake != redis.WakeCommitted && m.Variant != w.variant {
			continue
		}
		select {
		case w.c <- m:
		default:
		}
	}
}

// len returns how many wait.
func (ws *waiters) len() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	n := 0
	for _, set := range ws.byName {
		n += len(set)
	}
	return n
}
