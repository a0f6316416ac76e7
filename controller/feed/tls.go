package feed

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// TLSFiles names the PEM files by which the feed is served. With ClientCA replicas
// must show a certificate signed by one of these.
type TLSFiles struct{ Cert, Key, ClientCA string }

// Credentials are the files as gRPC wants them. They are read for each connection, of
// which there are few: new files are in use without a restart. Files that cannot be
// used leave those that were; the first reading must succeed.
func (f TLSFiles) Credentials(log *slog.Logger) (credentials.TransportCredentials, error) {
	first, err := f.load()
	if err != nil {
		return nil, err
	}
	var good atomic.Pointer[tls.Config]
	good.Store(first)
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: first.NextProtos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config, err := f.load()
			if err != nil {
				log.Error("TLS files of the feed not usable, keeping what was", "error", err)
				return good.Load(), nil
			}
			good.Store(config)
			return config, nil
		},
	}), nil
}

func (f TLSFiles) load() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the feed: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{cert}}
	if f.ClientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("CAs of the feed's clients: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New(f.ClientCA + ": no certificate in it (PEM)")
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}
