package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// lifeOfCA is how long a CA is valid.
	lifeOfCA = 10 * 365 * 24 * time.Hour
	// skew is how far behind another machine's clock may be.
	skew = 5 * time.Minute
)

// pair is a certificate and its private key.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
	// certPEM and keyPEM are the same, as files have them.
	certPEM, keyPEM []byte
}

// parse reads a pair; it fails too when the key is another certificate's.
func parse(certPEM, keyPEM []byte) (*pair, error) {
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key cannot sign")
	}
	return &pair{cert: both.Leaf, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// newCA returns a CA that is valid from now on.
func newCA(now time.Time) (*pair, error) {
	return issue(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "weir CA " + now.UTC().Format("2006-01-02")},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(lifeOfCA),
		IsCA:                  true,
		MaxPathLenZero:        true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}, nil)
}

// newCertificate returns a certificate for hosts, of servers and of clients. It never
// outlives the CA.
func newCertificate(ca *pair, hosts []string, life time.Duration, now time.Time) (*pair, error) {
	end := now.Add(life)
	if end.After(ca.cert.NotAfter) {
		end = ca.cert.NotAfter
	}
	return issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: hosts[0]},
		DNSNames:    hosts,
		NotBefore:   now.Add(-skew),
		NotAfter:    end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca)
}

// issue makes a key for the template and has the CA sign it; without a CA it signs
// itself.
func issue(template *x509.Certificate, ca *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	parent, signer := template, crypto.Signer(key)
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return parse(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// fits says why a certificate must be made anew; nil: it need not.
func (p *pair) fits(bundle []byte, hosts []string, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := p.cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
		return err
	}
	if !slices.Equal(p.cert.DNSNames, hosts) {
		return fmt.Errorf("it is for %v", p.cert.DNSNames)
	}
	life := p.cert.NotAfter.Sub(p.cert.NotBefore)
	if p.cert.NotAfter.Sub(now) < life/3 {
		return errors.New("less than a third of its life is left")
	}
	return nil
}

// trusted returns the certificates of a bundle that are still valid, behind the given
// one and without it.
func trusted(first *pair, bundle []byte, now time.Time) []byte {
	out := slices.Clone(first.certPEM)
	for {
		block, rest := pem.Decode(bundle)
		if block == nil {
			return out
		}
		bundle = rest
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && !cert.Equal(first.cert) && now.Before(cert.NotAfter) {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})...)
		}
	}
}
