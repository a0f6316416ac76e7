// Command weir-extproc is the data plane of weir: an HTTP response cache that
// Envoy calls through its ext_proc filter.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weirproxy/weir/extproc/serve"
)

// version is set by the linker.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal drains; a second one ends the process at once
	if err := serve.Main(ctx, version, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "weir-extproc: %v\n", err)
		os.Exit(1)
	}
}
