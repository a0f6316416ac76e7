package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// MasterName is what a Sentinel of a test calls its master.
const MasterName = "weir-test"

// StartReplica starts a replica of master and returns when it is in sync.
func StartReplica(tb testing.TB, master *Server, args ...string) *Server {
	tb.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	s := Start(tb, append([]string{"--replicaof", host + " " + port}, args...)...)
	Eventually(tb, "the replica is in sync", func() error {
		info, err := s.Do("INFO", "replication")
		if err == nil && !strings.Contains(fmt.Sprint(info), "master_link_status:up") {
			err = fmt.Errorf("%v", info)
		}
		return err
	})
	return s
}

// StartSentinel starts a Sentinel that watches master, decides alone, and takes
// half a second of silence for a failure. It returns when it knows the replica.
func StartSentinel(tb testing.TB, master *Server) *Server {
	tb.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	own := freePort(tb)
	s := &Server{t: tb, Addr: net.JoinHostPort("127.0.0.1", own), Dir: tb.TempDir()}
	conf := filepath.Join(s.Dir, "sentinel.conf") // Sentinel rewrites it
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nlogfile %s\n"+
		"sentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 5000\n",
		own, s.Dir, filepath.Join(s.Dir, "log"), MasterName, host, port, MasterName, MasterName)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	s.args = []string{conf, "--sentinel"}
	s.run()
	tb.Cleanup(s.Stop)
	Eventually(tb, "the Sentinel knows the replica", func() error {
		list, err := s.Do("SENTINEL", "REPLICAS", MasterName)
		if rows, ok := list.([]any); err == nil && (!ok || len(rows) == 0) {
			err = fmt.Errorf("%v", list)
		}
		return err
	})
	return s
}
