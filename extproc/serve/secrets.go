package serve

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/weirproxy/weir/extproc/refill"
)

// secrets keep the keys of refill tokens at what --secret-file says.
type secrets struct {
	file   string // empty: a key of this process alone
	log    *slog.Logger
	tokens *refill.Tokens
	keys   [][]byte
}

func newSecrets(file string, log *slog.Logger) (*secrets, error) {
	if file == "" {
		return &secrets{tokens: refill.NewTokens()}, nil
	}
	keys, err := refill.LoadKeys(file)
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %w", err)
	}
	return &secrets{file: file, log: log, tokens: refill.NewTokens(keys...), keys: keys}, nil
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
	s.log.Info("Secret file taken into use", "file", s.file, "keys", len(keys))
}
