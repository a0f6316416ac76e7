package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/extproc/refill"
)

// TestSecretsReload: a new key is used, the old one still accepted while the
// file names it, and a broken file changes nothing.
func TestSecretsReload(t *testing.T) {
	t.Parallel()
	oldKey, newKey := strings.Repeat("0a", 32), strings.Repeat("b1", 32)
	dir, now := tlsDir(t.TempDir()), time.Now()
	dir.write(t, "secret", []byte(oldKey+"\n"))
	s, err := newSecrets(dir.path("secret"), quiet())
	if err != nil {
		t.Fatal(err)
	}
	mint := func(key string) string {
		t.Helper()
		keys, err := refill.ParseKeys([]byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return refill.NewTokens(keys...).Mint("GET", "a", "/", now)
	}
	steps := []struct {
		name, content          string
		acceptsOld, acceptsNew bool
	}{
		{"as started", oldKey, true, false},
		{"both", newKey + "\n" + oldKey, true, true},
		{"nonsense", "nonsense", true, true},
		{"empty", "", true, true},
		{"new alone", newKey, false, true},
	}
	for _, step := range steps {
		dir.write(t, "secret", []byte(step.content+"\n"))
		s.reload()
		gotOld := s.tokens.Verify(mint(oldKey), "GET", "a", "/", now)
		gotNew := s.tokens.Verify(mint(newKey), "GET", "a", "/", now)
		if gotOld != step.acceptsOld || gotNew != step.acceptsNew {
			t.Errorf("%s: accepts old %v, new %v, want %v, %v", step.name, gotOld, gotNew, step.acceptsOld, step.acceptsNew)
		}
	}
}

func TestSecretsWithoutFile(t *testing.T) {
	t.Parallel()
	s, err := newSecrets("", quiet())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if !s.tokens.Verify(s.tokens.Mint("GET", "a", "/", now), "GET", "a", "/", now) {
		t.Error("the process does not accept its own token")
	}
}
