package harness_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestEnvoyTakesAllOptions turns on what other tests leave off; with mTLS to weir, Envoy must still get answers.
func TestEnvoyTakesAllOptions(t *testing.T) {
	t.Parallel()
	ca := harness.NewCA(t)
	serverCert, serverKey := ca.Issue("weir.test")
	clientCert, clientKey := ca.Issue("envoy.test")
	origin := harness.StartOrigin(t)
	envoy := harness.StartEnvoy(t, harness.EnvoyOptions{
		Origins:     []string{origin.Address()},
		Concurrency: 1,
		Routes: []harness.Route{
			{Name: "gone", Prefix: "/gone", Action: "direct_response: {status: 410}", NoCache: true},
			{Name: "rest", Policy: "a/b"},
		},
		FailClosed:         true,
		ForbidModeOverride: true,
		ProcessingMode:     "{request_header_mode: SEND, response_header_mode: SKIP}",
		WeirTLS: &harness.WeirTLS{
			CAFile: ca.File, ServerName: "weir.test", CertFile: clientCert, KeyFile: clientKey,
		},
		MaxHeapBytes: 1 << 30,
	})
	if resp := harness.Do(t, harness.Get(envoy.URL("/"))); resp.Status != 500 {
		t.Errorf("without weir, closed on failure: %d, want 500", resp.Status)
	}
	listener, address := listenTCP(t)
	serveConstant(t, listener, grpc.Creds(mutualTLS(t, ca, serverCert, serverKey)))
	envoy.SetWeir(address)
	if resp := harness.Do(t, harness.Get(envoy.URL("/"))); string(resp.Body) != "a/b rest" {
		t.Errorf("over TLS: %d %q", resp.Status, resp.Body)
	}
	if resp := harness.Do(t, harness.Get(envoy.URL("/gone"))); resp.Status != 410 {
		t.Errorf("/gone: %d, want 410", resp.Status)
	}
}

func mutualTLS(t *testing.T, ca *harness.CA, certFile, keyFile string) credentials.TransportCredentials {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(ca.File)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate in the CA's file")
	}
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	})
}
