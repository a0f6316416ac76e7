package policydir

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy"
)

var update = flag.Bool("update", false, "write testdata/*.want anew")

// TestTestdata loads each file of testdata/bad and compares the faults with the
// .want file beside it.
func TestTestdata(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			set, errs := LoadFiles([]string{file})
			if set != nil || len(errs) == 0 {
				t.Fatal("the file was taken")
			}
			got := lines(errs)
			wantFile := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(wantFile, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(wantFile)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func lines(errs []FileError) string {
	var b strings.Builder
	for _, e := range errs {
		b.WriteString(e.Error() + "\n")
	}
	return b.String()
}

func TestLoadFilesGood(t *testing.T) {
	t.Parallel()
	set, errs := LoadFiles([]string{"testdata/good/catalog.yaml", "testdata/good/two.yml"})
	if len(errs) > 0 {
		t.Fatal(lines(errs))
	}
	want := map[string]string{ // route or name → policy
		"catalog": "shop/catalog", "home": "default/pages", "about": "default/pages",
		"default/named-only": "default/named-only",
	}
	got := map[string]string{}
	for at := range want {
		b, ok := set.ByRoute(at)
		if !ok {
			b, ok = set.ByName(at)
		}
		if ok {
			got[at] = b.Policy.String()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
	if b, _ := set.ByRoute("catalog"); b.Policy.Storage.MaxObjectSize != 2<<20 || b.Policy.XFetch.Mode != "Off" {
		t.Errorf("compiled policy: %+v", b.Policy)
	}
}

func TestLoadFilesAcrossFiles(t *testing.T) {
	t.Parallel()
	policy := func(name, route string) string {
		return "apiVersion: weir.dev/v1alpha1\nkind: CachePolicy\nmetadata: {name: " + name + ", namespace: shop}\n" +
			"spec:\n  targetRefs:\n  - {group: weir.dev, kind: EnvoyRoute, name: " + route + "}\n"
	}
	dir := t.TempDir()
	a, b, c := write(t, dir, "a.yaml", policy("one", "r")), write(t, dir, "b.yaml", policy("two", "r")),
		write(t, dir, "c.yaml", policy("one", "s"))
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"one route", []string{a, b}, b + `:6: spec.targetRefs[0].name: policies shop/one and shop/two both target ` +
			`EnvoyRoute "r": a route takes one policy (the other is at ` + a + ":6)\n"},
		{"one name", []string{a, c}, c + `:3: metadata.name: policy shop/one is defined twice: names must be unique ` +
			`within a namespace (the other is at ` + a + ":3)\n"},
		{"one file twice", []string{a, a}, a + `:3: metadata.name: policy shop/one is defined twice: names must be ` +
			`unique within a namespace (the other is at ` + a + ":3)\n"},
		{"one file is missing", []string{a, filepath.Join(dir, "none.yaml")},
			filepath.Join(dir, "none.yaml") + ": cannot be read: no such file or directory\n"},
		{"a directory", []string{dir}, dir + ": must be a regular file\n"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set, errs := LoadFiles(tc.files)
			if diff := cmp.Diff(tc.want, lines(errs)); diff != "" || set != nil {
				t.Errorf("faults (-want +got), set %v:\n%s", set, diff)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	big := write(t, dir, "big.yaml", strings.Repeat("#", MaxFileSize+1))
	full := write(t, dir, "full.yaml", strings.Repeat("#", MaxFileSize))
	many := write(t, dir, "many.yaml", strings.Repeat("---\nkind: Secret\n", MaxErrors+50))
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	repeated := func(path string, n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = path
		}
		return out
	}
	empty := write(t, dir, "empty.yaml", "")
	tests := []struct {
		name   string
		files  []string
		errors int
		last   string
	}{
		{"a file of the largest size", []string{full}, 0, ""},
		{"a file larger than that", []string{big}, 1, "big.yaml: must not be larger than 1 MiB"},
		{"files too large together", repeated(full, 65), 1, "full.yaml: the files are larger than 64 MiB together"},
		{"as many files as may be", repeated(empty, MaxFiles), 0, ""},
		{"too many files", repeated(empty, MaxFiles+1), 1,
			"empty.yaml: there are more than 10000 files"},
		{"too many faults", []string{many}, MaxErrors, "many.yaml:200: 51 more errors from here on"},
		{"a named pipe", []string{pipe}, 1, "pipe.yaml: must be a regular file"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, errs := LoadFiles(tc.files)
			if len(errs) != tc.errors {
				t.Fatalf("%d faults, want %d", len(errs), tc.errors)
			}
			if tc.errors > 0 && errs[tc.errors-1].Error() != filepath.Join(dir, tc.last) {
				t.Errorf("last fault %s, want %s", errs[tc.errors-1].Error(), filepath.Join(dir, tc.last))
			}
		})
	}
}

// write writes a file and returns its path.
func write(tb testing.TB, dir, name, content string) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// policyFile is a file with one policy, whose jitter tells its versions apart.
func policyFile(name string, jitter int) string {
	return "apiVersion: weir.dev/v1alpha1\nkind: CachePolicy\nmetadata: {name: " + name + "}\nspec: {jitterPercent: " +
		strconv.Itoa(jitter) + "}\n"
}

// TestBareOff: to YAML 1.1, which kubectl reads, a bare Off is a boolean; to YAML 1.2 it is a string. Here it is what its
// writer meant, as in quotes.
func TestBareOff(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"Off", `"Off"`, "'Off'"} {
		file := filepath.Join(t.TempDir(), "off.yaml")
		text := "apiVersion: weir.dev/v1alpha1\nkind: CachePolicy\nmetadata: {name: p, namespace: shop}\n" +
			"spec:\n  xfetch: {mode: " + off + "}\n  coalescing:\n    scope: " + off + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		set, errs := LoadFiles([]string{file})
		if len(errs) > 0 {
			t.Errorf("%s: %v", off, errs)
			continue
		}
		binding, _ := set.ByName("shop/p")
		if p := binding.Policy; p.XFetch.Mode != cachepolicy.XFetchOff || p.Coalescing.Scope != cachepolicy.ScopeOff {
			t.Errorf("%s: xfetch.mode %s, coalescing.scope %s", off, p.XFetch.Mode, p.Coalescing.Scope)
		}
	}
}
