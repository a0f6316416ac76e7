package controller

import (
	"context"
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

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
	"github.com/weirproxy/weir/controller/feed"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// issue returns a certificate for localhost and its key, as PEM.
func (a *authority) issue(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// connects reports whether a replica with a certificate of client, who believes server, gets through to the feed.
func connects(t *testing.T, address string, client, server *authority) bool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(server.cert)
	config := &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	if client != nil {
		certPEM, keyPEM := client.issue(t)
		cert, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, feedpb.ControlConnect)
	if err != nil {
		return false
	}
	_ = stream.CloseSend() // without a report the server says that it misses one, which is an answer too
	_, err = stream.Header()
	return err == nil && stream.RecvMsg(nil) != nil && conn.GetState().String() == "READY"
}

// TestFeedTLS holds that replicas must show a certificate, and that files that change, or break, take effect without a
// restart.
func TestFeedTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	first, second := newAuthority(t), newAuthority(t)
	install := func(server, client *authority) {
		t.Helper()
		cert, key := server.issue(t)
		write(t, path("tls.crt"), cert)
		write(t, path("tls.key"), key)
		write(t, path("ca.crt"), client.pem())
	}
	install(first, first)
	cfg := &Config{
		FeedBindAddress: "127.0.0.1:0", FeedCertFile: path("tls.crt"), FeedKeyFile: path("tls.key"), FeedClientCAFile: path("ca.crt"),
	}
	server, err := newFeedServer(cfg, feed.New(feed.Options{}), discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	address := server.listener.Addr().String()

	if !connects(t, address, first, first) {
		t.Error("a replica with a certificate does not get through")
	}
	if connects(t, address, nil, first) {
		t.Error("one without gets through")
	}
	if connects(t, address, second, first) {
		t.Error("one with a certificate of another CA gets through")
	}
	install(second, second)
	if !connects(t, address, second, second) {
		t.Error("after a change: one with a certificate of the new CA does not get through")
	}
	if connects(t, address, first, second) {
		t.Error("after a change: one with a certificate of the old CA gets through")
	}
	write(t, path("tls.crt"), []byte("broken"))
	if !connects(t, address, second, second) {
		t.Error("with broken files: what was is not used")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
}

// TestFeedAddress holds that what cannot serve is an error at start.
func TestFeedAddress(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, cfg := range []*Config{
		{FeedBindAddress: taken.Addr().String()},
		{FeedBindAddress: "127.0.0.1:0", FeedCertFile: "missing", FeedKeyFile: "missing", FeedClientCAFile: "missing"},
	} {
		if _, err := newFeedServer(cfg, feed.New(feed.Options{}), discard()); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}
