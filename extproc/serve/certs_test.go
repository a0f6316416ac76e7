package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority is a certificate authority made for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate and its key, both PEM.
type pair struct{ cert, key []byte }

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, tmpl := newKey(t), template(name)
	tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue signs a certificate for 127.0.0.1, good for servers and clients.
func (a *authority) issue(t *testing.T, name string) pair {
	t.Helper()
	key, tmpl := newKey(t), template(name)
	tmpl.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

// client returns a client's TLS configuration that trusts the authority and,
// if p is not nil, shows its certificate.
func (a *authority) client(t *testing.T, p *pair) *tls.Config {
	t.Helper()
	cfg := &tls.Config{RootCAs: x509.NewCertPool(), NextProtos: []string{"h2"}}
	cfg.RootCAs.AddCert(a.cert)
	if p != nil {
		cert, err := tls.X509KeyPair(p.cert, p.key)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg
}

// tlsDir is a directory with the files of a server.
type tlsDir string

func newTLSDir(t *testing.T, p pair, clientCA []byte) tlsDir {
	t.Helper()
	dir := tlsDir(t.TempDir())
	dir.write(t, "tls.crt", p.cert)
	dir.write(t, "tls.key", p.key)
	dir.write(t, "ca.crt", clientCA)
	return dir
}

func (d tlsDir) path(name string) string { return filepath.Join(string(d), name) }

// write replaces a file at once, by renaming.
func (d tlsDir) write(t *testing.T, name string, content []byte) {
	t.Helper()
	next := d.path("." + name)
	if err := os.WriteFile(next, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, d.path(name)); err != nil {
		t.Fatal(err)
	}
}

func (d tlsDir) files() TLSFiles {
	return TLSFiles{CertFile: d.path("tls.crt"), KeyFile: d.path("tls.key"), ClientCAFile: d.path("ca.crt")}
}
