// Command bench measures weir against the floor and against other caches, and writes what it found. It is run from
// inside the module, after .ci/tools and .ci/tools bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weirproxy/weir/e2e/bench"
	"github.com/weirproxy/weir/e2e/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "measure less, in a minute")
	parts := flags.String("parts", "", "comma-separated parts to measure; all if empty: "+bench.PartNames())
	profiles := flags.String("profile", "", "instead of measuring, write CPU profiles of weir into this directory")
	against := flags.String("against", "", "another build of weir-extproc, with which the hit path is compared")
	out := flags.String("json", "bench.json", "file that the results go to")
	render := flags.String("render", "", "instead of measuring, write the pages of this file of results")
	pages := flags.String("pages", "docs", "directory that the pages go to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *render != "" {
		report, err := bench.ReadReport(*render)
		if err != nil {
			return err
		}
		return report.WritePages(*pages)
	}
	scale := bench.Full()
	if *quick {
		scale = bench.Quick()
	}
	scale.Against = *against
	if *profiles != "" {
		return harness.Run(ctx, os.Stderr, func(tb harness.TB) { bench.Profile(tb, scale, *profiles) })
	}
	var report bench.Report
	err := harness.Run(ctx, os.Stderr, func(tb harness.TB) { report = bench.Run(tb, scale, *parts, time.Now()) })
	if err != nil {
		return err
	}
	if err := report.WriteTable(os.Stdout); err != nil {
		return err
	}
	if err := report.WriteJSON(*out); err != nil {
		return err
	}
	return nil
}
