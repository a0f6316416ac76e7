package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// shutdownTimeout is how long a request to one of the process's own HTTP ports
// may take to end.
const shutdownTimeout = 2 * time.Second

// process is weir-extproc while it serves.
type process struct {
	environment
	parts     *parts
	transport *transport
	listeners *listeners

	grpc   *grpc.Server
	health *health.Server
	http   []httpServer
}

// run binds the ports, makes the parts and serves until ctx ends.
func run(ctx context.Context, env environment, assemble assembler) error {
	t, err := newTransport(env)
	if err != nil {
		return err
	}
	l, err := open(ctx, env.cfg)
	if err != nil {
		return err
	}
	p, err := assemble(ctx, env)
	if err != nil {
		l.close()
		return err
	}
	defer paceGC(env.memory.available)()
	return newProcess(env, t, l, p).serve(ctx)
}

func newProcess(env environment, t *transport, l *listeners, p *parts) *process {
	pr := &process{
		environment: env, parts: p, transport: t, listeners: l,
		grpc:   newGRPCServer(env.cfg, t.grpcTLS, p.codec, env.log, env.metrics),
		health: health.NewServer(),
	}
	if p.loaded == nil {
		pr.ready.set(checkPolicies, nil)
	}
	pr.http = httpServers(env, l, t, p)
	p.register(pr.grpc)
	healthpb.RegisterHealthServer(pr.grpc, pr.health)
	pr.setServing(healthpb.HealthCheckResponse_NOT_SERVING)
	return pr
}

// setServing sets the gRPC health of the server and of the ext_proc service.
func (p *process) setServing(s healthpb.HealthCheckResponse_ServingStatus) {
	p.health.SetServingStatus("", s)
	p.health.SetServingStatus(extprocv3.ExternalProcessor_ServiceDesc.ServiceName, s)
}

// serve starts everything, waits for the end of ctx or a failure, and stops
// everything in an order in which no client loses an answer: streams first,
// then what serves them, then the ports on which one can watch.
func (p *process) serve(ctx context.Context) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	g, background := errgroup.WithContext(background)
	for _, f := range append(p.transport.watchers(), p.parts.background...) {
		g.Go(func() error { return f(background) })
	}
	for _, s := range p.http {
		g.Go(func() error { return s.serve() })
	}
	g.Go(func() error {
		if err := p.grpc.Serve(p.listeners.grpc); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("ext_proc port: %w", err)
		}
		return nil
	})
	g.Go(func() error { return p.becomeReady(ctx, background) })

	select {
	case <-ctx.Done():
	case <-background.Done(): // a part failed; g.Wait says which
	}
	p.drain()
	cancel()
	p.shutdownHTTP(context.WithoutCancel(ctx))
	return errors.Join(g.Wait(), p.parts.close())
}

func (s httpServer) serve() error {
	if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s port: %w", s.name, err)
	}
	return nil
}

// becomeReady loads what is to be loaded first, and then says that the process
// is ready. The ext_proc port serves before: a refill comes back to it.
func (p *process) becomeReady(ctx, background context.Context) error {
	if p.parts.loaded != nil {
		p.parts.loaded(background)
		p.ready.set(checkPolicies, nil)
	}
	if p.parts.warm != nil {
		if err := p.parts.warm(background); err != nil {
			p.log.Warn("Warm-up incomplete", "error", err)
		}
	}
	if ctx.Err() != nil || background.Err() != nil {
		return nil
	}
	p.ready.set(checkWarmUp, nil)
	p.ready.set(checkServing, nil)
	p.setServing(healthpb.HealthCheckResponse_SERVING)
	p.log.Info("Ready",
		"grpcAddress", addressOf(p.listeners.grpc), "adminAddress", addressOf(p.listeners.admin),
		"metricsAddress", addressOf(p.listeners.metrics), "healthAddress", addressOf(p.listeners.health))
	return nil
}

// shutdownHTTP ends the process's own HTTP servers.
func (p *process) shutdownHTTP(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	for _, s := range p.http {
		if err := s.Shutdown(ctx); err != nil {
			_ = s.Close()
		}
	}
}
