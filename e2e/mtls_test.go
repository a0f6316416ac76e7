package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// weirName is the name in weir's certificate.
const weirName = "weir.test"

// secured is an edge on which Envoy and weir show each other certificates of one CA.
type secured struct {
	*edge
	ca                *harness.CA
	certFile, keyFile string // weir's
	clientCert        tls.Certificate
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{ca: harness.NewCA(t)}
	s.certFile, s.keyFile = s.ca.Issue(weirName)
	clientCert, clientKey := s.ca.Issue("envoy.test")
	var err error
	if s.clientCert, err = tls.LoadX509KeyPair(clientCert, clientKey); err != nil {
		t.Fatal(err)
	}
	s.edge = startEdge(t, edgeOptions{
		Envoy: harness.EnvoyOptions{WeirTLS: &harness.WeirTLS{
			CAFile: s.ca.File, ServerName: weirName, CertFile: clientCert, KeyFile: clientKey,
		}},
		Weir: harness.WeirOptions{Args: []string{
			"--grpc-tls-cert-file=" + s.certFile, "--grpc-tls-key-file=" + s.keyFile, "--grpc-client-ca-file=" + s.ca.File,
		}},
	})
	return s
}

// handshake connects to weir's ext_proc port and returns the serial number of its certificate. TLS 1.3 tells a client
// that it is refused only when it reads.
func (s *secured) handshake(certs ...tls.Certificate) (*big.Int, error) {
	s.t.Helper()
	pem, err := os.ReadFile(s.ca.File)
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	conn, err := tls.Dial("tcp", s.weir.GRPCAddress, &tls.Config{
		RootCAs: roots, ServerName: weirName, Certificates: certs, NextProtos: []string{"h2"},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Read(make([]byte, 1)); err != nil { // HTTP/2 servers speak first
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0].SerialNumber, nil
}

// TestMutualTLS: Envoy and weir speak mTLS; the certificate is replaced while they do, and no request is lost. Who shows
// no certificate, or one of another CA, is not let in.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	defer s.quiet()
	traffic := s.startTraffic(4)
	held := s.hold("/held", 10)

	before, err := s.handshake(s.clientCert)
	if err != nil {
		t.Fatalf("with a certificate: %v", err)
	}
	if _, err := s.handshake(); err == nil {
		t.Error("without a certificate weir lets one in")
	}
	stranger := harness.NewCA(t)
	foreign, err := tls.LoadX509KeyPair(stranger.Issue("envoy.test"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.handshake(foreign); err == nil {
		t.Error("with a certificate of another CA weir lets one in")
	}

	s.ca.Reissue(weirName, s.certFile, s.keyFile)
	s.eventually("weir shows the new certificate", func() bool {
		now, err := s.handshake(s.clientCert)
		return err == nil && now.Cmp(before) != 0
	})
	traffic.more(30)
	held.wantAnswered(t)
	s.wantCount("/held", 1)

	// Envoy's connections live on; new ones meet the new certificate.
	s.envoy.SetWeir()
	s.envoy.SetWeir(s.weir.GRPCAddress)
	s.serve("/page", harness.Always(harness.Reply{Size: smallSize, Header: harness.Fields("Cache-Control", "max-age=60")}))
	s.wantMissThenHit("after the change", "/page", s.get("/page"), string(harness.GeneratedBody(smallSize)))
	traffic.more(30)
	if broken := traffic.end(); broken != 0 {
		t.Errorf("%d answers broke off", broken)
	}
	if n := s.weir.Metrics()[`weir_tls_reload_total{result="failure"}`]; n > 1 {
		t.Errorf("%v reloads failed; one may, between the certificate and its key", n)
	}
}

// TestUnixSocket: holds, hits and a drain over a Unix socket.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "weir.sock")
	e := startEdge(t, edgeOptions{Weir: harness.WeirOptions{GRPCAddress: "unix://" + socket}})
	held := e.hold("/held", 10)
	held.wantAnswered(t)
	e.wantCount("/held", 1)
	e.serve("/page", harness.Always(harness.Reply{Size: smallSize, Header: harness.Fields("Cache-Control", "max-age=60")}))
	e.wantMissThenHit("page", "/page", e.get("/page"), string(harness.GeneratedBody(smallSize)))
	e.settles()

	again := e.hold("/again", 10)
	e.weir.Signal(syscall.SIGTERM)
	again.wantAnswered(t)
	e.wantCount("/again", 1)
	e.weir.WaitDrained()
	if got := e.do(e.get("/page")); got.Status != 200 {
		t.Errorf("without weir: %d", got.Status)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is still there")
	}
	e.weir = harness.StartWeir(t, harness.WeirOptions{
		Policies: map[string]string{"shop.yaml": shopPolicy}, GRPCAddress: "unix://" + socket,
	})
	e.wantMissThenHit("another weir", "/page", e.get("/page"), string(harness.GeneratedBody(smallSize)))
}
