package redis

import (
	"bytes"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
)

// TestHotList: one replica has the turn; what it saves all read, and nobody believes
// what was altered, made with another key, or of another release.
func TestHotList(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	open := func(key string) *Store {
		t.Helper()
		c := goredis.NewClient(&goredis.Options{Addr: m.Addr(), Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { _ = c.Close() })
		keys, err := NewKeyring([]byte(key))
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(c, Options{Keys: keys, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b, stranger := open("0123456789abcdef"), open("0123456789abcdef"), open("fedcba9876543210")
	ctx := t.Context()
	for _, tt := range []struct {
		store *Store
		name  string
		after time.Duration
		want  bool
	}{{a, "a", 0, true}, {b, "b", 0, false}, {a, "a", 0, false}, {b, "b", time.Minute, true}} {
		m.FastForward(tt.after)
		if won, err := tt.store.HotTurn(ctx, tt.name, time.Minute); err != nil || won != tt.want {
			t.Errorf("turn of %s: %v, %v, want %v", tt.name, won, err, tt.want)
		}
	}
	if got, err := a.LoadHot(ctx); got != nil || err != nil {
		t.Errorf("nothing saved: %q, %v", got, err)
	}
	list := bytes.Repeat([]byte("hot"), 1000)
	if err := a.SaveHot(ctx, list); err != nil {
		t.Fatal(err)
	}
	if got, err := b.LoadHot(ctx); !bytes.Equal(got, list) || err != nil {
		t.Errorf("%d bytes, %v, want what was saved", len(got), err)
	}
	if got, err := stranger.LoadHot(ctx); got != nil || err != nil || stranger.Stats().Refused.MAC != 1 {
		t.Errorf("with another key: %q, %v, %+v", got, err, stranger.Stats().Refused)
	}
	sealed, err := m.Get(hotKey)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed[:sealSize+10] {
		altered := []byte(sealed)
		altered[i] ^= 1
		if err := m.Set(hotKey, string(altered)); err != nil {
			t.Fatal(err)
		}
		if got, err := b.LoadHot(ctx); got != nil || err != nil {
			t.Errorf("byte %d altered: %d bytes, %v", i, len(got), err)
		}
	}
	m.Close()
	if _, err := b.LoadHot(ctx); err == nil {
		t.Error("no error without Redis")
	}
}
