package redis

import (
	"bytes"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
)

// hotStore is a store of a process with the key.
func hotStore(t *testing.T, m *miniredis.Miniredis, key string) *Store {
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

// wantHot loads the list.
func (s *Store) wantHot(t *testing.T, what string, want []byte) {
	t.Helper()
	got, err := s.LoadHot(t.Context())
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v, want %d", what, len(got), err, len(want))
	}
}

// TestHotTurn: one replica has the turn within each interval.
func TestHotTurn(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	s := hotStore(t, m, "0123456789abcdef")
	for _, tt := range []struct {
		replica string
		after   time.Duration
		want    bool
	}{{"a", 0, true}, {"b", 0, false}, {"a", 0, false}, {"b", time.Minute, true}} {
		m.FastForward(tt.after)
		if won, err := s.HotTurn(t.Context(), tt.replica, time.Minute); err != nil || won != tt.want {
			t.Errorf("turn of %s: %v, %v, want %v", tt.replica, won, err, tt.want)
		}
	}
}

// TestHotList: what one saves all read, and nobody believes what was altered, or made
// with another key.
func TestHotList(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	a, b := hotStore(t, m, "0123456789abcdef"), hotStore(t, m, "0123456789abcdef")
	stranger := hotStore(t, m, "fedcba9876543210")
	a.wantHot(t, "nothing saved", nil)
	list := bytes.Repeat([]byte("hot"), 1000)
	if err := a.SaveHot(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	b.wantHot(t, "saved", list)
	stranger.wantHot(t, "with another key", nil)
	if n := stranger.Stats().Refused.MAC; n != 1 {
		t.Errorf("%d refusals are counted, want 1", n)
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
		b.wantHot(t, "altered", nil)
	}
	m.Close()
	if _, err := b.LoadHot(t.Context()); err == nil {
		t.Error("no error without Redis")
	}
}
