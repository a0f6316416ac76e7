package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// socketMode is the mode of a Unix socket: owner and group may connect.
const socketMode = 0o660

// unixPath returns the path of a unix:// address.
func unixPath(address string) (string, bool) { return strings.CutPrefix(address, "unix://") }

// listen opens a listener on host:port or unix:///path.
func listen(ctx context.Context, address string) (net.Listener, error) {
	path, ok := unixPath(address)
	if !ok {
		var lc net.ListenConfig
		return lc.Listen(ctx, "tcp", address)
	}
	if err := removeStaleSocket(ctx, path); err != nil {
		return nil, err
	}
	// Linux gives the socket file the mode of the unbound socket, less the umask: set it there, so that the file never
	// stands open to others. Chmod then adds what the umask took away, and does all of it on other systems.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), socketMode) })
	}}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeStaleSocket removes the socket file that a process which did not end
// in order left behind. It removes nothing but a socket on which nobody listens.
func removeStaleSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is no socket; remove it or bind elsewhere", path)
	}
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("%s is in use: another process listens there", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("is %s in use? %w", path, err)
	}
	return os.Remove(path)
}

// addressOf returns where the listener really is, as a bind address is written.
func addressOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	if l.Addr().Network() == "unix" {
		return "unix://" + l.Addr().String()
	}
	return l.Addr().String()
}
