package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/weirproxy/weir/e2e/harness"
)

// Files are what this package keeps in the repository.
type Files struct {
	// Root is the module's root.
	Root string
	// Baseline, Measured and Page are paths.
	Baseline, Measured, Page string
}

// FindFiles finds the module that the working directory is in.
func FindFiles() (Files, error) {
	root, err := harness.ModuleRoot()
	if err != nil {
		return Files{}, err
	}
	own := filepath.Join(root, "e2e", "conformance")
	return Files{
		Root:     root,
		Baseline: filepath.Join(own, "baseline.json"),
		Measured: filepath.Join(own, "measured.json"),
		Page:     filepath.Join(root, "docs", "conformance.md"),
	}, nil
}

// Absolute is a path that, if relative, is below the module's root.
func (f Files) Absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.Root, path)
}

// Pinned loads the edition of the suite that tools.env pins.
func Pinned(tb harness.TB) *Suite {
	tb.Helper()
	dir := filepath.Join(harness.HTTPCacheTestsDir(tb), "node_modules", "http-cache-tests")
	s, err := LoadSuite(tb.Context(), dir)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return s
}

// Compare compares weir's results with the baseline. When tests are lost, the suite is run once more and only what is
// lost both times stays lost: its tests live on pauses of 3 s and lifetimes of 2 s, which a busy machine stretches.
func (f Files) Compare(tb harness.TB, s *Suite, m Measurement) (lost, gained []Change) {
	tb.Helper()
	b, err := LoadBaseline(f.Baseline)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	compare := func(r Results) (lost, gained []Change) {
		if lost, gained, err = b.Compare(s, r); err != nil {
			tb.Fatalf("%v", err)
		}
		return lost, gained
	}
	lost, gained = compare(m.Results)
	if len(lost) == 0 {
		return nil, gained
	}
	for _, c := range lost {
		tb.Logf("run again, since this was lost: %s", c)
	}
	subject, err := FindSubject(m.Subject)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	again, _ := compare(Measure(tb, s, subject).Results)
	return slices.DeleteFunc(lost, func(c Change) bool {
		return !slices.ContainsFunc(again, func(a Change) bool { return a.Test == c.Test })
	}), gained
}

// Accept makes measurements the baseline (weir, Envoy alone) or saves them for the page (the rest, and everything by
// an edition that is not the pinned one). Then it writes the page.
func (f Files) Accept(s *Suite, pinned bool, measured []Measurement) error {
	kept, err := LoadMeasured(f.Measured)
	if err != nil {
		return err
	}
	baseline := &Baseline{Suite: s.Edition}
	for _, m := range measured {
		switch {
		case !pinned:
			kept.AddNewer(s, m)
		case m.Subject == WeirSubject:
			baseline.NotPassed = Judge(s, m.Results).NotPassed()
		case m.Subject == EnvoySubject:
			baseline.EnvoyVersion, baseline.EnvoyItself = m.Version, EnvoyItself(s, m.Results)
		default:
			kept.AddPeer(s, m)
		}
	}
	if err := kept.Save(f.Measured); err != nil {
		return err
	}
	if baseline.NotPassed != nil && baseline.EnvoyItself != nil {
		if err := baseline.Save(f.Baseline); err != nil {
			return err
		}
	}
	if !pinned {
		return nil // the page is of the pinned edition: -docs writes it
	}
	return f.WritePage(s)
}

// WritePage writes docs/conformance.md. s is the pinned edition.
func (f Files) WritePage(s *Suite) error {
	page, err := f.RenderPage(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.Page), 0o755); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if err := os.WriteFile(f.Page, page, 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// RenderPage is docs/conformance.md as it should be, from what was accepted.
func (f Files) RenderPage(s *Suite) ([]byte, error) {
	b, err := LoadBaseline(f.Baseline)
	if err != nil {
		return nil, err
	}
	m, err := LoadMeasured(f.Measured)
	if err != nil {
		return nil, err
	}
	e, err := Exceptions()
	if err != nil {
		return nil, err
	}
	p := Page{Suite: s, Baseline: b, Measured: m, Exceptions: e}
	return p.Markdown(), nil
}
