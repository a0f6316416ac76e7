package serve

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.sock")
	l, err := listen(t.Context(), "unix://"+path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v (%v), want 0660", info.Mode(), err)
	}
	if got := addressOf(l); got != "unix://"+path {
		t.Errorf("address %q", got)
	}
	if _, err := listen(t.Context(), "unix://"+path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second listener: error %v, want in use", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the first listener is gone: %v", err)
	}
	_ = c.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket file is left behind: %v", err)
	}
}

// TestStaleSocket: what a killed process left is removed, and nothing else is.
func TestStaleSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := listen(t.Context(), "unix://"+stale)
	if err != nil {
		t.Fatalf("a stale socket is in the way: %v", err)
	}
	defer func() { _ = l.Close() }()

	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, dir} {
		if _, err := listen(t.Context(), "unix://"+path); err == nil || !strings.Contains(err.Error(), "no socket") {
			t.Errorf("%s: error %v, want that it is no socket", path, err)
		}
	}
	if data, err := os.ReadFile(link); err != nil || string(data) != "precious" {
		t.Errorf("the file has %q (%v)", data, err)
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "192.0.2.1:1": false, "localhost.example:1": false, "": false,
	} {
		if got := isLoopback(address); got != want {
			t.Errorf("isLoopback(%q) = %v, want %v", address, got, want)
		}
	}
}
