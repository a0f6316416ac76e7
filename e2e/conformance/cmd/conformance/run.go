package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weirproxy/weir/e2e/conformance"
	"github.com/weirproxy/weir/e2e/harness"
)

// options are the command's flags.
type options struct {
	subject   string // one subject by name
	peers     bool   // weir and every peer
	suiteDir  string // another edition of the suite
	edition   string // its name in tables and on the page
	out       string // file of the results
	notPassed bool   // list tests that do not pass
	update    bool   // accept the results
	docs      bool   // only write the page
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("conformance", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.subject, "subject", conformance.WeirSubject, "what to run the suite through")
	f.BoolVar(&o.peers, "peers", os.Getenv("PEERS") == "1", "run weir and every peer, side by side (or PEERS=1)")
	f.StringVar(&o.suiteDir, "suite", "", "folder of another edition of http-cache-tests, its dependencies installed")
	f.StringVar(&o.edition, "edition", "", "what to call the edition in -suite")
	f.StringVar(&o.out, "out", "bin/conformance.json", "file for the results; a relative path is below the module's root")
	f.BoolVar(&o.notPassed, "not-passed", false, "list the tests that do not pass, with what the suite's client says")
	f.BoolVar(&o.update, "update", false, "accept the results: baseline, measurements and page are written")
	f.BoolVar(&o.docs, "docs", false, "write docs/conformance.md from what was accepted, and run nothing")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if (o.suiteDir == "") != (o.edition == "") {
		return o, errors.New("-suite and -edition go together")
	}
	return o, nil
}

// subjects are what is measured. Accepting weir's results takes Envoy alone as well.
func (o options) subjects() ([]conformance.Subject, error) {
	names := []string{o.subject}
	if o.peers {
		names = []string{conformance.WeirSubject}
		for _, p := range conformance.Peers() {
			names = append(names, p.Name)
		}
	}
	if o.update && o.suiteDir == "" && names[0] == conformance.WeirSubject {
		names = append(names, conformance.EnvoySubject)
	}
	var subjects []conformance.Subject
	for _, name := range names {
		s, err := conformance.FindSubject(name)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return subjects, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	subjects, err := o.subjects()
	if err != nil {
		return err
	}
	files, err := conformance.FindFiles()
	if err != nil {
		return err
	}
	suite, err := loadSuite(ctx, o, stderr)
	if err != nil {
		return err
	}
	if o.docs {
		return files.WritePage(suite)
	}
	var measured []conformance.Measurement
	for _, s := range subjects {
		// Each in a scope of its own, so that one is gone before the next starts.
		err := harness.Run(ctx, stderr, func(tb harness.TB) {
			measured = append(measured, conformance.Measure(tb, suite, s))
		})
		if err != nil {
			return fmt.Errorf("measure %s: %w", s.Title, err)
		}
		if err := show(stdout, suite, measured[len(measured)-1], o.notPassed); err != nil {
			return err
		}
	}
	if len(measured) > 1 {
		fmt.Fprintln(stdout, "\nSide by side: required, optional, checks answered yes")
		if err := conformance.WriteSideBySide(stdout, suite, measured); err != nil {
			return err
		}
	}
	if err := writeResults(files.Absolute(o.out), measured); err != nil {
		return err
	}
	if o.update {
		return files.Accept(suite, o.suiteDir == "", measured)
	}
	if o.suiteDir != "" || subjects[0].Name != conformance.WeirSubject {
		return nil
	}
	return compare(ctx, stdout, stderr, files, suite, measured[0])
}

// loadSuite loads the pinned edition, or the one in -suite.
func loadSuite(ctx context.Context, o options, stderr io.Writer) (*conformance.Suite, error) {
	var suite *conformance.Suite
	err := harness.Run(ctx, stderr, func(tb harness.TB) {
		if o.suiteDir == "" {
			suite = conformance.Pinned(tb)
			return
		}
		var err error
		if suite, err = conformance.LoadSuite(tb.Context(), o.suiteDir); err != nil {
			tb.Fatalf("%v", err)
		}
		suite.Edition = o.edition
	})
	return suite, err
}

func show(w io.Writer, suite *conformance.Suite, m conformance.Measurement, notPassed bool) error {
	verdicts := conformance.Judge(suite, m.Results)
	fmt.Fprintf(w, "\n%s %s by %s\n", m.Subject, m.Version, suite.Edition)
	if err := conformance.WriteTally(w, conformance.Tally(suite, verdicts)); err != nil {
		return err
	}
	if !notPassed {
		return nil
	}
	for _, t := range suite.All {
		if v := verdicts[t.ID]; v != conformance.Pass {
			fmt.Fprintf(w, "%-10s %-10s %s: %s\n", t.Kind, v, t.ID, m.Results[t.ID])
		}
	}
	return nil
}

func writeResults(path string, measured []conformance.Measurement) error {
	data, err := json.MarshalIndent(measured, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// compare fails when weir lost a test.
func compare(
	ctx context.Context, stdout, stderr io.Writer,
	files conformance.Files, suite *conformance.Suite, m conformance.Measurement,
) error {
	var lost, gained []conformance.Change
	err := harness.Run(ctx, stderr, func(tb harness.TB) {
		lost, gained = files.Compare(tb, suite, m)
	})
	if err != nil {
		return err
	}
	for _, c := range gained {
		fmt.Fprintln(stdout, "gained:", c)
	}
	if len(gained) > 0 {
		fmt.Fprintln(stdout, "Accept with -update.")
	}
	for _, c := range lost {
		fmt.Fprintln(stdout, "lost:", c)
	}
	if len(lost) > 0 {
		return fmt.Errorf("%d tests lost against the baseline", len(lost))
	}
	return nil
}
