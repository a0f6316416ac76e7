package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirproxy/weir/e2e/harness"
)

// debianProgram finds a program of a Debian package and the package's version. A package that is missing is
// installed, which needs root; its service is not started.
func debianProgram(tb harness.TB, pkg, program string) (path, version string) {
	tb.Helper()
	path = findProgram(program)
	if path == "" {
		installDebian(tb, pkg)
		if path = findProgram(program); path == "" {
			tb.Fatalf("Debian's package %s has no program %s", pkg, program)
		}
	}
	out, err := exec.CommandContext(tb.Context(), "dpkg-query", "-W", "-f", "${Version}", pkg).Output()
	if err != nil {
		tb.Fatalf("ask for the version of Debian's package %s: %v", pkg, err)
	}
	return path, strings.TrimSpace(string(out))
}

// findProgram looks in PATH and where Debian puts programs for administrators.
func findProgram(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	path := filepath.Join("/usr/sbin", program)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return ""
}

func installDebian(tb harness.TB, pkg string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Fatalf("please install as root: apt-get install %s", pkg)
	}
	tb.Logf("installing Debian's package %s", pkg)
	for _, args := range [][]string{
		{"update", "-qq"},
		{"install", "-y", "-qq", "--no-install-recommends", pkg},
	} {
		cmd := exec.CommandContext(tb.Context(), "apt-get", args...)
		// RUNLEVEL keeps the package from starting its service.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("apt-get %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
