package serve

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/extproc/metrics"
)

const (
	// keepaliveMinTime is how often Envoy may ping. grpc-go's default of 5 minutes answers a usual
	// connection_keepalive with GOAWAY, and every held request on the connection fails.
	keepaliveMinTime = 5 * time.Second
	// maxReceiveBytes bounds one message of Envoy's. A body chunk that is copied can be as large as Envoy's buffer
	// limit (1 MiB by default), which an operator may raise.
	maxReceiveBytes = 16 << 20
	// streamWorkers are goroutines that streams run on one after the other, so that each stream need not grow a stack
	// of its own: that is a tenth of a hit's CPU. Streams beyond them, such as held ones, get new goroutines.
	streamWorkers = 32
	// windowBytes are the HTTP/2 windows in which Envoy may send bodies. That they are fixed turns off grpc-go's
	// measuring of bandwidth, which sends a ping with every hit.
	windowBytes = 1 << 20
	// ioBufferBytes lets a hit of 64 KiB leave in one write.
	ioBufferBytes = 128 << 10
)

// newGRPCServer makes the server of the ext_proc port. There is no limit of
// concurrent streams: one below a burst makes Envoy fail requests.
func newGRPCServer(cfg *Config, tls *tlsReloader, codec encoding.CodecV2, log *slog.Logger, m *metrics.Metrics,
) *grpc.Server {
	o := []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: keepaliveMinTime, PermitWithoutStream: true,
		}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge:      cfg.GRPCMaxConnectionAge, // grpc-go spreads it by 10 %; 0 is never
			MaxConnectionAgeGrace: cfg.GRPCMaxConnectionAgeGrace,
		}),
		grpc.MaxRecvMsgSize(maxReceiveBytes),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.InitialWindowSize(windowBytes),
		grpc.InitialConnWindowSize(windowBytes),
		grpc.ReadBufferSize(ioBufferBytes),
		grpc.WriteBufferSize(ioBufferBytes),
		grpc.WaitForHandlers(true), // a server that stopped has no handler left
		grpc.StreamInterceptor(guardStream(log, m)),
	}
	if codec != nil {
		o = append(o, grpc.ForceServerCodecV2(codec))
	}
	if tls != nil {
		o = append(o, grpc.Creds(newServerCredentials(tls.config())))
	}
	return grpc.NewServer(o...)
}

// guardStream counts the open ext_proc streams and ends a stream whose handler
// panics with an error, so that Envoy carries on without weir and every other
// stream lives.
func guardStream(log *slog.Logger, m *metrics.Metrics) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
	) (err error) {
		if info.FullMethod == extprocv3.ExternalProcessor_Process_FullMethodName {
			m.StreamStart()
			defer m.StreamEnd()
		}
		defer func() {
			if p := recover(); p != nil {
				m.Panic()
				log.Error("Panic in a stream", "method", info.FullMethod, "panic", fmt.Sprint(p),
					"stack", string(debug.Stack()))
				err = status.Error(codes.Internal, "weir: internal error")
			}
		}()
		return handler(srv, stream)
	}
}
