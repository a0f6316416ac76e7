// Command cluster runs a real Kubernetes cluster until it is interrupted, for trying things out by hand. Commands enter
// it by e2e/cluster/enter.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weirproxy/weir/e2e/cluster"
	"github.com/weirproxy/weir/e2e/harness"
)

func main() { os.Exit(cluster.Enter(run)) }

func run() int {
	envoyGateway := flag.Bool("envoy-gateway", false, "install Envoy Gateway and the GatewayClass envoy-gateway")
	flag.Parse()
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := harness.Run(ctx, os.Stderr, func(tb harness.TB) {
		c := cluster.Start(tb)
		if *envoyGateway {
			c.InstallEnvoyGateway(tb)
		}
		fmt.Println("The cluster is up. From the clone: e2e/cluster/enter kubectl get pods -A. Ctrl-C ends it.")
		<-tb.Context().Done()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return 0
}
