package serve

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store/redis"
)

// secrets keep the keys of refill tokens and of shared entries at what
// --secret-file says.
type secrets struct {
	file    string // empty: a key of this process alone
	log     *slog.Logger
	tokens  *refill.Tokens
	keyring *redis.Keyring // nil without a file: nobody else could have its keys
	keys    [][]byte
}

func newSecrets(file string, log *slog.Logger) (*secrets, error) {
	if file == "" {
		return &secrets{tokens: refill.NewTokens()}, nil
	}
	keys, err := refill.LoadKeys(file)
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %w", err)
	}
	keyring, err := redis.NewKeyring(keys...)
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %w", err)
	}
	return &secrets{file: file, log: log, tokens: refill.NewTokens(keys...), keyring: keyring, keys: keys}, nil
}

func (s *secrets) watch(ctx context.Context) error {
	return watchFiles(ctx, s.log, []string{s.file}, s.reload)
}

// reload is called by watch alone.
func (s *secrets) reload() {
	keys, err := refill.LoadKeys(s.file)
	if err != nil {
		s.log.Error("Secret file not usable, keeping what was", "error", err)
		return
	}
	if reflect.DeepEqual(keys, s.keys) {
		return
	}
	s.keys = keys
	s.tokens.Replace(keys)
	s.keyring.Replace(keys)
	s.log.Info("Secret file taken into use", "file", s.file, "keys", len(keys))
}
