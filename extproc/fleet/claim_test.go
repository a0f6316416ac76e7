package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

func TestLeaseIsGrantedOnce(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	claim := claimOf("/")
	l := a.granted(t, claim)
	held := b.wants(t, claim, Held)
	if held.By != "a" || held.Token != l.Token() || held.Left <= 0 || held.Left > DefaultLeaseLife {
		t.Errorf("held by %q under %d for %v, want a, %d, up to 3s", held.By, held.Token, held.Left, l.Token())
	}
	b.granted(t, claimOf("/other"))

	kept := a.commits(t, l, a.answer(claim, "hello"))
	if kept.Shared.Token != l.Token() || kept.Shared.Body == 0 {
		t.Errorf("kept under %+v, want token %d", kept.Shared, l.Token())
	}
	found := b.wants(t, claim, Found)
	if content(found.Entry) != "hello" || found.Entry.Shared != kept.Shared {
		t.Errorf("found %q under %+v, want hello under %+v", content(found.Entry), found.Entry.Shared, kept.Shared)
	}
}

func TestOnlyWhatIsNewerIsReturned(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	claim := claimOf("/")
	first := a.commits(t, a.granted(t, claim), a.answer(claim, "1"))

	refresh := claim
	refresh.Known = first
	l := b.granted(t, refresh) // b has what is there, and fetches
	second := b.commits(t, l, a.answer(claim, "2"))
	if second.Shared.Token <= first.Shared.Token {
		t.Errorf("token %d after %d", second.Shared.Token, first.Shared.Token)
	}
	if got := a.wants(t, refresh, Found); content(got.Entry) != "2" {
		t.Errorf("a refresh found %q, want 2", content(got.Entry))
	}

	local := claim // what never was in Redis is told by when it came
	local.Known = a.answer(claim, "3")
	local.Known.ResponseTime = time.Now().Add(time.Second)
	a.granted(t, local)
}

func TestStaleAnswersAreNotFound(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	for path, change := range map[string]func(*store.Entry){
		"/stale":   func(e *store.Entry) { e.InitialAge, e.WhileRevalidate = time.Hour, 2*time.Hour },
		"/noCache": func(e *store.Entry) { e.ValidateAlways = true },
	} {
		claim := claimOf(path)
		e := a.answer(claim, "old")
		change(e)
		a.commits(t, a.granted(t, claim), e)
		b.granted(t, claim)
	}
}

func TestInvalidAnswersAreNotFound(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	for _, mode := range []Mode{Hard, Soft} {
		claim := claimOf("/" + mode.String())
		e := a.answer(claim, "old")
		a.commits(t, a.granted(t, claim), e)
		b.wants(t, claim, Found)
		i := Invalidation{Kind: ByURL, Namespace: "shop", Value: e.URI, Mode: mode}
		if _, err := b.Stamp(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		l := b.granted(t, claim)
		b.commits(t, l, b.answer(claim, "new"))
		if err := a.sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := a.wants(t, claim, Found); content(got.Entry) != "new" {
			t.Errorf("%v: found %q, want new", mode, content(got.Entry))
		}
	}
}

func TestVaryBecomesKnownByTheAnswer(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	cold := claimOf("/")
	l := a.granted(t, cold)
	if got := b.wants(t, varying("/", "br"), VaryChanged); len(got.Vary.Names) > 0 {
		t.Errorf("who knows more than the fleet is told %v, want no names: all wait for one answer", got.Vary)
	}
	a.commits(t, l, a.answer(varying("/", "gzip"), "zipped"))

	changed := b.wants(t, cold, VaryChanged)
	if got := changed.Vary.Names; len(got) != 1 || got[0] != "accept-encoding" {
		t.Fatalf("Vary is %q, want accept-encoding", got)
	}
	if got := b.wants(t, varying("/", "gzip"), Found); content(got.Entry) != "zipped" {
		t.Errorf("found %q", content(got.Entry))
	}
	// Each variant has a lease of its own.
	b.granted(t, varying("/", "br"))
	a.granted(t, varying("/", "identity"))
	a.wants(t, varying("/", "br"), Held)
}

// TestVaryThatOneProcessKnows: after Redis lost the resource, the first who claims
// says by what it varies.
func TestVaryThatOneProcessKnows(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	a.granted(t, varying("/", "gzip"))
	b.wants(t, claimOf("/"), VaryChanged)
	b.wants(t, varying("/", "gzip"), Held)
	b.granted(t, varying("/", "br"))
}

func TestLargeAnswersAreFoundWhole(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	claim, want := claimOf("/"), strings.Repeat("0123456789abcdef", 100_000)
	a.commits(t, a.granted(t, claim), a.answer(claim, want))
	if got := b.wants(t, claim, Found); content(got.Entry) != want {
		t.Errorf("found %d bytes, want %d", got.Entry.Body.Len(), len(want))
	}
}

func TestNotModifiedKeepsTheBody(t *testing.T) {
	t.Parallel()
	m, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	claim := claimOf("/")
	old := a.answer(claim, strings.Repeat("x", 200_000))
	old.Header = append(old.Header, httpcache.Field{Name: "etag", Value: `"1"`})
	old.Lifetime = time.Second
	kept := a.commits(t, a.granted(t, claim), old)

	chunk := "weir:{" // any chunk of it
	for _, key := range m.Keys() {
		if strings.HasSuffix(key, ":1") && strings.Contains(key, ":b:") {
			chunk = key
		}
	}
	before := m.TTL(chunk)
	refresh := claim
	refresh.Known = kept
	l := b.granted(t, refresh)
	fresh := *kept
	fresh.Lifetime, fresh.ResponseTime = time.Hour, time.Now()
	again, err := b.Fleet.Commit(t.Context(), l, &fresh, kept)
	if err != nil || again.Shared.Body != kept.Shared.Body || again.Shared.Token != l.Token() {
		t.Fatalf("kept as %+v, %v; want body %d under token %d", again.Shared, err, kept.Shared.Body, l.Token())
	}
	if after := m.TTL(chunk); after < before+50*time.Minute {
		t.Errorf("the body lives for %v, before the 304 for %v", after, before)
	}
	if got := a.wants(t, refresh, Found); content(got.Entry) != content(old) || got.Entry.Lifetime != time.Hour {
		t.Errorf("found %d bytes, fresh for %v", got.Entry.Body.Len(), got.Entry.Lifetime)
	}

	// A body that is gone is written again.
	m.Del(chunk)
	refresh.Known = again
	l = a.granted(t, refresh)
	fresh.ResponseTime = time.Now()
	third, err := a.Fleet.Commit(t.Context(), l, &fresh, again)
	if err != nil || third.Shared.Body == kept.Shared.Body {
		t.Fatalf("kept as %+v, %v; want another body", third.Shared, err)
	}
	if got := b.wants(t, refresh, Found); content(got.Entry) != content(old) {
		t.Errorf("found %d bytes", got.Entry.Body.Len())
	}
}

func TestReplicaOnlyAnswersStayHere(t *testing.T) {
	t.Parallel()
	m, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	claim := claimOf("/")
	claim.Policy.Storage.ReplicaOnly = true
	if Shares(claim.Policy) || Coalesces(claim.Policy) {
		t.Error("answers of sharing: Replica are shared")
	}
	a.commits(t, a.granted(t, claim), a.answer(claim, "private"))
	for _, key := range m.Keys() {
		if strings.Contains(key, ":b:") || strings.Contains(key, ":v:") {
			t.Errorf("%s is in Redis", key)
		}
	}
	b.wants(t, claim, Apart)
}

func TestWhatCannotBeStoredForAllEndsTheWaiting(t *testing.T) {
	t.Parallel()
	_, c := mini(t)
	a, b := join(t, c, "a", nil), join(t, c, "b", nil)
	open := a.answer(claimOf("/open"), "")
	open.Body = store.NewBody(-1)
	star := a.answer(claimOf("/star"), "x")
	star.Vary.Any = true
	for path, e := range map[string]*store.Entry{"/open": open, "/star": star} {
		l := a.granted(t, claimOf(path))
		_, err := a.Fleet.Commit(t.Context(), l, e, nil)
		if wantErr := path == "/open"; (err != nil) != wantErr || err != nil && !errors.Is(err, store.ErrNotWhole) {
			t.Errorf("%s: Commit: %v", path, err)
		}
		b.wants(t, claimOf(path), Apart)
	}
}
