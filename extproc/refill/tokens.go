package refill

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Life of tokens. The second is larger, so that replicas whose clocks differ a
// little accept each other's.
const (
	tokenLife    = 5 * time.Second
	maxTokenLife = 10 * time.Second
)

// Tokens mints and verifies the tokens that mark a request as weir's own. A token
// is bound to one method, authority and path and dies within 10 s, so that one
// which leaks opens nothing else. It is safe for concurrent use.
type Tokens struct {
	keys atomic.Pointer[[]tokenKey] // newest first, never empty
}

type tokenKey struct {
	id     string
	secret [sha256.Size]byte
}

// NewTokens returns Tokens that mint with the first key and accept all. Without
// keys it makes up one of its own: then only this process accepts its tokens.
func NewTokens(keys ...[]byte) *Tokens {
	t := &Tokens{}
	if len(keys) == 0 {
		own := make([]byte, minKeySize)
		_, _ = rand.Read(own) // never fails (crypto/rand)
		keys = [][]byte{own}
	}
	t.Replace(keys)
	return t
}

// Replace takes other keys into use, newest first. An empty list changes nothing.
func (t *Tokens) Replace(keys [][]byte) {
	if len(keys) == 0 {
		return
	}
	list := make([]tokenKey, len(keys))
	for i, k := range keys {
		// Derived, so that the file's keys can serve other purposes as well.
		list[i].secret = [sha256.Size]byte(derive(k, "weir refill token"))
		list[i].id = hex.EncodeToString(derive(k, "weir refill key id")[:4])
	}
	t.keys.Store(&list)
}

func derive(key []byte, purpose string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}

// Mint returns a token for one request, good for 5 s from now on.
func (t *Tokens) Mint(method, authority, path string, now time.Time) string {
	key := &(*t.keys.Load())[0]
	return key.token(method, authority, path, now.Add(tokenLife).UnixMilli())
}

// Verify reports whether token was minted, by a key in use, for this request and
// is alive at now.
func (t *Tokens) Verify(token, method, authority, path string, now time.Time) bool {
	const maxToken = 128 // longer than any of ours
	if len(token) > maxToken {
		return false
	}
	parts := strings.Split(token, ".")
	if len(parts) != 4 {
		return false
	}
	expires, err := strconv.ParseInt(parts[2], 36, 64)
	if err != nil {
		return false
	}
	if left := expires - now.UnixMilli(); left <= 0 || left > maxTokenLife.Milliseconds() {
		return false
	}
	keys := *t.keys.Load()
	for i := range keys {
		// The whole token is compared, so that it has only one spelling.
		if keys[i].id == parts[1] && hmac.Equal([]byte(token), []byte(keys[i].token(method, authority, path, expires))) {
			return true
		}
	}
	return false
}

// token is: version, key, expiry in Unix milliseconds, MAC.
func (k *tokenKey) token(method, authority, path string, expires int64) string {
	mac := base64.RawURLEncoding.EncodeToString(k.mac(method, authority, path, expires))
	return "1." + k.id + "." + strconv.FormatInt(expires, 36) + "." + mac
}

// mac authenticates an injective encoding of its arguments.
func (k *tokenKey) mac(method, authority, path string, expires int64) []byte {
	m := hmac.New(sha256.New, k.secret[:])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(expires))
	m.Write(n[:])
	for _, s := range [...]string{method, authority, path} {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		m.Write(n[:])
		m.Write([]byte(s))
	}
	return m.Sum(nil)
}
