package kube_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// pages are the documentation that this package answers for, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, root := range []string{"../../docs", "../../charts"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			data, err := os.ReadFile(path)
			out[path] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// helmCommand is "helm install" or "helm upgrade" as a page shows it, with the lines that go on.
var helmCommand = regexp.MustCompile(`(?m)^(?:\$ )?(helm (?:install|upgrade) (?:[^\n]*\\\n)*[^\n]*)$`)

// TestDocsHelmCommands has helm render what the pages have a reader install: chart and values exist.
func TestDocsHelmCommands(t *testing.T) {
	t.Parallel()
	bin, found := t.TempDir(), 0
	if err := os.Symlink(harness.HelmBinary(t), filepath.Join(bin, "helm")); err != nil {
		t.Fatal(err)
	}
	for path, page := range pages(t) {
		for _, at := range helmCommand.FindAllStringSubmatchIndex(page, -1) {
			shown := page[at[2]:at[3]]
			command := regexp.MustCompile(`^helm (install|upgrade)`).ReplaceAllString(shown, "helm template")
			if blocks := yamlBlock.FindAllStringSubmatch(page[:at[0]], -1); strings.Contains(command, " -f values.yaml") {
				// The block before is that file.
				values := filepath.Join(t.TempDir(), "values.yaml")
				if err := os.WriteFile(values, []byte(blocks[len(blocks)-1][1]), 0o600); err != nil {
					t.Fatal(err)
				}
				command = strings.ReplaceAll(command, " -f values.yaml", " -f "+values)
			}
			command = regexp.MustCompile(` --(reuse-values|reset-then-reuse-values|wait)`).ReplaceAllString(command, "")
			found++
			run := exec.CommandContext(t.Context(), "sh", "-c", command)
			run.Dir = "../.."
			run.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+server.Kubeconfig)
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s: %s\n%v: %s", path, shown, err, out)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d commands found", found)
	}
}

// TestDocsLinks holds that what the pages link to, and the files that their commands name, are there.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	for path, page := range pages(t) {
		for _, match := range regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`).FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, match[1], err)
			}
		}
		for _, match := range regexp.MustCompile(`-[fk] (config/[^\s]+)`).FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join("../..", strings.TrimRight(match[1], "`.,"))); err != nil {
				t.Errorf("%s names %s: %v", path, match[1], err)
			}
		}
	}
}
