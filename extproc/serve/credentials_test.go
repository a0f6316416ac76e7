package serve

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
)

// TestALPNMayBeLeftOut: Envoy's health checks name no protocol, and still the server speaks HTTP/2 with them. Who names
// others is refused.
func TestALPNMayBeLeftOut(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	dir := newTLSDir(t, ca.issue(t, "weir"), nil)
	r := startArgs(t, newFakeService(), "--grpc-insecure", "--grpc-tls-cert-file="+dir.files().CertFile,
		"--grpc-tls-key-file="+dir.files().KeyFile)
	for name, tt := range map[string]struct {
		protocols []string
		pass      bool
	}{
		"none": {nil, true}, "h2": {[]string{"h2"}, true}, "other": {[]string{"imap"}, false},
	} {
		config := ca.client(t, nil)
		config.ServerName, config.NextProtos = "127.0.0.1", tt.protocols
		if err := greet(r.address(t, "grpcAddress"), config); (err == nil) != tt.pass {
			t.Errorf("ALPN %s: %v, want pass %v", name, err, tt.pass)
		}
	}
	if err := r.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// greet exchanges the first frames of HTTP/2.
func greet(address string, config *tls.Config) error {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	conn := tls.Client(raw, config)
	defer func() { _ = conn.Close() }()
	framer := http2.NewFramer(conn, conn)
	_, err = io.WriteString(conn, http2.ClientPreface)
	if err := errors.Join(err, framer.WriteSettings()); err != nil {
		return err
	}
	_, err = framer.ReadFrame() // the server's settings
	return err
}
