package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/fleet/redistest"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// TestNothingLargeIsRead: whoever wrote it, a value over the bounds does not come
// over the wire.
func TestNothingLargeIsRead(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{MaxObjectSize: 1 << 20})
	key := storetest.Key("/")
	n := NameOf(&key)
	huge := strings.Repeat("x", 8<<20)
	for name, change := range map[string]func(){
		"head":  func() { setString(t, m, n.Head(AnyVariant), huge) },
		"chunk": func() { setString(t, m, stringKeys(m)[0], huge) },
		"variants": func() {
			for i := range 10_000 {
				m.HSet(n.Primary(), fmt.Sprint("v:", i), "1 2 3 4 5 6")
			}
		},
		"heads": func() {
			for i := range 100 {
				v := fmt.Sprint("v", i)
				m.HSet(n.Primary(), "v:"+v, fmt.Sprintf("%d 2 3 00000000000000000004 5 6", i))
				setString(t, m, n.Head(v), huge[:maxHead])
			}
		},
	} {
		m.FlushAll()
		mustPut(t, s, entryNow("/", "content"))
		change()
		r, err := s.Run(t.Context(), s.read, []string{n.Primary()}, 128, maxHead, maxHeads, maxChunk)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		size := len(r.Text(3))
		for _, v := range r.List(2) {
			size += len(v)
		}
		if size > maxHeads+maxChunk {
			t.Errorf("%s: %d bytes come", name, size)
		}
		if got := look(t, s, "/"); got != "" && got != "content" {
			t.Errorf("%s: %.10q is served", name, got)
		}
	}
}

// TestObjectsOverTheLimit are neither written nor read.
func TestObjectsOverTheLimit(t *testing.T) {
	t.Parallel()
	_, c := miniClient(t)
	large, small := newStore(t, c, Options{}), newStore(t, c, Options{MaxObjectSize: 1 << 20})
	e := entryNow("/", strings.Repeat("x", 1<<20+1))
	if err := small.Put(t.Context(), e, 1, time.Now()); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("Put: %v", err)
	}
	mustPut(t, large, e)
	if got := look(t, small, "/"); got != "" {
		t.Errorf("%d bytes are read", len(got))
	}
	if s := small.Stats(); s.Refused.TooLarge != 1 || s.TooLarge != 1 {
		t.Errorf("stats %+v", s)
	}
	many := entryNow("/", "x")
	for i := range maxFields + 1 {
		many.Header = append(many.Header, httpcache.Field{Name: fmt.Sprint("x-", i)})
	}
	wide := entryNow("/", "x")
	wide.Header = append(wide.Header, httpcache.Field{Name: "x", Value: strings.Repeat("x", maxHead)})
	for _, e := range []*store.Entry{many, wide} {
		if err := large.Put(t.Context(), e, 1, time.Now()); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("Put of %d fields: %v", len(e.Header), err)
		}
	}
}

// TestForeignTypes: a key that somebody made something else of is an error, and
// no panic.
func TestForeignTypes(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	key := storetest.Key("/")
	setString(t, m, NameOf(&key).Primary(), "a string")
	if _, err := s.Get(t.Context(), &key, nil, time.Now()); err == nil {
		t.Error("a string is read as a record")
	}
	if err := s.Put(t.Context(), entryNow("/", "x"), 1, time.Now()); err == nil {
		t.Error("a string is written as a record")
	}
}

// TestEverythingHasALifetime, on a real Redis, whatever was done.
func TestEverythingHasALifetime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := server.Client()
	s := newStore(t, c, Options{})
	large := strings.Repeat("x", 200_000)
	mustPut(t, s, entryNow("/a", "a"))
	mustPut(t, s, entryNow("/b", large))
	e := entryNow("/c", large)
	e.Lifetime, e.IfError = time.Hour, time.Hour
	mustPut(t, s, e)
	v := storetest.Variant("/d", "gzip", large)
	v.ResponseTime = time.Now()
	mustPut(t, s, v)
	key := storetest.Key("/d")
	if err := s.Update(t.Context(), &key, time.Now(), func(old []*store.Entry) []*store.Entry {
		f := *old[0]
		f.Lifetime = 2 * time.Hour
		return []*store.Entry{&f}
	}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, entryNow("/e", "gone"))
	key = storetest.Key("/e")
	if err := s.Delete(t.Context(), &key); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, entryNow("/a", "replaced"))

	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) < 15 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, k := range keys {
		if ttl := c.PTTL(t.Context(), k).Val(); ttl <= 0 || ttl > 2*time.Hour+time.Second {
			t.Errorf("%s lives for %v", k, ttl)
		}
	}
	for path, life := range map[string]time.Duration{"/b": time.Minute, "/c": 2 * time.Hour, "/d": 2 * time.Hour} {
		key := storetest.Key(path)
		for _, k := range c.Keys(t.Context(), NameOf(&key).Primary()+"*").Val() {
			if ttl := c.PTTL(t.Context(), k).Val(); ttl > life+time.Second || ttl < life-30*time.Second {
				t.Errorf("%s lives for %v, want %v", k, ttl, life)
			}
		}
	}
}

// TestFull: with memory full, reads go on and writes fail without a trace.
func TestFull(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	s := newStore(t, server.Client(), Options{})
	mustPut(t, s, entryNow("/", "before"))
	server.Must("CONFIG", "SET", "maxmemory", "1")
	for _, size := range []int{10, 200_000} {
		if err := s.Put(t.Context(), entryNow("/", strings.Repeat("x", size)), 1, time.Now()); err == nil {
			t.Errorf("%d bytes were written", size)
		}
	}
	if got := look(t, s, "/"); got != "before" {
		t.Errorf("reads give %q", got)
	}
	key := storetest.Key("/")
	if err := s.Delete(t.Context(), &key); err != nil && look(t, s, "/") != "before" {
		t.Errorf("Delete: %v", err)
	}
	server.Must("CONFIG", "SET", "maxmemory", "0")
	mustPut(t, s, entryNow("/", "after"))
	if got := look(t, s, "/"); got != "after" {
		t.Errorf("after: %q", got)
	}
}
