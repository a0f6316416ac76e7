package fleet

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// model is a fleet of three replicas with an origin whose contents have versions.
// Content changes, and then it is invalidated; what a replica serves as valid must
// be no older than any invalidation that it has confirmed.
type model struct {
	clients  []*goredis.Client
	client   *goredis.Client // of the test: always connected
	replicas []*member
	version  map[string]int    // of the origin, by path
	told     map[string]int    // least version by the invalidations in Redis
	fetches  []*fetch          // under way, whatever became of their replicas
	newest   map[string]uint64 // newest token known to be granted, by path
	holder   map[string]uint64 // token that must be held, by path; 0: none, or unknown
	births   map[uint64]uint64 // of the fetches by their tokens
	done     map[uint64]bool   // tokens that were committed
}

type member struct {
	*replica
	link   *link
	memory map[string]*store.Entry
	must   map[string]int // least version that it may serve as valid, by path
	queued map[string]int // the same, by its invalidations that Redis does not have
}

type fetch struct {
	by      *member
	path    string
	lease   *Lease
	version int
	birth   uint64
}

func newModel(t *testing.T, addr string) *model {
	m := &model{
		version: map[string]int{}, told: map[string]int{}, newest: map[string]uint64{},
		holder: map[string]uint64{}, births: map[uint64]uint64{}, done: map[uint64]bool{},
	}
	m.client = m.dial(addr)
	m.client.FlushAll(t.Context())
	for i := range 3 {
		l := &link{}
		c := m.dial(addr)
		c.AddHook(l)
		m.replicas = append(m.replicas, &member{
			replica: join(t, c, fmt.Sprint("r", i), nil), link: l, memory: map[string]*store.Entry{},
			must: map[string]int{}, queued: map[string]int{},
		})
	}
	return m
}

func (m *model) dial(addr string) *goredis.Client {
	c := newClient(addr)
	m.clients = append(m.clients, c)
	return c
}

// end stops the timers of leases that are still under way, and closes connections.
func (m *model) end() {
	for _, c := range m.clients {
		_ = c.Close()
	}
	for _, f := range m.fetches {
		f.lease.end()
	}
}

func TestModelOnMiniredis(t *testing.T) {
	t.Parallel()
	server, _ := mini(t)
	rapid.Check(t, func(rt *rapid.T) { runModel(t, rt, server.Addr()) })
}

func TestModelOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rapid.Check(t, func(rt *rapid.T) { runModel(t, rt, server.Addr) })
}

func runModel(t *testing.T, rt *rapid.T, addr string) {
	m := newModel(t, addr)
	defer m.end()
	rt.Repeat(map[string]func(*rapid.T){
		"acquire": m.acquire, "renew": m.renew, "crash": m.crash, "commit": m.commit, "settle": m.settle,
		"expire": m.expire, "change": m.change, "invalidate": m.invalidate, "sync": m.sync, "link": m.cut,
		"trim": m.trim, "lose": m.lose, "serve": m.serve, "serve from Redis": m.serveShared,
	})
}

func (m *model) drawMember(t *rapid.T) *member {
	return m.replicas[rapid.IntRange(0, 2).Draw(t, "replica")]
}

func drawModelPath(t *rapid.T) string { return rapid.SampledFrom([]string{"/a", "/b"}).Draw(t, "path") }

func (m *model) drawFetch(t *rapid.T) *fetch {
	if len(m.fetches) == 0 {
		t.Skip("no fetch is under way")
	}
	return rapid.SampledFrom(m.fetches).Draw(t, "fetch")
}

func (m *model) forget(f *fetch) {
	f.lease.end()
	for i := range m.fetches {
		if m.fetches[i] == f {
			m.fetches = append(m.fetches[:i], m.fetches[i+1:]...)
			return
		}
	}
}

// acquire claims a path; who gets the lease begins to fetch.
func (m *model) acquire(t *rapid.T) {
	r, path := m.drawMember(t), drawModelPath(t)
	c := claimOf(path)
	c.Known, c.URI = r.memory[path], urlOf(path)
	got := r.Acquire(t.Context(), c)
	t.Logf("%s at %d: %v", r.opts.Replica, r.stamps.Position(), got.State)
	switch got.State {
	case Found:
		m.check(t, r, path, got.Entry, "found")
		if k := c.Known; k != nil && got.Entry.Shared.Token <= k.Shared.Token {
			t.Fatalf("found token %d, which is not above the known %d", got.Entry.Shared.Token, k.Shared.Token)
		}
		r.memory[path] = got.Entry
	case Granted:
		token := got.Lease.Token()
		if held := m.holder[path]; held != 0 && !m.useless(r, &c, held) {
			t.Fatalf("token %d is granted for %s while %d is held", token, path, held)
		}
		if token <= m.newest[path] || m.done[token] {
			t.Fatalf("token %d is granted after %d", token, m.newest[path])
		}
		m.newest[path], m.holder[path], m.births[token] = token, token, r.stamps.Position()
		m.fetches = append(m.fetches, &fetch{
			by: r, path: path, lease: got.Lease, version: m.version[path], birth: r.stamps.Position(),
		})
	case Held:
		if m.useless(r, &c, got.Token) {
			t.Fatalf("%s is to wait for %d, which an invalidation that it knows has made useless", r.opts.Replica, got.Token)
		}
	case Unavailable:
		m.holder[path] = 0 // the answer may have been lost: it may have been granted, over one of no use any more
		if r.link.state.Load() == linkUp && r.InTouch() {
			t.Fatalf("claim: %v", got.Err)
		}
	}
}

// useless reports whether the replica knows of an invalidation that the fetch under
// a token has not seen.
func (m *model) useless(r *member, c *Claim, token uint64) bool {
	birth, known := m.births[token]
	return known && birth>>localBits < r.stamps.Refuses(c.covered())>>localBits
}

// alive reports whether the lease cannot have run out by itself: on a real Redis
// time passes while others wait for links that are cut.
func (l *Lease) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet.opts.Now().Before(l.until)
}

func (m *model) renew(t *rapid.T) {
	f := m.drawFetch(t)
	err := f.lease.renew()
	if err == nil && f.lease.Token() < m.newest[f.path] {
		t.Fatalf("lease %d was renewed although %d was granted", f.lease.Token(), m.newest[f.path])
	}
	if errors.Is(err, errLost) && m.holder[f.path] == f.lease.Token() && f.lease.alive() {
		t.Fatalf("lease %d is held, and was not renewed", f.lease.Token())
	}
}

// crash ends a fetch without a word.
func (m *model) crash(t *rapid.T) { m.forget(m.drawFetch(t)) }

// expire is what time does to a lease that is not renewed.
func (m *model) expire(t *rapid.T) {
	path := drawModelPath(t)
	key := redis.NameOf(testKey(path)).Lease(redis.AnyVariant)
	if m.client.HExists(t.Context(), key, "until").Val() {
		m.client.HSet(t.Context(), key, "until", 1)
	}
	m.holder[path] = 0
}

// commit ends a fetch with its answer.
func (m *model) commit(t *rapid.T) {
	f := m.drawFetch(t)
	e := f.by.answer(claimOf(f.path), strconv.Itoa(f.version))
	e.Birth = f.birth
	kept, err := f.by.Fleet.Commit(t.Context(), f.lease, e, nil)
	token := f.lease.Token()
	t.Logf("%s commits version %d of %s, born at %d, under %d: %v",
		f.by.opts.Replica, f.version, f.path, f.birth, token, err)
	switch {
	case err == nil:
		if m.done[token] {
			t.Fatalf("two commits under token %d", token)
		}
		if token < m.newest[f.path] {
			t.Fatalf("commit under %d although %d was granted", token, m.newest[f.path])
		}
		m.done[token] = true
	case !errors.Is(err, ErrFenced) && !errors.Is(err, ErrOutlived):
		if f.by.link.state.Load() == linkUp {
			t.Fatalf("commit: %v", err)
		}
		m.done[token] = true // it may have arrived
	}
	if m.holder[f.path] == token {
		m.holder[f.path] = 0
	}
	f.by.memory[f.path] = kept
	m.forget(f)
}

func (m *model) settle(t *rapid.T) {
	f := m.drawFetch(t)
	how := Settlement(rapid.SampledFrom([]int{int(Release), int(FetchFailed)}).Draw(t, "how"))
	err := f.by.Settle(t.Context(), f.lease, how)
	if err == nil && f.lease.Token() < m.newest[f.path] {
		t.Fatalf("lease %d was ended although %d was granted", f.lease.Token(), m.newest[f.path])
	}
	if m.holder[f.path] == f.lease.Token() {
		m.holder[f.path] = 0
	}
	m.forget(f)
}

// change changes the content at the origin.
func (m *model) change(t *rapid.T) { m.version[drawModelPath(t)]++ }

// invalidate says that all content from before is invalid.
func (m *model) invalidate(t *rapid.T) {
	r, path := m.drawMember(t), drawModelPath(t)
	i := Invalidation{Kind: ByURL, Namespace: "shop", Value: urlOf(path), Mode: Mode(rapid.IntRange(0, 1).Draw(t, "mode"))}
	if rapid.Bool().Draw(t, "by policy") {
		i.Kind, i.Value = ByPolicy, "shop/catalog"
	}
	at, err := r.Stamp(t.Context(), i)
	t.Logf("%s stamps %d, and is at %d: %v", r.opts.Replica, local(at), r.stamps.Position(), err)
	for p := range m.version {
		if i.Kind == ByURL && p != path {
			continue
		}
		r.must[p] = m.version[p] // whatever the error
		if err != nil {
			r.queued[p] = m.version[p]
		} else {
			m.told[p] = m.version[p]
		}
	}
	if err != nil && r.link.state.Load() == linkUp {
		t.Fatalf("stamp: %v", err)
	}
}

// sync lets a replica follow. If that fails it goes on by itself.
func (m *model) sync(t *rapid.T) {
	r := m.drawMember(t)
	if err := r.Fleet.sync(t.Context()); err != nil {
		if r.link.state.Load() == linkUp {
			t.Fatalf("sync: %v", err)
		}
		r.lostTouch(err)
		return
	}
	t.Logf("%s is at %d", r.opts.Replica, r.stamps.Position())
	for p, v := range r.queued {
		m.told[p] = max(m.told[p], v)
		delete(r.queued, p)
	}
	for p, v := range m.told {
		r.must[p] = max(r.must[p], v)
	}
}

func (m *model) cut(t *rapid.T) {
	m.drawMember(t).link.state.Store(rapid.Int32Range(0, linkStates-1).Draw(t, "state"))
}

// trim drops the stream: replicas have to read the set.
func (m *model) trim(t *rapid.T) { m.client.Del(t.Context(), "weir:{stamps}:log") }

// lose drops all stamps, as a failover to an empty Redis does.
func (m *model) lose(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "rarely") == 0 {
		m.client.Del(t.Context(), "weir:{stamps}", "weir:{stamps}:set", "weir:{stamps}:log", "weir:{stamps}:replicas")
	}
}

// serve answers from the memory of a replica.
func (m *model) serve(t *rapid.T) {
	r, path := m.drawMember(t), drawModelPath(t)
	if e := r.memory[path]; e != nil {
		m.check(t, r, path, e, "in memory")
	}
}

// serveShared answers from Redis.
func (m *model) serveShared(t *rapid.T) {
	r, path := m.drawMember(t), drawModelPath(t)
	epoch, ok := r.Reading()
	if !ok {
		t.Skip("it could not be judged")
	}
	got, err := r.Get(t.Context(), testKey(path), httpcache.Fields{}, r.Fleet.opts.Now())
	if err == nil && got.Entry != nil && r.Read(epoch, got.Entry) {
		m.check(t, r, path, got.Entry, "in Redis")
	}
}

// check fails if the replica would serve an entry that is older than what it has
// confirmed.
func (m *model) check(t *rapid.T, r *member, path string, e *store.Entry, where string) {
	if r.stamps.Check(CoveredBy(e, "shop")) != Valid {
		return
	}
	version, err := strconv.Atoi(content(e))
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if version < r.must[path] {
		t.Fatalf("%s has version %d of %s %s, born at %d, although an invalidation by version %d is confirmed",
			r.opts.Replica, version, path, where, e.Birth, r.must[path])
	}
}
