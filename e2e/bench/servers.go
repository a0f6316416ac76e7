package bench

import (
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/weirproxy/weir/e2e/bench/floor"
	"github.com/weirproxy/weir/e2e/harness"
)

// Server is a process that is measured.
type Server struct {
	Addresses []string // TCP first, then a Unix socket if it has one
	PIDs      []int
}

func (s Server) cluster(name string) Cluster {
	return Cluster{Name: name, Addresses: s.Addresses[:1], HTTP2: true}
}

// programs builds what is measured beside weir, each once.
type programs struct {
	dir   string
	built map[string]bool
}

// path returns the path of a program of e2e/bench/cmd.
func (p *programs) path(tb harness.TB, name string) string {
	tb.Helper()
	path := filepath.Join(p.dir, name)
	if p.built[name] {
		return path
	}
	root, err := harness.ModuleRoot()
	if err != nil {
		tb.Fatalf("build %s: %v", name, err)
	}
	build := exec.CommandContext(tb.Context(), "go", "build", "-buildvcs=false", "-o", path, "./e2e/bench/cmd/"+name)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build %s: %v\n%s", name, err, out)
	}
	p.built[name] = true
	return path
}

// startFloor starts a server of e2e/bench/floor on TCP and on a Unix socket.
func (p *programs) startFloor(tb harness.TB, kind floor.Kind, size int) Server {
	tb.Helper()
	address := freeAddress(tb)
	socket := "unix://" + filepath.Join(tb.TempDir(), "s")
	cmd := exec.Command(p.path(tb, "floor"), string(kind), strconv.Itoa(size), address, socket)
	pid := harness.StartProgram(tb, "floor "+string(kind), cmd, address)
	return Server{Addresses: []string{address, socket}, PIDs: []int{pid}}
}

// policy is what weir is measured with: its defaults, on the route that every lane has.
const policy = `apiVersion: weir.dev/v1alpha1
kind: CachePolicy
metadata: {name: bench, namespace: bench}
spec:
  targetRefs:
  - {group: weir.dev, kind: EnvoyRoute, name: bench}
  storage: {maxObjectSize: 16Mi}
`

// startWeir starts weir with the policy, on TCP.
func startWeir(tb harness.TB, o harness.WeirOptions) (*harness.Weir, Server) {
	tb.Helper()
	if o.Policies == nil {
		o.Policies = map[string]string{"bench.yaml": policy}
	}
	w := harness.StartWeir(tb, o)
	return w, Server{Addresses: []string{w.GRPCAddress}, PIDs: []int{w.PID()}}
}
