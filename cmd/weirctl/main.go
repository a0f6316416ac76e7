// Command weirctl asks and steers a running weir-extproc through its admin API,
// and checks and explains policy files offline.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, version, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "weirctl: %v\n", err)
		os.Exit(1)
	}
}
