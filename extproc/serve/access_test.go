package serve

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weirproxy/weir/extproc/store"
)

// TestRedisWithTLSAndUser: --redis-url names a user, the password and the CA come from files.
func TestRedisWithTLSAndUser(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "of Redis")
	server := ca.issue(t, "redis")
	cert, err := tls.X509KeyPair(server.cert, server.key)
	if err != nil {
		t.Fatal(err)
	}
	m, err := miniredis.RunTLS(&tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.RequireUserAuth("weir", "the password")
	dir := tlsDir(t.TempDir())
	dir.write(t, "secret", []byte(strings.Repeat("5a", 32)))
	dir.write(t, "password", []byte("the password\n"))
	dir.write(t, "ca.crt", ca.pem)
	a := joinsAs(t, "a", func(cfg *Config) {
		cfg.RedisURL, cfg.SecretFile = RedisURL("rediss://weir@"+m.Addr()), dir.path("secret")
		cfg.RedisPasswordFile, cfg.RedisCAFile = dir.path("password"), dir.path("ca.crt")
	})
	a.inTouch(t)

	other := newAuthority(t, "of somebody else")
	dir.write(t, "ca.crt", other.pem)
	stranger := joinsAs(t, "b", func(cfg *Config) {
		cfg.RedisURL, cfg.SecretFile = RedisURL("rediss://weir@"+m.Addr()), dir.path("secret")
		cfg.RedisPasswordFile, cfg.RedisCAFile = dir.path("password"), dir.path("ca.crt")
	})
	if err := stranger.warmUpAll(t.Context(), nil); err == nil {
		t.Error("a Redis whose certificate another CA has signed was believed")
	}
}

// TestSharedKeysRotate: while both have a new key and the old one, what was stored with either is believed; once the
// old one is gone, what was stored with it is not.
func TestSharedKeysRotate(t *testing.T) {
	t.Parallel()
	oldKey, newKey := strings.Repeat("5a", 32), strings.Repeat("b1", 32)
	m := miniredis.RunT(t)
	dir := tlsDir(t.TempDir())
	dir.write(t, "secret", []byte(oldKey))
	join := func(name string) *member {
		b := joinsAs(t, name, func(cfg *Config) {
			cfg.RedisURL, cfg.SecretFile = RedisURL("redis://"+m.Addr()), dir.path("secret")
		})
		b.inTouch(t)
		return b
	}
	a, b := join("a"), join("b")
	share := func(from *member, url string) (e *store.Entry) {
		t.Helper()
		from.put(t, url, func(made *store.Entry) { e = made })
		if err := from.fleet.tiered.Put(t.Context(), e, 16, time.Now()); err != nil {
			t.Fatal(err)
		}
		return e
	}
	believes := func(who *member, e *store.Entry) bool {
		t.Helper()
		r, err := who.fleet.shared.Get(t.Context(), &e.Key, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return r.Entry != nil
	}
	eventually := func(what string, cond func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	before := share(a, "https://shop.example/before")
	another := tlsDir(t.TempDir())
	another.write(t, "secret", []byte(newKey))
	c := joinsAs(t, "c", func(cfg *Config) {
		cfg.RedisURL, cfg.SecretFile = RedisURL("redis://"+m.Addr()), another.path("secret")
	})
	c.inTouch(t)
	byNew := share(c, "https://shop.example/new")
	if believes(a, byNew) || believes(c, before) || !believes(b, before) {
		t.Error("each believes what was stored with its own key, and nothing else")
	}
	dir.write(t, "secret", []byte(newKey+"\n"+oldKey+"\n"))
	eventually("the new key was not taken into use", func() bool { return believes(a, byNew) && believes(b, byNew) })
	if !believes(a, before) || !believes(b, before) {
		t.Error("with both keys, what was stored with the old one is not believed")
	}
	dir.write(t, "secret", []byte(newKey+"\n"))
	eventually("the old key is still believed", func() bool { return !believes(a, before) && !believes(b, before) })
	if after := share(a, "https://shop.example/after"); !believes(b, after) || !believes(c, after) {
		t.Error("what is stored with the new key is not believed")
	}
}
