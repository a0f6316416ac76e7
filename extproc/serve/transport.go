package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
)

// transport is what listeners speak with: certificates and the admin token,
// each kept at what its files say.
type transport struct {
	grpcTLS, adminTLS *tlsReloader   // nil: plain text
	token             *tokenReloader // nil: none is wanted
}

func newTransport(env environment) (*transport, error) {
	var t transport
	var errGRPC, errAdmin, errToken error
	count := env.metrics.TLSReload
	if files := env.cfg.GRPCTLS; files.Enabled() {
		t.grpcTLS, errGRPC = newTLSReloader(files, []string{"h2"}, env.log, count)
	}
	if files := env.cfg.AdminTLS; files.Enabled() {
		t.adminTLS, errAdmin = newTLSReloader(files, []string{"h2", "http/1.1"}, env.log, count)
	}
	if file := env.cfg.AdminTokenFile; file != "" {
		t.token, errToken = newTokenReloader(file, env.log)
	}
	return &t, errors.Join(errGRPC, errAdmin, errToken)
}

// watchers return what keeps the transport current; each runs until its context
// ends.
func (t *transport) watchers() []func(ctx context.Context) error {
	var w []func(context.Context) error
	if t.grpcTLS != nil {
		w = append(w, t.grpcTLS.watch)
	}
	if t.adminTLS != nil {
		w = append(w, t.adminTLS.watch)
	}
	if t.token != nil {
		w = append(w, t.token.watch)
	}
	return w
}

// tokenReloader keeps the admin token at what its file says.
type tokenReloader struct {
	file    string
	log     *slog.Logger
	current atomic.Pointer[string]
}

func newTokenReloader(file string, log *slog.Logger) (*tokenReloader, error) {
	r := &tokenReloader{file: file, log: log}
	token, err := r.read()
	if err != nil {
		return nil, err
	}
	r.current.Store(&token)
	return r, nil
}

// token returns the token; it is never empty.
func (r *tokenReloader) token() string { return *r.current.Load() }

func (r *tokenReloader) read() (string, error) {
	data, err := os.ReadFile(r.file)
	if err != nil {
		return "", fmt.Errorf("--admin-token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("--admin-token-file: %s is empty; put a random token into it", r.file)
	}
	return token, nil
}

func (r *tokenReloader) watch(ctx context.Context) error {
	return watchFiles(ctx, r.log, []string{r.file}, r.reload)
}

func (r *tokenReloader) reload() {
	token, err := r.read()
	if err != nil {
		r.log.Error("Admin token not usable, keeping what was", "error", err)
		return
	}
	if token != r.token() {
		r.current.Store(&token)
		r.log.Info("Admin token taken into use", "file", r.file)
	}
}
