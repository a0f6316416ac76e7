package refill

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, minKeySize) }

func TestTokenIsBound(t *testing.T) {
	t.Parallel()
	tokens := NewTokens(key(1))
	token := tokens.Mint("GET", "a.test", "/x?y=1", t0)
	tests := []struct {
		name                    string
		method, authority, path string
		at                      time.Duration
		want                    bool
	}{
		{"the request it was minted for", "GET", "a.test", "/x?y=1", 0, true},
		{"just alive", "GET", "a.test", "/x?y=1", tokenLife - time.Millisecond, true},
		{"just dead", "GET", "a.test", "/x?y=1", tokenLife, false},
		{"a verifier whose clock is behind", "GET", "a.test", "/x?y=1", tokenLife - maxTokenLife, true},
		{"minted in the future", "GET", "a.test", "/x?y=1", tokenLife - maxTokenLife - time.Millisecond, false},
		{"long dead", "GET", "a.test", "/x?y=1", time.Hour, false},
		{"another method", "POST", "a.test", "/x?y=1", 0, false},
		{"another authority", "GET", "b.test", "/x?y=1", 0, false},
		{"another path", "GET", "a.test", "/x?y=2", 0, false},
		{"bytes moved from path to authority", "GET", "a.test/", "x?y=1", 0, false},
		{"nothing", "", "", "", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tokens.Verify(token, tt.method, tt.authority, tt.path, t0.Add(tt.at)); got != tt.want {
				t.Errorf("Verify = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestForgedTokens(t *testing.T) {
	t.Parallel()
	tokens := NewTokens(key(1))
	token := tokens.Mint("GET", "a.test", "/", t0)
	if !tokens.Verify(token, "GET", "a.test", "/", t0) {
		t.Fatal("a good token is refused")
	}
	forged := []string{
		"", ".", "...", "1...", token + "x", token + ".", token[:len(token)-1], "1" + token, "2" + token[1:],
		strings.Replace(token, ".", "..", 1), strings.ToUpper(token), " " + token, token + "\n",
		strings.Repeat("a", 1<<20), "1." + strings.Repeat(".", 100), NewTokens(key(2)).Mint("GET", "a.test", "/", t0),
		NewTokens().Mint("GET", "a.test", "/", t0),
	}
	for i := range len(token) {
		changed := []byte(token)
		changed[i] ^= 1
		forged = append(forged, string(changed))
	}
	// A longer life, with the MAC of the shorter one.
	parts := strings.Split(token, ".")
	later := strings.Split(tokens.Mint("GET", "a.test", "/", t0.Add(time.Second)), ".")
	forged = append(forged, strings.Join([]string{parts[0], parts[1], later[2], parts[3]}, "."))
	for _, f := range forged {
		if tokens.Verify(f, "GET", "a.test", "/", t0) {
			t.Errorf("%.100q was accepted", f)
		}
	}
}

// Keys change without a moment in which one's own tokens are refused.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	tokens, other := NewTokens(key(1)), NewTokens(key(2))
	old := tokens.Mint("GET", "a.test", "/", t0)
	verify := func(token string) bool { return tokens.Verify(token, "GET", "a.test", "/", t0) }

	tokens.Replace([][]byte{key(2), key(1)})
	young := tokens.Mint("GET", "a.test", "/", t0)
	if !verify(old) || !verify(young) {
		t.Error("with both keys a token is refused")
	}
	if !other.Verify(young, "GET", "a.test", "/", t0) || other.Verify(old, "GET", "a.test", "/", t0) {
		t.Error("the newest key is not the one that mints")
	}
	tokens.Replace([][]byte{key(2)})
	if verify(old) || !verify(young) {
		t.Error("the old key still counts, or the new does not")
	}
	tokens.Replace(nil)
	if !verify(young) {
		t.Error("an empty list took the keys away")
	}
}

func TestOwnKeysDiffer(t *testing.T) {
	t.Parallel()
	a, b := NewTokens(), NewTokens()
	token := a.Mint("GET", "a.test", "/", t0)
	if !a.Verify(token, "GET", "a.test", "/", t0) || b.Verify(token, "GET", "a.test", "/", t0) {
		t.Error("two processes without a secret file do not have a key each")
	}
}

// What is stored or logged of a token or an error must not give the key away.
func TestTokenIsAHeaderValue(t *testing.T) {
	t.Parallel()
	token := NewTokens(key('k')).Mint("GET", "a.test", "/", t0)
	if len(token) > 128 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }) {
		t.Errorf("token = %q", token)
	}
	if strings.Contains(token, "kkkk") || strings.Contains(token, "6b6b6b6b") {
		t.Errorf("the key shows in %q", token)
	}
}

func FuzzVerify(f *testing.F) {
	tokens := NewTokens(key(1))
	good := tokens.Mint("GET", "a.test", "/", t0)
	for _, s := range []string{good, "", "1...", "1.00000000.zzzzzzzzzzzzzzz.AAAA", good[:20], "1.-1.-1.=", good + "A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if tokens.Verify(token, "GET", "a.test", "/", t0) && token != good {
			t.Errorf("%q was accepted", token)
		}
	})
}

func BenchmarkVerifyForged(b *testing.B) {
	tokens := NewTokens(key(1))
	token := NewTokens(key(2)).Mint("GET", "a.test", "/", t0)
	b.ReportAllocs()
	for b.Loop() {
		tokens.Verify(token, "GET", "a.test", "/", t0)
	}
}
