// Command weir-controller attaches CachePolicies to the routes of a cluster and tells
// the data plane of them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weirproxy/weir/controller"
)

// version is set by the linker.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := controller.Main(ctx, version, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "weir-controller: %v\n", err)
		os.Exit(1)
	}
}
