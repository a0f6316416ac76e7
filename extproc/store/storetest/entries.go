package storetest

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// Epoch is the instant at which the suite's entries arrive.
func Epoch() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// Key returns the key of a path.
func Key(path string) cachepolicy.Key {
	canonical := "storetest\x00https\x00example.com\x00" + path
	return cachepolicy.Key{Hash: sha256.Sum256([]byte(canonical)), Canonical: canonical}
}

// Whole returns a body that has ended.
func Whole(content []byte) *store.Body {
	b := store.NewBody(int64(len(content)))
	if err := b.Append(content); err != nil {
		panic(err) // a new body is open
	}
	b.End()
	return b
}

// Entry returns a whole response to GET path that arrived at [Epoch] and is
// fresh for a minute.
func Entry(path, content string) *store.Entry {
	return &store.Entry{
		Key:    Key(path),
		URI:    "https://example.com" + path,
		Status: 200,
		Header: httpcache.Fields{
			{Name: "content-type", Value: "text/plain"},
			{Name: "cache-control", Value: "max-age=60"},
		},
		Body:         Whole([]byte(content)),
		ResponseTime: Epoch(),
		Lifetime:     time.Minute,
		Policy:       "shop/catalog",
	}
}

// Variant returns an [Entry] whose response varies by accept-encoding, with the
// value that its request had.
func Variant(path, encoding, content string) *store.Entry {
	e := Entry(path, content)
	e.Vary = httpcache.Vary{Names: []string{"accept-encoding"}}
	e.VaryValues = e.Vary.Select(Accepting(encoding))
	return e
}

// Accepting returns the fields of a request with Accept-Encoding.
func Accepting(encoding string) httpcache.Fields {
	return httpcache.Fields{{Name: "accept-encoding", Value: encoding}}
}

// Content returns the whole body of e.
func Content(e *store.Entry) string {
	var b bytes.Buffer
	for part := range e.Body.Bytes(0, e.Body.Len()) {
		b.Write(part)
	}
	return b.String()
}

func put(t *testing.T, s store.Store, e *store.Entry) {
	t.Helper()
	if err := s.Put(t.Context(), e, 16, e.ResponseTime); err != nil {
		t.Fatalf("Put: %v", err)
	}
}

func get(t *testing.T, s store.Store, path string, req httpcache.Fields, now time.Time) store.Result {
	t.Helper()
	key := Key(path)
	r, err := s.Get(t.Context(), &key, req, now)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return r
}

// wantContent fails the test unless a Get finds the content.
func wantContent(t *testing.T, s store.Store, path string, req httpcache.Fields, now time.Time, want string) {
	t.Helper()
	r := get(t, s, path, req, now)
	if r.Entry == nil {
		t.Fatalf("Get(%q) at %v is a miss, want %q", path, now.Sub(Epoch()), want)
	}
	if got := Content(r.Entry); got != want {
		t.Fatalf("Get(%q) at %v has content %q, want %q", path, now.Sub(Epoch()), got, want)
	}
}

// wantMiss fails the test if a Get finds an entry.
func wantMiss(t *testing.T, s store.Store, path string, req httpcache.Fields, now time.Time) store.Result {
	t.Helper()
	r := get(t, s, path, req, now)
	if r.Entry != nil {
		t.Fatalf("Get(%q) at %v has content %q, want a miss", path, now.Sub(Epoch()), Content(r.Entry))
	}
	return r
}
