package redistest

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// slots is how many hash slots a Cluster has.
const slots = 16384

// StartCluster starts a Cluster of n masters without replicas, and returns when
// all of them serve.
func StartCluster(tb testing.TB, n int) []*Server {
	tb.Helper()
	servers := make([]*Server, n)
	for i := range servers {
		servers[i] = Start(tb, "--cluster-enabled", "yes", "--cluster-port", freePort(tb), "--cluster-node-timeout", "2000",
			"--cluster-require-full-coverage", "no")
	}
	for i, s := range servers {
		s.Must("CLUSTER", "ADDSLOTSRANGE", i*slots/n, (i+1)*slots/n-1)
	}
	for _, s := range servers[1:] {
		host, port, err := net.SplitHostPort(s.Addr)
		if err != nil {
			tb.Fatal(err)
		}
		servers[0].Must("CLUSTER", "MEET", host, port, s.args[clusterPortArg(s)])
	}
	for _, s := range servers {
		Eventually(tb, "the Cluster serves", func() error { return serves(s, n) })
	}
	return servers
}

func clusterPortArg(s *Server) int {
	for i, a := range s.args {
		if a == "--cluster-port" {
			return i + 1
		}
	}
	return 0
}

// serves reports whether a node sees the whole Cluster.
func serves(s *Server, n int) error {
	info, err := s.Do("CLUSTER", "INFO")
	if err != nil {
		return err
	}
	text := fmt.Sprint(info)
	for _, want := range []string{
		"cluster_state:ok", fmt.Sprintf("cluster_slots_ok:%d", slots), fmt.Sprintf("cluster_size:%d", n),
	} {
		if !strings.Contains(text, want) {
			return fmt.Errorf("%s: no %s in %s", s.Addr, want, text)
		}
	}
	return nil
}

// Addrs returns the addresses of servers.
func Addrs(servers []*Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr
	}
	return list
}
