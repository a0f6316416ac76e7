package policydir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func symlink(tb testing.TB, target, name string) {
	tb.Helper()
	if err := os.Symlink(target, name); err != nil {
		tb.Fatal(err)
	}
}

func mkdir(tb testing.TB, path string) string {
	tb.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		tb.Fatal(err)
	}
	return path
}

// mount lays a directory out as Kubernetes mounts a ConfigMap: the files are
// links through ..data, which leads to the directory of one generation.
func mount(tb testing.TB, dir, generation string, files map[string]string) {
	tb.Helper()
	mkdir(tb, filepath.Join(dir, generation))
	for name, content := range files {
		write(tb, filepath.Join(dir, generation), name, content)
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			symlink(tb, filepath.Join(dataLink, name), filepath.Join(dir, name))
		}
	}
	// As the kubelet does: a new link is renamed over the old one.
	symlink(tb, generation, filepath.Join(dir, "..data_tmp"))
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, dataLink)); err != nil {
		tb.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "b.yaml", policyFile("b", 1))
	write(t, dir, "a.yml", policyFile("a", 1))
	write(t, dir, "README.md", "not a policy")
	write(t, dir, ".hidden.yaml", "not: a policy")
	write(t, dir, "backup.yaml~", "not: a policy")
	write(t, mkdir(t, filepath.Join(dir, "sub.yaml")), "c.yaml", "not: a policy")
	elsewhere := write(t, t.TempDir(), "policy", policyFile("linked", 1))
	symlink(t, elsewhere, filepath.Join(dir, "linked.yaml"))
	set, errs := Load(dir)
	if len(errs) > 0 {
		t.Fatal(lines(errs))
	}
	var got []string
	for b := range set.Bindings() {
		got = append(got, b.Policy.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "linked"}, got); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

func TestLoadFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	symlink(t, "nowhere", filepath.Join(dir, "broken.yaml"))
	symlink(t, ".", filepath.Join(dir, "self.yaml"))
	set, errs := Load(dir)
	want := filepath.Join(dir, "broken.yaml") + ": cannot be read: no such file or directory\n" +
		filepath.Join(dir, "self.yaml") + ": must be a regular file\n"
	if diff := cmp.Diff(want, lines(errs)); diff != "" || set != nil {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	none := filepath.Join(dir, "none")
	if _, errs := Load(none); lines(errs) != none+": cannot be read: no such file or directory\n" {
		t.Errorf("a directory that is not there: %s", lines(errs))
	}
	if set, errs := Load(t.TempDir()); len(errs) > 0 || set.Len() != 0 {
		t.Errorf("an empty directory: %v, %s", set, lines(errs))
	}
}

func TestLoadConfigMapMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount(t, dir, "..2026_01", map[string]string{"a.yaml": policyFile("a", 1), "b.yaml": policyFile("b", 1)})
	set, errs := Load(dir)
	if len(errs) > 0 || set.Len() != 2 {
		t.Fatalf("%d policies, %s", set.Len(), lines(errs))
	}
	mount(t, dir, "..2026_02", map[string]string{"a.yaml": "kind: Secret\n", "b.yaml": policyFile("b", 1)})
	_, errs = Load(dir)
	want := filepath.Join(dir, "a.yaml") + ":1: kind: \"Secret\": must be CachePolicy; " +
		"files in a policy directory hold nothing else\n"
	if diff := cmp.Diff(want, lines(errs)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestOneGenerationOfAMount: what is read is the generation that the data link
// led to when reading began, even if it changes meanwhile.
func TestOneGenerationOfAMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount(t, dir, "..1", map[string]string{"a.yaml": "one", "b.yaml": "one"})
	mount(t, dir, "..2", map[string]string{"a.yaml": "two", "b.yaml": "two"})
	var got []string
	for _, src := range readDirOnce(dir, "..1") {
		got = append(got, filepath.Base(src.name)+" "+string(src.data))
	}
	if diff := cmp.Diff([]string{"a.yaml one", "b.yaml one"}, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}
