package httpcache

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Each Reason is listed once, in order, with where it stands and one sentence.
func TestReasons(t *testing.T) {
	t.Parallel()
	var listed []string
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, info := range Reasons() {
		listed = append(listed, string(info.Reason))
		if !kebab.MatchString(string(info.Reason)) || !isSFToken(string(info.Reason)) {
			t.Errorf("%q is not kebab-case", info.Reason)
		}
		if info.Section != "house rule" && !regexp.MustCompile(`^RFC \d{4} §\d`).MatchString(info.Section) {
			t.Errorf("%s: section %q", info.Reason, info.Section)
		}
		if !regexp.MustCompile(`^[A-Z].*[a-z\d)*]\.$`).MatchString(info.Text) {
			t.Errorf("%s: %q is no sentence", info.Reason, info.Text)
		}
	}
	if !slices.IsSorted(listed) {
		t.Errorf("not sorted: %q", listed)
	}
	declared := declaredReasons(t)
	slices.Sort(declared)
	if !slices.Equal(listed, declared) {
		t.Errorf("Reasons() lists\n%q, but reason.go declares\n%q", listed, declared)
	}
}

// declaredReasons returns the values of the Reason constants in reason.go.
func declaredReasons(t *testing.T) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isSpec := n.(*ast.ValueSpec)
		if !isSpec {
			return true
		}
		if id, isID := spec.Type.(*ast.Ident); isID && id.Name == "Reason" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	return values
}
