package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// certLifetime is how long certificates are valid: longer than any test, too short to be of use to anyone else.
const certLifetime = 24 * time.Hour

// CA issues certificates for a test.
type CA struct {
	// File is the CA's certificate, PEM.
	File string

	tb   TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a certificate authority.
func NewCA(tb TB) *CA {
	tb.Helper()
	ca := &CA{tb: tb, File: filepath.Join(tb.TempDir(), "ca.pem")}
	template := certTemplate("weir test CA")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	ca.cert = template
	ca.key = newKey(tb)
	ca.cert = ca.sign(template, &ca.key.PublicKey)
	writePEM(tb, ca.File, "CERTIFICATE", ca.cert.Raw)
	return ca
}

// Issue makes a certificate for servers and clients named name (a DNS name), and returns its PEM files.
func (ca *CA) Issue(name string) (certFile, keyFile string) {
	ca.tb.Helper()
	dir := ca.tb.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	ca.Reissue(name, certFile, keyFile)
	return certFile, keyFile
}

// Reissue makes another certificate and puts it, and then its key, in the place of these files.
func (ca *CA) Reissue(name, certFile, keyFile string) {
	ca.tb.Helper()
	key := newKey(ca.tb)
	template := certTemplate(name)
	template.DNSNames = []string{name}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	cert := ca.sign(template, &key.PublicKey)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.tb.Fatalf("encode a key: %v", err)
	}
	writePEM(ca.tb, certFile, "CERTIFICATE", cert.Raw)
	writePEM(ca.tb, keyFile, "PRIVATE KEY", encoded)
}

// sign makes a certificate of a template.
func (ca *CA) sign(template *x509.Certificate, key *ecdsa.PublicKey) *x509.Certificate {
	ca.tb.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key, ca.key)
	if err != nil {
		ca.tb.Fatalf("issue a certificate: %v", err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		ca.tb.Fatalf("issue a certificate: %v", err)
	}
	return cert
}

func certTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certLifetime),
	}
}

func newKey(tb TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("make a key: %v", err)
	}
	return key
}

// writePEM replaces a file by a rename.
func writePEM(tb TB, path, kind string, content []byte) {
	tb.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		tb.Fatalf("write a certificate: %v", err)
	}
	if err := os.Rename(next, path); err != nil {
		tb.Fatalf("write a certificate: %v", err)
	}
}
