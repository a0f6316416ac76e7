// Command bench runs e2e/bench.
package main

import (
	"context"
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
	quick := flag.Bool("quick", false, "")
	profile := flag.String("profile", "", "")
	against := flag.String("against", "", "")
	only := flag.Bool("only-hits", false, "")
	flag.Parse()
	scale := bench.Full()
	if *quick {
		scale = bench.Quick()
	}
	scale.Against = *against
	if *only {
		scale.Groups = 0
	}
	var report bench.Report
	err := harness.Run(ctx, os.Stderr, func(tb harness.TB) {
		if *profile != "" {
			bench.Profile(tb, scale, *profile)
			return
		}
		report = bench.Run(tb, scale, time.Now())
	})
	for _, r := range report.Rows {
		fmt.Printf("%+v\n", r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
