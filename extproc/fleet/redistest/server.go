package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// patience bounds how long anything here is waited for; it says nothing about
// how long it takes.
const patience = 30 * time.Second

// Server is a redis-server of a test, on a loopback port of its own.
type Server struct {
	Addr string
	Dir  string // its files

	t    testing.TB
	args []string
	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has ended
}

// Start starts a redis-server that keeps nothing on disk, with further
// configuration arguments, and stops it when the test ends.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	port := freePort(tb)
	s := &Server{t: tb, Addr: net.JoinHostPort("127.0.0.1", port), Dir: tb.TempDir()}
	s.args = append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", s.Dir, "--logfile", filepath.Join(s.Dir, "log"),
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)
	s.run()
	tb.Cleanup(s.Stop)
	return s
}

// freePort returns a port that nobody listens on. Another may take it before the
// server does; then the test fails.
func freePort(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func (s *Server) run() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("redis-server is needed (Debian: apt-get install redis-server): %v", err)
	}
	s.gone = make(chan struct{})
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait()
		close(gone)
	}(s.cmd, s.gone)
	Eventually(s.t, "redis-server accepts connections", s.accepts)
}

var errEnded = errors.New("it has ended")

// accepts reports whether the server listens. Whether it answers commands
// without a password or TLS is not its concern.
func (s *Server) accepts() error {
	select {
	case <-s.gone:
		log, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
		return fmt.Errorf("%w:\n%s", errEnded, log)
	default:
	}
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// Client returns a client of the server that ends with the test.
func (s *Server) Client() *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Stop kills the server, as a crash does. It may be started again.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Kill()
	<-s.gone
}

// Restart starts the server again after Stop, on the same port.
func (s *Server) Restart() {
	s.t.Helper()
	s.run()
}

// Freeze stops the process without ending it: connections stay, nothing answers.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("redis-server: %v: %v", sig, err)
	}
}

// Do runs one command on the server and returns its answer.
func (s *Server) Do(args ...any) (any, error) {
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.Do(ctx, args...).Result()
}

// Must runs one command on the server and fails the test if that does.
func (s *Server) Must(args ...any) any {
	s.t.Helper()
	v, err := s.Do(args...)
	if err != nil && !errors.Is(err, goredis.Nil) {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// Eventually calls check until it returns nil, and fails the test if that takes
// too long.
func Eventually(tb testing.TB, what string, check func() error) {
	tb.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
		if errors.Is(err, errEnded) {
			break
		}
	}
	tb.Fatalf("%s: %v", what, err)
}
