package serve

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

// tlsReloader keeps a server's TLS configuration at what its files say. Files
// that are not usable leave the configuration that was.
type tlsReloader struct {
	files      TLSFiles
	nextProtos []string
	log        *slog.Logger
	count      func(error) // called for each reading of changed files

	current atomic.Pointer[tls.Config]

	mu   sync.Mutex
	seen [sha256.Size]byte // of the last reading, usable or not
}

// newTLSReloader reads the files; a first reading that fails is an error.
func newTLSReloader(files TLSFiles, nextProtos []string, log *slog.Logger, count func(error)) (*tlsReloader, error) {
	r := &tlsReloader{files: files, nextProtos: nextProtos, log: log, count: count}
	cfg, seen, err := r.load()
	if err != nil {
		return nil, err
	}
	r.current.Store(cfg)
	r.seen = seen
	return r, nil
}

// config is what to listen with. Each handshake takes the configuration of the
// moment, client CAs included; established connections go on.
func (r *tlsReloader) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: r.nextProtos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return r.current.Load(), nil
		},
	}
}

// watch reads the files again when they change, until ctx ends.
func (r *tlsReloader) watch(ctx context.Context) error {
	return watchFiles(ctx, r.log, r.files.names(), r.reload)
}

// reload takes changed files into use. What was seen already is passed over, so
// that a broken file is counted and logged once.
func (r *tlsReloader) reload() {
	r.mu.Lock()
	defer r.mu.Unlock()
	cfg, seen, err := r.load()
	if seen == r.seen {
		return
	}
	r.seen = seen
	r.count(err)
	if err != nil {
		r.log.Error("TLS files not usable, keeping what was", "error", err)
		return
	}
	r.current.Store(cfg)
	r.log.Info("TLS files taken into use", "certFile", r.files.CertFile)
}

// load reads the files and makes a configuration of them. seen tells one
// reading from another, failed ones included.
func (r *tlsReloader) load() (cfg *tls.Config, seen [sha256.Size]byte, err error) {
	content, err := r.read()
	if err == nil {
		cfg, err = r.build(content)
	}
	seen = sha256.Sum256(fmt.Appendf(nil, "%q %q %q %v", content.cert, content.key, content.clientCA, err))
	return cfg, seen, err
}

// pemContent is what the files hold.
type pemContent struct{ cert, key, clientCA []byte }

func (r *tlsReloader) read() (c pemContent, err error) {
	if c.cert, err = os.ReadFile(r.files.CertFile); err != nil {
		return c, fmt.Errorf("TLS certificate: %w", err)
	}
	if c.key, err = os.ReadFile(r.files.KeyFile); err != nil {
		return c, fmt.Errorf("TLS private key: %w", err)
	}
	if r.files.ClientCAFile != "" {
		if c.clientCA, err = os.ReadFile(r.files.ClientCAFile); err != nil {
			return c, fmt.Errorf("TLS client CAs: %w", err)
		}
	}
	return c, nil
}

func (r *tlsReloader) build(c pemContent) (*tls.Config, error) {
	cert, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", r.files.CertFile, r.files.KeyFile, err)
	}
	cfg := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   r.nextProtos,
		Certificates: []tls.Certificate{cert},
	}
	if c.clientCA == nil {
		return cfg, nil
	}
	cfg.ClientCAs = x509.NewCertPool()
	if !cfg.ClientCAs.AppendCertsFromPEM(c.clientCA) {
		return nil, errors.New(r.files.ClientCAFile + ": no certificate in it (PEM)")
	}
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	return cfg, nil
}

// names returns the files that are given.
func (f TLSFiles) names() []string {
	var names []string
	for _, name := range []string{f.CertFile, f.KeyFile, f.ClientCAFile} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
