package harness

import (
	"net"
	"os/exec"
)

// StartProgram starts a program that is neither Envoy nor weir and waits until it listens on address (host:port). Its
// output is shown when the test fails. It returns the process's ID.
func StartProgram(tb TB, name string, cmd *exec.Cmd, address string) (pid int) {
	tb.Helper()
	p := startProcess(tb, name, cmd, nil)
	Eventually(tb, startLimit, name+" listens on "+address, func() bool {
		if !p.running() {
			tb.Fatalf("%s ended before it listened on %s", name, address)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		_ = conn.Close() // nothing was sent
		return true
	})
	return cmd.Process.Pid
}
