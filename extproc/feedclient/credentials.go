package feedclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// TLSFiles are the PEM files with which the controller is spoken to; all empty: plain
// text. They are read for each connection, so that new ones are in use without a
// restart.
type TLSFiles struct {
	CA        string // by which its certificate is verified; empty: the system's
	Cert, Key string // our own; both or neither
}

// Enabled reports whether TLS is asked for.
func (f TLSFiles) Enabled() bool { return f != TLSFiles{} }

// Check reads the files.
func (f TLSFiles) Check() error {
	_, err := f.load()
	return err
}

// load makes a configuration of the files.
func (f TLSFiles) load() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("CAs of the controller: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New(f.CA + ": no certificate in it (PEM)")
		}
	}
	if f.Cert != "" {
		cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate for the controller: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}

// reading are credentials that read their files at each handshake.
type reading struct{ files TLSFiles }

func (f TLSFiles) credentials() credentials.TransportCredentials {
	if !f.Enabled() {
		return insecure.NewCredentials()
	}
	return &reading{f}
}

// ClientHandshake implements [credentials.TransportCredentials]. The authority is the
// name that the certificate must have.
func (r *reading) ClientHandshake(
	ctx context.Context, authority string, conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	config, err := r.files.load()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements [credentials.TransportCredentials].
func (*reading) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are a client's credentials")
}

// Info implements [credentials.TransportCredentials].
func (*reading) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements [credentials.TransportCredentials].
func (r *reading) Clone() credentials.TransportCredentials { return &reading{r.files} }

// OverrideServerName implements [credentials.TransportCredentials].
func (*reading) OverrideServerName(string) error {
	return errors.New("the name is the authority of the connection")
}
