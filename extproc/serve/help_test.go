package serve

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/config/settings"
)

var update = flag.Bool("update", false, "rewrite testdata/help.txt and docs/reference/flags.md")

func TestHelp(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if err := start(t.Context(), "v1.2.3", []string{"--help"}, &stdout, &stderr, nil); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "help.txt"), stdout.Bytes())
	if stderr.Len() > 0 {
		t.Errorf("stderr has %q", stderr.String())
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	if err := start(t.Context(), "v1.2.3", []string{"--version"}, &stdout, &stdout, nil); err != nil {
		t.Fatal(err)
	}
	if got := stdout.String(); !strings.HasPrefix(got, "weir-extproc v1.2.3 (") || strings.Count(got, "\n") != 1 {
		t.Errorf("--version prints %q", got)
	}
}

// TestReference wants docs/reference/flags.md to say what --help says.
func TestReference(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("# Flags of weir-extproc\n\nGenerated from `extproc/serve`; do not edit.\n\n" +
		"`--config FILE` reads the same settings from YAML, under the same names:\n\n" +
		"```yaml\ngrpc-bind-address: unix:///run/weir/ext_proc.sock\npolicy-dir: /etc/weir/policies\n" +
		"memory-limit: 512Mi\n```\n\nFlags win over the file. A field that is not known is an error, with its line. " +
		"Sizes are written as in Kubernetes (`64Mi`, `2Gi`), durations as in Go (`250ms`, `1m30s`).\n" +
		"Secrets come in files, which flags name. A password in `--redis-url` works and is never logged, but who sees " +
		"the process's command line sees it.\n")
	settings.Reference(&b, flagGroups(defaultConfig(), &command{}))
	golden(t, filepath.Join("..", "..", "docs", "reference", "flags.md"), b.Bytes())
}

// golden compares with the file, or writes it under -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is out of date; run go test ./extproc/serve -update (-file +code):\n%s", path, diff)
	}
}
