package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/metrics"
)

// environment is what the parts of a process are made from.
type environment struct {
	cfg      *Config
	build    metrics.Build
	memory   memoryPlan
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	ready    *readiness
	started  time.Time
}

// parts is what a process serves with, once policies are loaded.
type parts struct {
	// register adds the ext_proc service to a gRPC server.
	register func(grpc.ServiceRegistrar)
	// codec is the server's codec; nil is protobuf's own.
	codec encoding.CodecV2
	// release ends every hold: what is held goes on to the origin. It does not wait.
	release func()
	// loaded waits until there are policies, or no longer; nil: there are.
	loaded func(ctx context.Context)
	// warm loads what --warm-file names; it returns when that is done or ctx ends.
	warm func(ctx context.Context) error
	// background runs until its context ends.
	background []func(ctx context.Context) error
	// close gives back what is left after the last stream and all background ended.
	close func() error

	admin admin.Backend
}

// assembler makes the parts.
type assembler func(ctx context.Context, env environment) (*parts, error)
