package istio_test

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/e2e/cluster"
	"github.com/weirproxy/weir/e2e/cluster/istio"
	"github.com/weirproxy/weir/e2e/harness"
)

var kubernetes *cluster.Cluster

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m, &kubernetes))
}

const (
	// waitLimit bounds what a test waits for: a busy machine is slow.
	waitLimit     = 3 * time.Minute
	weirNamespace = "weir-system"
	redisImage    = "weir.test/redis:local"
	appImage      = "weir.test/app:local"
)

// stage is what testdata/gateway.yaml says, in a namespace of its own.
type stage struct {
	t         *testing.T
	namespace string
	mesh      string // the namespace of the workloads
	origin    *harness.Origin
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, namespace: kubernetes.Namespace(t), origin: harness.StartOriginOn(t, netip.MustParseAddr(cluster.NodeIP))}
	s.mesh = s.namespace + "-mesh"
	t.Cleanup(func() {
		if t.Failed() {
			for _, namespace := range []string{s.namespace, s.mesh, weirNamespace, istio.RootNamespace, "envoy-gateway-system"} {
				t.Log(kubernetes.Describe(t, namespace))
			}
		}
	})
	s.origin.Handle("/", harness.Always(harness.Reply{Body: []byte("hello\n")}))
	s.apply("gateway.yaml", nil)
	return s
}

// in is the stage for a part of its test.
func (s *stage) in(t *testing.T) *stage {
	part := *s
	part.t = t
	return &part
}

// apply applies the file testdata/NAME with the values filled in.
func (s *stage) apply(name string, values map[string]any) {
	s.t.Helper()
	kubernetes.Apply(s.t, s.fill(name, values))
}

func (s *stage) fill(name string, values map[string]any) string {
	s.t.Helper()
	_, port, err := net.SplitHostPort(s.origin.Address())
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]any{"Namespace": s.namespace, "Mesh": s.mesh, "NodeIP": cluster.NodeIP, "OriginPort": port,
		"AppImage": appImage}
	maps.Copy(all, values)
	var text bytes.Buffer
	file, err := template.ParseFiles("testdata/" + name)
	if err == nil {
		err = file.Option("missingkey=error").Execute(&text, all)
	}
	if err != nil {
		s.t.Fatalf("fill in %s: %v", name, err)
	}
	return text.String()
}

// policy makes a CachePolicy, and waits until it says that it is in force at as many ancestors.
func (s *stage) policy(namespace, name, target, serverAuthorization string, ancestors int) {
	s.t.Helper()
	s.apply("policy.yaml", map[string]any{"Namespace": namespace, "Name": name, "Target": target,
		"ServerAuthorization": serverAuthorization})
	s.wantCondition(namespace, name, v1alpha1.PolicyConditionProgrammed, metav1.ConditionTrue, ancestors)
}

// wantCondition waits until a CachePolicy has a condition at as many ancestors.
func (s *stage) wantCondition(namespace, name, kind string, status metav1.ConditionStatus, ancestors int) {
	s.t.Helper()
	var policy v1alpha1.CachePolicy
	defer func() {
		if s.t.Failed() {
			s.t.Logf("status of %s/%s: %+v", namespace, name, policy.Status)
		}
	}()
	harness.Eventually(s.t, waitLimit, fmt.Sprintf("%s of %s/%s is %s", kind, namespace, name, status), func() bool {
		if err := kubernetes.Client.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &policy); err != nil {
			return false
		}
		so := 0
		for _, a := range policy.Status.Ancestors {
			if meta.IsStatusConditionPresentAndEqual(a.Conditions, kind, status) {
				so++
			}
		}
		return so == ancestors
	})
}

// serviceURL is the URL of a Service's port 80, by its cluster IP.
func (s *stage) serviceURL(name string) string {
	s.t.Helper()
	var ip string
	harness.Eventually(s.t, waitLimit, "the Service "+name+" has an address", func() bool {
		out, err := kubernetes.Kubectl(s.t.Context(), "", "-n", s.namespace, "get", "service", name,
			"--output=jsonpath={.spec.clusterIP}")
		ip = out
		return err == nil && ip != ""
	})
	return "http://" + ip
}

// get asks a gateway; the status is 0 when there was no answer.
func (s *stage) get(url, host string) harness.Response {
	httpClient := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := httpClient.Do(harness.Get(url, "Host", host))
	if err != nil {
		return harness.Response{}
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	_, _ = body.ReadFrom(response.Body) // a body that is cut is not what is wanted
	return harness.Response{Status: response.StatusCode, Header: response.Header, Body: body.Bytes()}
}

func (s *stage) serves(url, host string) {
	s.t.Helper()
	harness.Eventually(s.t, waitLimit, host+" is served by "+url, func() bool { return s.get(url, host).Status == http.StatusOK })
}

// asked waits until weir is asked: the condition says that the EnvoyFilter is there, which istiod then sends to the
// proxies.
func (s *stage) asked(url, host string) {
	s.t.Helper()
	harness.Eventually(s.t, waitLimit/3, "weir is asked on "+url, func() bool {
		return s.get(url, host).Header.Get("Cache-Status") != ""
	})
}

// want checks an answer: what Cache-Status begins with, "" for none.
func (s *stage) want(url, host, cacheStatus string) {
	s.t.Helper()
	r := s.get(url, host)
	got := r.Header.Get("Cache-Status")
	if r.Status != http.StatusOK || !strings.HasPrefix(got, cacheStatus) || cacheStatus == "" && got != "" {
		s.t.Errorf("%s: status %d, Cache-Status %q, want 200 and %q", url, r.Status, got, cacheStatus)
	}
}

// call has the caller in the mesh ask the server; it returns Cache-Status and the body.
func (s *stage) call(path string) (cacheStatus, body string) {
	s.t.Helper()
	out, err := kubernetes.Kubectl(s.t.Context(), "", "-n", s.mesh, "exec", "deploy/caller", "-c", "app", "--", "/app",
		"get", "http://server"+path)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	lines := strings.SplitN(out, "\n", 3)
	if len(lines) != 3 || lines[0] != "200" {
		s.t.Errorf("%s: %q", path, out)
		return "", ""
	}
	return lines[1], lines[2]
}

func (s *stage) kubectl(args ...string) string {
	s.t.Helper()
	out, err := kubernetes.Kubectl(s.t.Context(), "", args...)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	return strings.TrimSpace(out)
}

// installWeir makes the images, as make images does, and installs the charts.
func installWeir(s *stage) {
	s.t.Helper()
	dir := s.t.TempDir()
	run(s.t, "go", "run", "./config/images", "-out="+dir, "-repository=weir.test/weirproxy/", "-version=e2e", "-tag=local")
	for _, name := range []string{"weir-extproc", "weir-controller"} {
		kubernetes.LoadArchive(s.t, filepath.Join(dir, name+".tar"))
	}
	app := filepath.Join(dir, "app")
	run(s.t, "go", "build", "-o", app, "./e2e/cluster/istio/app")
	kubernetes.LoadImage(s.t, cluster.Image{Name: appImage, Program: "/app", User: "65532", Files: map[string]string{"/app": app}})
	kubernetes.LoadImage(s.t, cluster.Image{Name: redisImage, Program: "/redis-server", User: "65532",
		Files: map[string]string{"/redis-server": "/usr/bin/redis-server"}})

	helm(s.t, "install", "weir-crds", "charts/weir-crds", "--namespace="+weirNamespace, "--create-namespace")
	s.apply("redis.yaml", map[string]any{"Namespace": weirNamespace, "Image": redisImage})
	helm(s.t, "install", "weir", "charts/weir", "--namespace="+weirNamespace, "--values=e2e/cluster/istio/testdata/weir.yaml",
		"--wait", "--timeout="+waitLimit.String())
}

func helm(t *testing.T, args ...string) {
	t.Helper()
	if _, err := kubernetes.Helm(t.Context(), args...); err != nil {
		t.Fatalf("%v\n%s", err, kubernetes.Describe(t, weirNamespace))
	}
}

// run runs a program from the root of the module, with no C in what it builds.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = "../../.."
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}
