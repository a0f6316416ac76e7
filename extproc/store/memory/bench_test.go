package memory

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
	"github.com/weirproxy/weir/extproc/wire"
)

// response returns an entry as the data plane makes it of an ordinary answer:
// eight fields, a body of size bytes, and the wire form of small ones.
func response(path string, size int) *store.Entry {
	headers := map[string]string{"host": "shop.example.com"}
	e := &store.Entry{
		Key: cachepolicy.BuildKey(&cachepolicy.KeyRules{Hash: "8f14e45f"}, cachepolicy.KeyInput{
			Scope: "shop/catalog/rule-0", Scheme: "https", Authority: headers["host"], Path: path,
			Header: func(name string) (string, bool) { v, ok := headers[name]; return v, ok },
		}),
		URI: "https://" + headers["host"] + path, Status: 200, Policy: "shop/catalog",
		ResponseTime: storetest.Epoch(), Lifetime: time.Hour,
		Header: httpcache.Fields{
			{Name: "content-type", Value: "application/json; charset=utf-8"},
			{Name: "content-length", Value: fmt.Sprint(size)},
			{Name: "cache-control", Value: "public, max-age=3600"},
			{Name: "date", Value: "Mon, 30 Nov 2026 12:00:00 GMT"},
			{Name: "etag", Value: fmt.Sprintf("%q", path)},
			{Name: "last-modified", Value: "Sun, 29 Nov 2026 08:30:00 GMT"},
			{Name: "server", Value: "nginx"},
			{Name: "x-request-id", Value: "0c9e5f3a-6b7d-4c1e-9a52-1f0d3b8e7c64"},
		},
	}
	body := make([]byte, size)
	if size > wire.MaxImmediateBody {
		e.Body = storetest.Whole(body)
		return e
	}
	message, part := wire.PrepareImmediate(wire.Answer{Status: 200, Header: e.Header, Details: "weir_hit"}, body)
	e.Wire, e.Body = message, store.WholeBody(part)
	return e
}

// payload is what the origin sent: the header section as HTTP/1.1 writes it, and
// the body.
func payload(e *store.Entry) (n int64) {
	for _, f := range e.Header {
		n += int64(len(f.Name) + len(f.Value) + len(": \r\n"))
	}
	return n + e.Body.Len()
}

// BenchmarkHeld measures what entries occupy on the heap, against what the store
// accounts and against the payload. It is a measurement, not a loop: run it with
// -benchtime 1x.
func BenchmarkHeld(b *testing.B) {
	for _, c := range []struct {
		name    string
		n, size int
	}{{"1MiB", 1000, 1 << 20}, {"64KiB", 10_000, 64 << 10}, {"1KiB", 1_000_000, 1 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				m := New(Options{Limit: 1 << 40})
				var sent int64
				for i := range c.n {
					e := response(fmt.Sprintf("/products/%08d?page=2", i), c.size)
					sent += payload(e)
					if err := m.Put(b.Context(), e, 16, storetest.Epoch()); err != nil {
						b.Fatal(err)
					}
				}
				held := heap() - before
				b.ReportMetric(float64(held)/float64(sent), "held/payload")
				b.ReportMetric(float64(held)/float64(m.Stats().Bytes), "held/accounted")
				b.ReportMetric(float64(held)/float64(c.n), "B/entry")
				runtime.KeepAlive(m)
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func BenchmarkGet(b *testing.B) {
	const keys = 1 << 14
	m := New(Options{Limit: 1 << 30})
	now := storetest.Epoch()
	all := make([]cachepolicy.Key, keys)
	for i := range all {
		e := response(fmt.Sprintf("/products/%08d?page=2", i), 1<<10)
		all[i] = e.Key
		if err := m.Put(b.Context(), e, 16, now); err != nil {
			b.Fatal(err)
		}
	}
	req := storetest.Accepting("gzip")
	for name, span := range map[string]int{"OneHotKey": 1, "ManyKeys": keys} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.IntN(keys); pb.Next(); i++ {
					if r, _ := m.Get(b.Context(), &all[i%span], req, now); r.Entry == nil {
						b.Error("miss")
					}
				}
			})
		})
	}
}

func BenchmarkPut(b *testing.B) {
	m := New(Options{Limit: 64 << 20})
	entries := make([]*store.Entry, 1<<17)
	for i := range entries {
		entries[i] = response(fmt.Sprintf("/products/%08d?page=2", i), 1<<10)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := m.Put(b.Context(), entries[i%len(entries)], 16, storetest.Epoch()); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
