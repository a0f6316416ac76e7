package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// issuer signs JSON Web Tokens with ES256.
type issuer struct {
	t   *testing.T
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{t: t, key: key}
}

// keySet is the JSON Web Key Set of the issuer.
func (i issuer) keySet() string {
	i.t.Helper()
	point, err := i.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		i.t.Fatal(err)
	}
	return i.json(map[string]any{"keys": []map[string]string{{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "test",
		"x": base64url(point[1:33]), "y": base64url(point[33:]),
	}}})
}

// token makes a token that is valid for an hour.
func (i issuer) token() string {
	i.t.Helper()
	signed := base64url([]byte(i.json(map[string]string{"alg": "ES256", "kid": "test", "typ": "JWT"}))) + "." +
		base64url([]byte(i.json(map[string]any{"sub": "someone", "exp": time.Now().Add(time.Hour).Unix()})))
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return signed + "." + base64url(append(fixed(r), fixed(s)...))
}

func (i issuer) json(v any) string {
	i.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		i.t.Fatal(err)
	}
	return string(text)
}

// broken returns the token with a bit of its signature changed.
func broken(token string) string {
	last := len(token) - 2
	other := byte('A')
	if token[last] == other {
		other = 'B'
	}
	return token[:last] + string(other) + token[last+1:]
}

func fixed(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// TestGuardStandsBeforeTheCache: what is stored is shared only with those whom the gateway lets in, whether the guard
// or the policy was there first.
func TestGuardStandsBeforeTheCache(t *testing.T) {
	for _, guardFirst := range []bool{true, false} {
		name := "policy first"
		if guardFirst {
			name = "guard first"
		}
		t.Run(name, func(t *testing.T) {
			s := startFleet(t)
			login := newIssuer(t)
			s.servePage("/page", "public, max-age=60")
			if !guardFirst {
				s.applyPolicy()
				harness.Do(t, s.get("/page")) // what is stored now must not get around the guard either
			}
			s.apply("jwt.yaml", map[string]any{"JWKS": login.keySet()})
			s.eventually("the guard stands", func() bool { return s.status(s.get("/page")) == http.StatusUnauthorized })
			token := login.token()
			if guardFirst {
				s.login = "Bearer " + token
				s.applyPolicy()
				s.login = ""
			}
			good := s.get("/page", "Authorization", "Bearer "+token)
			if status := s.status(good); status != http.StatusOK {
				t.Errorf("with a good token: status %d, want 200", status)
			}
			s.wantCacheStatus(harness.Do(t, good), "weir; hit")
			for what, request := range map[string]*http.Request{
				"without a token":             s.get("/page"),
				"with a bad token":            s.get("/page", "Authorization", "Bearer "+broken(token)),
				"with a stranger's signature": s.get("/page", "Authorization", "Bearer "+newIssuer(t).token()),
			} {
				if status := s.status(request); status != http.StatusUnauthorized {
					t.Errorf("%s: status %d, want 401", what, status)
				}
			}
		})
	}
}
