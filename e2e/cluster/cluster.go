package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/kube"
)

// Cluster is a running Kubernetes cluster. It is safe for concurrent use.
type Cluster struct {
	// Config is a cluster administrator's. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the path of a file that says the same as Config.
	Kubeconfig string
	// Client asks the API server itself, without a cache. It knows the types that kube.Scheme does.
	Client client.Client

	transport http.RoundTripper // of Client
	daemons   daemons
	programs  programs
}

// Main enters namespaces of its own, starts a cluster for all tests of a package, runs them, and returns the exit
// status. For TestMain. When a test failed the logs stay in /tmp/weir-cluster/logs until the next run. Goroutines that
// the tests leave fail them.
func Main(m *testing.M, cluster **Cluster) int {
	return Enter(func() int {
		status := 1
		err := harness.Run(context.Background(), os.Stderr, func(tb harness.TB) {
			*cluster = Start(tb)
			before := goleak.IgnoreCurrent()
			if status = m.Run(); status == 0 {
				utilnet.CloseIdleConnectionsFor((*cluster).transport)
				if err := goleak.Find(before); err != nil {
					tb.Fatalf("%v", err)
				}
			}
		})
		if err != nil {
			return failure(err)
		}
		return status
	})
}

// Start starts the cluster, inside Enter, and waits until it is ready: about 15 seconds. It ends with the process.
func Start(tb harness.TB) *Cluster {
	tb.Helper()
	ctx, fail := context.WithCancelCause(context.WithoutCancel(tb.Context()))
	c := &Cluster{
		Kubeconfig: identity("admin.kubeconfig"),
		daemons:    daemons{ctx: ctx, fail: fail},
		programs:   findPrograms(tb),
	}
	if err := c.start(); err != nil {
		tb.Fatalf("start the cluster: %v", err)
	}
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		tb.Fatalf("read the kubeconfig: %v", err)
	}
	c.Config.QPS = -1 // tests are in a hurry, and the server is theirs alone
	over, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		tb.Fatalf("make a client: %v", err)
	}
	c.transport = over.Transport
	if c.Client, err = client.New(c.Config, client.Options{Scheme: kube.Scheme(tb), HTTPClient: over}); err != nil {
		tb.Fatalf("make a client: %v", err)
	}
	return c
}

func findPrograms(tb harness.TB) programs {
	return programs{
		etcd: harness.EtcdBinary(tb), apiServer: harness.KubeAPIServerBinary(tb),
		controllerManager: harness.KubeNodeBinary(tb, "kube-controller-manager"),
		scheduler:         harness.KubeNodeBinary(tb, "kube-scheduler"),
		kubelet:           harness.KubeNodeBinary(tb, "kubelet"),
		kubeProxy:         harness.KubeNodeBinary(tb, "kube-proxy"),
		pause:             harness.KubeNodeBinary(tb, "pause"),
		coreDNS:           harness.CoreDNSBinary(tb),
		kubectl:           harness.KubectlBinary(tb), helm: harness.HelmBinary(tb),
	}
}

// start starts everything and returns when pods can run and find each other by name.
func (c *Cluster) start() error {
	if err := os.MkdirAll(identity(""), 0o700); err != nil {
		return err
	}
	if err := writeIdentities(identity("")); err != nil {
		return fmt.Errorf("write the identities: %w", err)
	}
	if err := c.daemons.startAPIServer(c.programs); err != nil {
		return err
	}
	if err := c.daemons.startRuntime(); err != nil {
		return err
	}
	for _, image := range []Image{
		{Name: pauseImage, Program: "/pause", Files: map[string]string{"/pause": c.programs.pause}},
		{Name: coreDNSImage, Program: "/coredns", Files: map[string]string{"/coredns": c.programs.coreDNS}},
	} {
		if err := loadImage(image); err != nil {
			return err
		}
	}
	if err := c.await("the API server is ready", "get", "--raw", "/readyz"); err != nil {
		return err
	}
	if err := c.daemons.startControllers(c.programs); err != nil {
		return err
	}
	if err := c.daemons.startNode(c.programs); err != nil {
		return err
	}
	err := c.await("the node is ready", "wait", "--for=condition=Ready", "node/"+nodeName, "--timeout=1s")
	if err != nil {
		return err
	}
	dns, err := fill("coredns.yaml")
	if err != nil {
		return err
	}
	if _, err := c.Kubectl(c.daemons.ctx, dns, "apply", "-f", "-"); err != nil {
		return err
	}
	return c.await("CoreDNS is ready", "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=1s")
}

// await calls kubectl until it succeeds.
func (c *Cluster) await(what string, args ...string) error {
	return c.daemons.await(what, func() error {
		_, err := c.Kubectl(c.daemons.ctx, "", args...)
		return err
	})
}

// loadImage gives an image to the cluster's containerd.
func loadImage(image Image) error {
	archive, err := os.CreateTemp(stateDir, "image.*.tar")
	if err != nil {
		return fmt.Errorf("load the image %s: %w", image.Name, err)
	}
	defer func() { _ = os.Remove(archive.Name()) }()
	if err := image.write(archive); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("load the image %s: %w", image.Name, err)
	}
	return importArchive(archive.Name())
}

// importArchive gives the images of an archive, or of an OCI layout in a tar, to the cluster's containerd.
func importArchive(path string) error { return run(ctrCommand + " images import " + path) }

// LoadImage makes an image of files of this machine and gives it to the cluster.
func (c *Cluster) LoadImage(tb harness.TB, image Image) {
	tb.Helper()
	if err := loadImage(image); err != nil {
		tb.Fatalf("%v", err)
	}
}

// LoadArchive gives the images of an archive (an OCI layout in a tar, or what docker save writes) to the cluster.
func (c *Cluster) LoadArchive(tb harness.TB, path string) {
	tb.Helper()
	absolute, err := filepath.Abs(path)
	if err == nil {
		err = importArchive(absolute)
	}
	if err != nil {
		tb.Fatalf("load the images of %s: %v", path, err)
	}
}

// Namespace makes a namespace of a name that no other has, and returns the name. It goes with the test.
func (c *Cluster) Namespace(tb harness.TB) string {
	tb.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Client.Create(tb.Context(), namespace); err != nil {
		tb.Fatalf("make a namespace: %v", err)
	}
	tb.Cleanup(func() {
		if err := c.Client.Delete(context.WithoutCancel(tb.Context()), namespace); err != nil {
			tb.Logf("remove the namespace: %v", err)
		}
	})
	return namespace.Name
}
