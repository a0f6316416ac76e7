// Command demo puts weir in front of an origin, behind a real Envoy, and shows what it does: what clients and the
// origin see, as numbers, and whether they are what weir promises. Then it leaves everything running until Ctrl-C.
//
// With ONCE=1 in the environment it ends after the show; the exit status says whether the numbers held.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weirproxy/weir/e2e/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, newTerminal(os.Stdout), os.Getenv("ONCE") != ""); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

var errNumbers = errors.New("the numbers did not hold")

func run(ctx context.Context, term *terminal, once bool) error {
	held := true
	err := harness.Run(ctx, os.Stderr, func(tb harness.TB) {
		s := newStage(tb, !once)
		term.title(s)
		held = show(s, term)
		if once || ctx.Err() != nil {
			return
		}
		s.open()
		term.invite(s)
		<-ctx.Done()
		term.println()
	})
	if ctx.Err() != nil && !once {
		return nil // Ctrl-C is how a demo ends
	}
	if err == nil && !held {
		return errNumbers
	}
	return err
}
