package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

const churnWriters, churnReaders = 6, 12

// churn is content that changes and is invalidated all the time, through all replicas, while clients ask for it. It
// judges every answer: what was asked for after an invalidation was confirmed must not be older than that.
type churn struct {
	*fleet
	// rough: processes die meanwhile, so that requests and invalidations may fail; none may be wrong.
	rough                                            bool
	keys                                             [64]churnKey
	reads, fetches, writes, uncertain, stale, failed atomic.Int64

	starting sync.RWMutex // a replica is being started again
}

// churnKey is one page: its newest version, and the newest whose invalidation was confirmed.
type churnKey struct {
	content, confirmed atomic.Int64
}

func (*churnKey) path(k int) string { return fmt.Sprintf("/fills/%d", k) }

// run runs writers and readers until done.
func (c *churn) run(done func() bool) {
	for k := range c.keys {
		c.serve(c.keys[k].path(k), c.answer(k))
	}
	var wg sync.WaitGroup
	stop := func() bool { return done() || c.t.Failed() }
	for w := range churnWriters {
		wg.Go(func() { c.write(w, stop) })
	}
	for i := range churnReaders {
		wg.Go(func() { c.read(c.replicas[i%len(c.replicas)], stop) })
	}
	wg.Wait()
	c.t.Logf("%d reads, %d requests at the origin, %d confirmed invalidations, %d not confirmed in time, %d stale, "+
		"%d failed", c.reads.Load(), c.fetches.Load(), c.writes.Load(), c.uncertain.Load(), c.stale.Load(), c.failed.Load())
}

// churnBody is the content of a page in a version: not so small that it could not break off.
func churnBody(version int64) string {
	return strconv.FormatInt(version, 10) + ":" + strings.Repeat(strconv.FormatInt(version%10, 10), 5000)
}

// answer gives the version there is when the request comes, some time later.
func (c *churn) answer(k int) func(int, *http.Request) harness.Reply {
	return func(int, *http.Request) harness.Reply {
		c.fetches.Add(1)
		return harness.Reply{
			Body:   []byte(churnBody(c.keys[k].content.Load())), // read now, sent later
			Delay:  time.Duration(rand.N(20)) * time.Millisecond,
			Header: harness.Fields("Cache-Control", "max-age=600", "Surrogate-Key", fmt.Sprintf("k%d", k)),
		}
	}
}

// write changes pages and invalidates them.
func (c *churn) write(first int, done func() bool) {
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	for n := first; !done(); n += churnWriters {
		k, r := n%len(c.keys), c.replicas[rand.N(len(c.replicas))]
		key := &c.keys[k]
		version := key.content.Add(1)
		sure, err := c.invalidateOne(client, r, key.path(k), fmt.Sprintf("k%d", k), n)
		switch {
		case err != nil && !c.rough:
			c.t.Errorf("invalidate: %v", err)
			return
		case err != nil:
			c.failed.Add(1)
			time.Sleep(10 * time.Millisecond) // it is being started again
		case !sure:
			c.uncertain.Add(1)
		default:
			c.writes.Add(1)
			for have := key.confirmed.Load(); have < version; have = key.confirmed.Load() {
				key.confirmed.CompareAndSwap(have, version)
			}
		}
	}
}

// read asks one replica for pages.
func (c *churn) read(r *replica, done func() bool) {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: patience}
	defer client.CloseIdleConnections()
	for !done() {
		k := rand.N(len(c.keys))
		least := c.keys[k].confirmed.Load()
		body, err := fetch(client, r.get(c.keys[k].path(k)))
		if err != nil && c.rough {
			c.failed.Add(1)
			continue
		}
		number, _, _ := strings.Cut(body, ":")
		got, errNumber := strconv.ParseInt(number, 10, 64)
		if err != nil || errNumber != nil || body != churnBody(got) {
			c.t.Errorf("replica %s: %d bytes %.20q, %v", r.name, len(body), body, err)
			return
		}
		c.reads.Add(1)
		if got < least {
			c.stale.Add(1)
			c.t.Errorf("%s replica %s, key %d: version %d after %d was confirmed",
				time.Now().Format(time.StampMicro), r.name, k, got, least)
		}
	}
}

// invalidateOne invalidates a path by one of several roads, and reports whether all replicas have confirmed it.
func (c *churn) invalidateOne(client *http.Client, r *replica, path, tag string, n int) (sure bool, err error) {
	order := map[string]string{"by": "Url", "value": fleetURL(path), "namespace": "shop"}
	if n%3 == 0 {
		order = map[string]string{"by": "Tag", "value": tag, "namespace": "shop"}
	}
	body, err := json.Marshal(order)
	if err != nil {
		return false, err
	}
	c.starting.RLock()
	address := r.weir.AdminAddress
	c.starting.RUnlock()
	resp, err := client.Post("http://"+address+"/v1/invalidate", "application/json", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	var done invalidation
	if err := json.NewDecoder(resp.Body).Decode(&done); err != nil {
		return false, err
	}
	return done.Certain, nil
}
