package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirproxy/weir/extproc/admin"
)

const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	// writeTimeout leaves room for a CPU profile of 30 seconds, and of a minute if asked.
	writeTimeout   = 90 * time.Second
	idleTimeout    = time.Minute
	maxHeaderBytes = 64 << 10
)

// listeners are the open ports; one that is not wanted is nil.
type listeners struct {
	grpc, admin, metrics, health net.Listener
}

// open binds every port, or none.
func open(ctx context.Context, cfg *Config) (*listeners, error) {
	var l listeners
	var faults []error
	bind := func(flag, address string, to *net.Listener) {
		if address == "" {
			return
		}
		opened, err := listen(ctx, address)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", flag, err))
			return
		}
		*to = opened
	}
	bind("--grpc-bind-address", cfg.GRPCBindAddress, &l.grpc)
	bind("--admin-bind-address", cfg.AdminBindAddress, &l.admin)
	bind("--metrics-bind-address", cfg.MetricsBindAddress, &l.metrics)
	bind("--health-probe-bind-address", cfg.HealthBindAddress, &l.health)
	if len(faults) > 0 {
		l.close()
		return nil, errors.Join(faults...)
	}
	return &l, nil
}

func (l *listeners) close() {
	for _, listener := range []net.Listener{l.grpc, l.admin, l.metrics, l.health} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

// httpServer is a server of the process's own HTTP ports.
type httpServer struct {
	*http.Server
	listener net.Listener
	name     string
}

// httpServers makes the servers of the ports that are open.
func httpServers(env environment, l *listeners, t *transport, p *parts) []httpServer {
	var servers []httpServer
	add := func(name string, listener net.Listener, h http.Handler) {
		if listener != nil {
			servers = append(servers, httpServer{newHTTPServer(env, h), listener, name})
		}
	}
	add("health", l.health, healthHandler(env.ready))
	metricsMux := http.NewServeMux()
	metricsMux.Handle("GET /metrics", promhttp.HandlerFor(env.registry,
		promhttp.HandlerOpts{Registry: env.registry, EnableOpenMetrics: true}))
	add("metrics", l.metrics, metricsMux)
	o := admin.Options{Loopback: isLoopback(env.cfg.AdminBindAddress), Log: env.log}
	if t.token != nil {
		o.Token = t.token.token
	}
	adminListener := l.admin
	if l.admin != nil && t.adminTLS != nil {
		adminListener = tls.NewListener(l.admin, t.adminTLS.config())
	}
	add("admin", adminListener, admin.New(p.admin, o))
	return servers
}

func newHTTPServer(env environment, h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(env.log.Handler(), slog.LevelDebug), // probes that hang up, port scans
	}
}
