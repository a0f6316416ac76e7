package redis

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// entryNow is an entry that has just arrived.
func entryNow(path, content string) *store.Entry {
	e := storetest.Entry(path, content)
	e.ResponseTime = time.Now()
	return e
}

func mustPut(tb testing.TB, s *Store, e *store.Entry) {
	tb.Helper()
	if err := s.Put(tb.Context(), e, 16, time.Now()); err != nil {
		tb.Fatal(err)
	}
}

// look returns the content that is found, or "".
func look(tb testing.TB, s *Store, path string) string {
	tb.Helper()
	key := storetest.Key(path)
	r, err := s.Get(tb.Context(), &key, nil, time.Now())
	if err != nil {
		tb.Fatalf("Get: %v", err)
	}
	if r.Entry == nil {
		return ""
	}
	return storetest.Content(r.Entry)
}

// strings lists the keys of heads and chunks.
func stringKeys(m *miniredis.Miniredis) (keys []string) {
	for _, k := range m.Keys() {
		if strings.Contains(k, ":v:") || strings.Contains(k, ":b:") {
			keys = append(keys, k)
		}
	}
	return keys
}

func getString(tb testing.TB, m *miniredis.Miniredis, key string) string {
	tb.Helper()
	v, err := m.Get(key)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func setString(tb testing.TB, m *miniredis.Miniredis, key, value string) {
	tb.Helper()
	if err := m.Set(key, value); err != nil {
		tb.Fatal(err)
	}
}

// TestEveryFlippedByteIsAMiss: of head and body.
func TestEveryFlippedByteIsAMiss(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	mustPut(t, s, entryNow("/", "content"))
	keys := stringKeys(m)
	if len(keys) != 2 {
		t.Fatalf("keys %q, want a head and a chunk", keys)
	}
	for _, key := range keys {
		whole := getString(t, m, key)
		for i := range whole {
			for _, bit := range []byte{1, 0x80} {
				flipped := []byte(whole)
				flipped[i] ^= bit
				setString(t, m, key, string(flipped))
				if got := look(t, s, "/"); got != "" {
					t.Fatalf("byte %d of %s flipped: %q is served", i, key, got)
				}
			}
		}
		for _, other := range []string{"", whole[:len(whole)-1], whole + "x", whole[:sealSize], whole[:sealSize-1]} {
			setString(t, m, key, other)
			if got := look(t, s, "/"); got != "" {
				t.Errorf("%d of %d bytes of %s: %q is served", len(other), len(whole), key, got)
			}
		}
		setString(t, m, key, whole)
	}
	if got := look(t, s, "/"); got != "content" {
		t.Errorf("as it was: %q", got)
	}
	if r := s.Stats().Refused; r.MAC == 0 || r.Incomplete == 0 {
		t.Errorf("refusals are not counted: %+v", r)
	}
}

// TestRecordsServeNothingElse: what scripts decide by is not authenticated, and
// lying in it serves nothing that was not stored there.
func TestRecordsServeNothingElse(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	mustPut(t, s, entryNow("/", "content"))
	key := storetest.Key("/")
	primary := NameOf(&key).Primary()
	record := m.HGet(primary, "v:-")
	for i := range record {
		for _, b := range []byte("0917 x\xff") {
			changed := []byte(record)
			changed[i] = b
			m.HSet(primary, "v:-", string(changed))
			if got := look(t, s, "/"); got != "" && got != "content" {
				t.Fatalf("record %q: %q is served", changed, got)
			}
		}
	}
	for _, text := range []string{"", "1", strings.Repeat("9", 200), strings.Repeat("1 ", 500), "1 2 3 4 5 99999999999"} {
		m.HSet(primary, "v:-", text)
		if got := look(t, s, "/"); got != "" {
			t.Errorf("record %.20q: %q is served", text, got)
		}
	}
	m.HSet(primary, "v:-", record)
	m.HSet(primary, "v:other", record)
	if got := look(t, s, "/"); got != "content" {
		t.Errorf("with a variant too many: %q", got)
	}
}

// TestPartsOfOthersAreAMiss: heads and chunks count only where they were written.
func TestPartsOfOthersAreAMiss(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	large := func(fill string) string { return strings.Repeat(fill, 3*store.ChunkSize/len(fill)) }
	for path, content := range map[string]string{"/a": large("a"), "/b": large("b")} {
		mustPut(t, s, entryNow(path, content))
	}
	before := map[string]string{}
	for _, k := range stringKeys(m) {
		before[k] = getString(t, m, k)
	}
	for to, whole := range before {
		for from, other := range before {
			if from == to {
				continue
			}
			setString(t, m, to, other)
			for path, want := range map[string]string{"/a": large("a"), "/b": large("b")} {
				if got := look(t, s, path); got != "" && got != want {
					t.Errorf("%s in the place of %s: another content is served for %s", from, to, path)
				}
			}
			setString(t, m, to, whole)
		}
	}
}

// TestBodiesOfOtherCommitsAreAMiss: an older body under a newer head.
func TestBodiesOfOtherCommitsAreAMiss(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	large := func(fill string) string { return strings.Repeat(fill, 3*store.ChunkSize) }
	key := storetest.Key("/")
	n := NameOf(&key)
	var bodies [2]uint64
	for i, fill := range []string{"old", "new"} {
		_, kept, err := s.Commit(t.Context(), entryNow("/", large(fill)), nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		bodies[i] = kept.Shared.Body
	}
	for i := range 9 {
		setString(t, m, n.chunk(bodies[1], i), getString(t, m, n.chunk(bodies[0], i)))
	}
	if got := look(t, s, "/"); got != "" {
		t.Errorf("the body of another commit is served: %.10q", got)
	}
}

// TestHeadsOfOthersAreAMiss: a head under another resource's or variant's name.
func TestHeadsOfOthersAreAMiss(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	mustPut(t, s, entryNow("/a", "a"))
	v := storetest.Variant("/a", "gzip", "zipped")
	v.ResponseTime = time.Now()
	mustPut(t, s, v)
	a, b := storetest.Key("/a"), storetest.Key("/b")
	na, nb := NameOf(&a), NameOf(&b)
	variant := VariantName(v.Vary.Names, v.VaryValues)
	copyAll := func(fromVariant, toVariant string, from, to Name) {
		m.HSet(to.Primary(), "v:"+toVariant, m.HGet(from.Primary(), "v:"+fromVariant))
		setString(t, m, to.Head(toVariant), getString(t, m, from.Head(fromVariant)))
	}
	copyAll(AnyVariant, AnyVariant, na, nb)
	for _, k := range stringKeys(m) {
		if strings.HasPrefix(k, na.Primary()+":b:") {
			setString(t, m, nb.Primary()+strings.TrimPrefix(k, na.Primary()), getString(t, m, k))
		}
	}
	if got := look(t, s, "/b"); got != "" {
		t.Errorf("/b is answered with %q of /a", got)
	}
	copyAll(variant, AnyVariant, na, na)
	if got := look(t, s, "/a"); got == "zipped" {
		t.Error("a request without accept-encoding is answered with the variant for gzip")
	}
}

// TestBodiesOfAnotherLengthAreAMiss, sealed as they may be.
func TestBodiesOfAnotherLengthAreAMiss(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	e := entryNow("/", "content")
	_, kept, err := s.Commit(t.Context(), e, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	n := NameOf(&e.Key)
	for _, body := range []string{"", "conten", "content!"} {
		in := chunkScope(n, kept.Shared.Body, 0, true)
		setString(t, m, n.chunk(kept.Shared.Body, 0), string(s.opts.Keys.seal(format, in, []byte(body))))
		if got := look(t, s, "/"); got != "" {
			t.Errorf("%q is served as the whole of content", got)
		}
	}
	if got := s.Stats().Refused.Malformed; got == 0 {
		t.Error("not counted")
	}
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	_, c := miniClient(t)
	const oldKey, newKey = "old 56789abcdef0123456789abcdef", "new 56789abcdef0123456789abcdef"
	before := newStore(t, c, Options{Keys: testKeys(t, oldKey)})
	mustPut(t, before, entryNow("/", "by the old key"))
	after := newStore(t, c, Options{Keys: testKeys(t, newKey, oldKey)})
	if got := look(t, after, "/"); got != "by the old key" {
		t.Errorf("an old key that is still there: %q", got)
	}
	mustPut(t, after, entryNow("/", "by the new key"))
	if got := look(t, before, "/"); got != "" {
		t.Errorf("a key that is not there yet: %q", got)
	}
	before.opts.Keys.Replace([][]byte{[]byte(oldKey), []byte(newKey)})
	if got := look(t, before, "/"); got != "by the new key" {
		t.Errorf("after the key came: %q", got)
	}
	after.opts.Keys.Replace([][]byte{[]byte("another 9abcdef0123456789abcdef0")})
	if got := look(t, after, "/"); got != "" {
		t.Errorf("a key that is gone: %q", got)
	}
	if _, err := NewKeyring(); err == nil {
		t.Error("a keyring without keys")
	}
	if _, err := New(c, Options{}); err == nil {
		t.Error("a store without keys")
	}
}

// TestSealsOfAnotherScopeDoNotOpen: key, index, last and number of the body are
// bound.
func TestSealsOfAnotherScopeDoNotOpen(t *testing.T) {
	t.Parallel()
	a, b := storetest.Key("/a"), storetest.Key("/b")
	na, nb := NameOf(&a), NameOf(&b)
	scopes := map[string]scope{
		"chunk": chunkScope(na, 7, 1, false), "last": chunkScope(na, 7, 1, true), "index": chunkScope(na, 7, 2, false),
		"body": chunkScope(na, 8, 1, false), "key": chunkScope(nb, 7, 1, false),
		"head": headScope(na, "v"), "variant": headScope(na, "w"), "head key": headScope(nb, "v"),
	}
	k := testKeys(t)
	for from, in := range scopes {
		sealed := k.seal(format, in, []byte("da"), []byte("ta"))
		for to, other := range scopes {
			_, data, ok := k.open(other, sealed)
			if ok != (from == to) || ok && !bytes.Equal(data, []byte("data")) {
				t.Errorf("sealed as %s, opened as %s: %v %q", from, to, ok, data)
			}
		}
	}
}

// TestEntriesOfTheReleaseBefore are served.
func TestEntriesOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	m, c := miniClient(t)
	s := newStore(t, c, Options{})
	h := full1()
	key := h.entry.Key
	h.received = time.Now().UnixMilli() * 1000
	h.entry.ValidateAlways, h.length = false, 5
	n := NameOf(&key)
	variant := VariantName(h.entry.Vary.Names, h.entry.VaryValues)
	put := func(format byte) {
		token := h.entry.Shared.Token
		m.HSet(n.Primary(), "v:"+variant,
			fmt.Sprintf("%d %d %d %020d %d 1", token, h.freshUntil(), h.usefulUntil(), 0, token))
		setString(t, m, n.Head(variant), string(s.opts.Keys.seal(format, headScope(n, variant), h.encode1())))
		setString(t, m, n.chunk(token, 0), string(s.opts.Keys.seal(format1, chunkScope(n, token, 0, true), []byte("hello"))))
	}
	get := func() *store.Entry {
		r, err := s.Get(t.Context(), &key, storetest.Accepting("gzip"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return r.Entry
	}
	put(format1)
	if e := get(); e == nil || storetest.Content(e) != "hello" || e.Lifetime != time.Minute || !e.Negative {
		t.Errorf("the format before: %+v", e)
	}
	put(format2 + 1)
	if e := get(); e != nil {
		t.Errorf("a format to come: %+v", e)
	}
	if got := s.Stats().Refused.Format; got != 1 {
		t.Errorf("%d refusals for their format, want 1", got)
	}
}
