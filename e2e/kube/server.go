package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weirproxy/weir/e2e/harness"
)

// Server is a Kubernetes API server. It is safe for concurrent use.
type Server struct {
	// Config is a cluster administrator's. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the path of a file that says the same as Config.
	Kubeconfig string
	// Client asks the server itself, without a cache. What it sends is held to the schema: an unknown field is an error.
	Client client.Client

	kubectl, helm string
	dir           string
}

// startTimeout bounds how long etcd and kube-apiserver may take, each: a busy machine is slow.
const startTimeout = 2 * time.Minute

// Start starts a server that ends with the test. It takes some 5 seconds.
func Start(tb harness.TB) *Server {
	tb.Helper()
	dir := tb.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		tb.Fatalf("start the API server: %v", err)
	}
	tb.Cleanup(func() { _ = log.Close() })
	env := &envtest.Environment{
		Scheme:                   Scheme(tb),
		CRDDirectoryPaths:        CRDFolders(tb),
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: startTimeout},
	}
	env.ControlPlane.Etcd = &envtest.Etcd{Path: tied(tb, dir, harness.EtcdBinary(tb)), Out: log, Err: log}
	env.ControlPlane.APIServer = &envtest.APIServer{
		Path: tied(tb, dir, harness.KubeAPIServerBinary(tb)), Out: log, Err: log,
	}
	tb.Cleanup(func() {
		if err := env.Stop(); err != nil {
			tb.Logf("stop the API server: %v", err)
		}
	})
	config, err := env.Start()
	if err != nil {
		tb.Fatalf("start the API server: %v; its log ends:\n%s", err, tail(log.Name()))
	}
	config.QPS = -1 // tests are in a hurry, and the server is theirs alone
	s := &Server{
		Config: config, Kubeconfig: filepath.Join(dir, "kubeconfig"),
		kubectl: harness.KubectlBinary(tb), helm: harness.HelmBinary(tb), dir: dir,
	}
	if err := os.WriteFile(s.Kubeconfig, env.KubeConfig, 0o600); err != nil {
		tb.Fatalf("write the kubeconfig: %v", err)
	}
	c, err := client.New(config, client.Options{Scheme: env.Scheme})
	if err != nil {
		tb.Fatalf("make a client: %v", err)
	}
	s.Client = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	return s
}

// Main starts a server for all tests of a package, runs them, and returns the exit status. For TestMain. Goroutines
// that are left when the server is gone fail the tests.
func Main(m *testing.M, server **Server) int {
	status := 1
	err := harness.Run(context.Background(), os.Stderr, func(tb harness.TB) {
		*server = Start(tb)
		status = m.Run()
	})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := goleak.Find(); err != nil && status == 0 {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// Namespace makes a namespace of a name that no other has, and returns the name.
func (s *Server) Namespace(tb harness.TB) string {
	tb.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Client.Create(tb.Context(), namespace); err != nil {
		tb.Fatalf("make a namespace: %v", err)
	}
	return namespace.Name
}

// tied returns a program that does what the one at path does, and is killed when this process dies: envtest leaves its
// children running then.
func tied(tb harness.TB, dir, path string) string {
	tb.Helper()
	script := filepath.Join(dir, filepath.Base(path))
	text := fmt.Sprintf("#!/bin/sh\nexec setpriv --pdeathsig KILL -- '%s' \"$@\"\n", path)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		tb.Fatalf("write %s: %v", script, err)
	}
	return script
}

// tail returns the last bytes of a file.
func tail(path string) string {
	const most = 2 << 10
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-most):])
}
