package feed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key, a.pem = issue(t, "CA", nil)
	return a
}

func issue(t *testing.T, name string, by *authority) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// put writes a certificate and key of the authority into the files.
func (a *authority) put(t *testing.T, f TLSFiles, name string) {
	t.Helper()
	_, key, certPEM := issue(t, name, a)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.Cert, certPEM)
	write(t, f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// TestCredentialsAreReadAgain: new files are in use with the next connection, broken ones never, and who shows no
// certificate of the CA comes not in.
func TestCredentialsAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := TLSFiles{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	if _, err := f.Credentials(slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("files that are not there are no error")
	}
	ca := newAuthority(t)
	ca.put(t, f, "first")
	write(t, f.ClientCA, []byte("none"))
	if _, err := f.Credentials(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Fatalf("error %v", err)
	}
	write(t, f.ClientCA, ca.pem)
	credentials, err := f.Credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	own := TLSFiles{Cert: filepath.Join(dir, "client.crt"), Key: filepath.Join(dir, "client.key")}
	ca.put(t, own, "weir-0")
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	// shake returns the name in the server's certificate, once the server has accepted the client.
	shake := func(certs ...tls.Certificate) (string, error) {
		a, b := net.Pipe()
		defer a.Close() //nolint:errcheck // a pipe
		accepted := make(chan error, 1)
		go func() {
			conn, _, err := credentials.ServerHandshake(b)
			if err == nil {
				err = conn.Close()
			} else {
				_ = b.Close()
			}
			accepted <- err
		}()
		conn := tls.Client(a, &tls.Config{RootCAs: roots, InsecureSkipVerify: true, Certificates: certs, NextProtos: []string{"h2"}})
		err := conn.Handshake()
		_, _ = conn.Read(make([]byte, 1)) // TLS 1.3: a client learns here that it is refused
		if errServer := <-accepted; errServer != nil {
			return "", errServer
		}
		if err != nil {
			return "", err
		}
		return conn.ConnectionState().PeerCertificates[0].DNSNames[0], nil
	}
	want := func(when, name string) {
		t.Helper()
		if got, err := shake(pair); err != nil || got != name {
			t.Errorf("%s: %q, %v, want %q", when, got, err, name)
		}
	}
	want("at first", "first")
	if name, err := shake(); err == nil {
		t.Errorf("%s lets in who has no certificate", name)
	}
	ca.put(t, f, "second")
	want("new files", "second")
	write(t, f.Key, []byte("broken"))
	want("broken files", "second")
}
