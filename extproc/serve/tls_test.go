package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
)

// handshake lets a client with the configuration meet the server over a pipe,
// and returns the name in the server's certificate.
func handshake(t *testing.T, server, client *tls.Config) (string, error) {
	t.Helper()
	client = client.Clone()
	client.ServerName = "127.0.0.1"
	a, b := net.Pipe()
	defer func() { _ = a.Close() }()
	defer func() { _ = b.Close() }()
	serverErr := make(chan error, 1)
	go func() {
		s := tls.Server(a, server)
		err := s.HandshakeContext(t.Context())
		if err == nil {
			_, err = s.Write([]byte("x")) // TLS 1.3: a client learns only now that its certificate was refused
		}
		serverErr <- errors.Join(err, a.Close())
	}()
	c := tls.Client(b, client)
	_, err := io.ReadAll(c)
	if errServer := <-serverErr; err == nil {
		err = errServer
	}
	if err != nil {
		return "", err
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// reloads collects what a tlsReloader counts.
type reloads struct{ ok, failed int }

func (r *reloads) count(err error) {
	if err != nil {
		r.failed++
		return
	}
	r.ok++
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestTLSReload goes through the life of a server's files: each step writes
// some, and wants what a client then meets and what was counted.
func TestTLSReload(t *testing.T) {
	t.Parallel()
	serverCA, clientCA, otherCA := newAuthority(t, "servers"), newAuthority(t, "clients"), newAuthority(t, "others")
	client, other := clientCA.issue(t, "envoy"), otherCA.issue(t, "other")
	first, second := serverCA.issue(t, "first"), serverCA.issue(t, "second")
	dir := newTLSDir(t, first, clientCA.pem)
	var counted reloads
	r, err := newTLSReloader(dir.files(), []string{"h2"}, quiet(), counted.count)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name    string
		write   map[string][]byte
		want    string // the server's certificate
		trusted *pair  // whom it lets in
		counted reloads
	}{
		{"as started", nil, "first", &client, reloads{}},
		{"a certificate without its key", map[string][]byte{"tls.crt": second.cert}, "first", &client, reloads{0, 1}},
		{"its key", map[string][]byte{"tls.key": second.key}, "second", &client, reloads{1, 1}},
		{"nonsense", map[string][]byte{"tls.crt": []byte("nonsense")}, "second", &client, reloads{1, 2}},
		{"as before", map[string][]byte{"tls.crt": second.cert}, "second", &client, reloads{2, 2}},
		{"another client CA", map[string][]byte{"ca.crt": otherCA.pem}, "second", &other, reloads{3, 2}},
		{"an empty client CA", map[string][]byte{"ca.crt": nil}, "second", &other, reloads{3, 3}},
	}
	for _, step := range steps {
		for name, content := range step.write {
			dir.write(t, name, content)
		}
		r.reload()
		r.reload() // what was seen already is not counted again
		if counted != step.counted {
			t.Errorf("%s: counted %+v, want %+v", step.name, counted, step.counted)
		}
		for _, p := range []*pair{nil, &client, &other} {
			got, err := handshake(t, r.config(), serverCA.client(t, p))
			if p == step.trusted && got != step.want {
				t.Errorf("%s: met %q (%v), want %q", step.name, got, err, step.want)
			}
			if p != step.trusted && err == nil {
				t.Errorf("%s: a client without a trusted certificate got in", step.name)
			}
		}
	}
}

func TestTLSMissingFileKeepsWhatWas(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	client := ca.issue(t, "envoy")
	dir := newTLSDir(t, ca.issue(t, "first"), ca.pem)
	var counted reloads
	r, err := newTLSReloader(dir.files(), []string{"h2"}, quiet(), counted.count)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir.path("tls.key")); err != nil {
		t.Fatal(err)
	}
	r.reload()
	r.reload()
	if got, err := handshake(t, r.config(), ca.client(t, &client)); got != "first" || counted != (reloads{0, 1}) {
		t.Errorf("met %q (%v), counted %+v, want first and one failure", got, err, counted)
	}
}

func TestTLSNotUsableAtStart(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	p := ca.issue(t, "server")
	tests := []struct {
		name string
		file string
		data []byte
		want string
	}{
		{"certificate", "tls.crt", []byte("nonsense"), "tls.crt"},
		{"key of another", "tls.key", ca.issue(t, "another").key, "private key does not match"},
		{"client CA", "ca.crt", []byte("nonsense"), "ca.crt: no certificate"},
	}
	for _, tt := range tests {
		dir := newTLSDir(t, p, ca.pem)
		dir.write(t, tt.file, tt.data)
		_, err := newTLSReloader(dir.files(), nil, quiet(), func(error) {})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one that says %q", tt.name, err, tt.want)
		}
	}
	if _, err := newTLSReloader(TLSFiles{CertFile: "nowhere", KeyFile: "nowhere"}, nil, quiet(), nil); err == nil {
		t.Error("no error without files")
	}
}

// TestTLSWatch replaces the files as Kubernetes does, by swapping a symbolic
// link to a directory, and waits until that was noticed.
func TestTLSWatch(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	client := ca.issue(t, "envoy")
	mount := tlsDir(t.TempDir())
	link := func(generation string, p pair) {
		t.Helper()
		if err := os.Mkdir(mount.path(generation), 0o700); err != nil {
			t.Fatal(err)
		}
		inner := tlsDir(mount.path(generation))
		inner.write(t, "tls.crt", p.cert)
		inner.write(t, "tls.key", p.key)
		inner.write(t, "ca.crt", ca.pem)
		if err := os.Symlink(generation, mount.path("..next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(mount.path("..next"), mount.path("..data")); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", ca.issue(t, "first"))
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if err := os.Symlink("..data/"+name, mount.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	noticed := make(chan error, 8)
	r, err := newTLSReloader(mount.files(), []string{"h2"}, quiet(), func(err error) { noticed <- err })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.watch(ctx) }()
	link("..2", ca.issue(t, "second"))
	if err := <-noticed; err != nil {
		t.Error(err)
	}
	// The reloader counts before it takes the files into use.
	r.mu.Lock()
	got, err := handshake(t, r.config(), ca.client(t, &client))
	r.mu.Unlock()
	if got != "second" {
		t.Errorf("met %q (%v), want second", got, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTokenReload(t *testing.T) {
	t.Parallel()
	dir := tlsDir(t.TempDir())
	dir.write(t, "token", []byte("first\n"))
	r, err := newTokenReloader(dir.path("token"), quiet())
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct{ content, want string }{{"first\n", "first"}, {"second", "second"}, {" \n", "second"}}
	for _, step := range steps {
		dir.write(t, "token", []byte(step.content))
		r.reload()
		if got := r.token(); got != step.want {
			t.Errorf("token %q after %q was written, want %q", got, step.content, step.want)
		}
	}
	dir.write(t, "empty", nil)
	for _, file := range []string{"empty", "nowhere"} {
		if _, err := newTokenReloader(dir.path(file), quiet()); err == nil {
			t.Errorf("%s: no error", file)
		}
	}
}
