package conformance_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirproxy/weir/e2e/conformance"
)

// TestRequirements holds docs/rfc9111.md against the code: every function and test that it names exists, and every test
// of the suite that it names is passed.
func TestRequirements(t *testing.T) {
	t.Parallel()
	f := files(t)
	page, err := os.ReadFile(filepath.Join(f.Root, "docs", "rfc9111.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := functions{root: f.Root, of: map[string]map[string]bool{}}
	suite, notPassed := suiteTests(t), baseline(t).NotPassed
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || strings.Contains(line, "| requirement |") {
			continue
		}
		rows++
		section := strings.TrimSpace(cells[0])
		decided, held := codeSpans(cells[2]), cells[3]
		tests, ofSuite, _ := strings.Cut(held, "suite:")
		for _, name := range append(decided, codeSpans(tests)...) {
			if !known.has(t, name) {
				t.Errorf("§%s: there is no %s", section, name)
			}
		}
		for _, id := range codeSpans(ofSuite) {
			if _, failed := notPassed[id]; failed || !suite[id] {
				t.Errorf("§%s: %s is no test of the suite, or is not passed", section, id)
			}
		}
		if len(decided) == 0 || len(codeSpans(held)) == 0 {
			t.Errorf("§%s: nothing decides %q, or nothing holds it", section, cells[1])
		}
	}
	if rows < 40 {
		t.Errorf("%d rows were read", rows)
	}
}

func codeSpans(s string) (spans []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(s, -1) {
		spans = append(spans, m[1])
	}
	return spans
}

func suiteTests(t *testing.T) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, test := range conformance.Pinned(t).All {
		ids[test.ID] = true
	}
	return ids
}

// functions are the names of the functions and methods of a package, tests too.
type functions struct {
	root string
	of   map[string]map[string]bool
}

// has reports whether there is a function of this name: path/to/package.Function, or .Type.Method.
func (f *functions) has(t *testing.T, name string) bool {
	t.Helper()
	slash := strings.LastIndexByte(name, '/') + 1
	dir, function, ok := strings.Cut(name[slash:], ".")
	if !ok {
		return false
	}
	dir = name[:slash] + dir
	if f.of[dir] == nil {
		f.of[dir] = f.parse(t, filepath.Join(f.root, dir))
	}
	return f.of[dir][function]
}

func (f *functions) parse(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				names[receiver(d)+d.Name.Name] = true
			}
		}
	}
	return names
}

// receiver is "Type." of a method, "" of a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
