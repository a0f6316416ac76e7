package feed

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

const (
	// keepaliveMinTime is how often replicas may ping; they do every 10 s or less often.
	keepaliveMinTime = 5 * time.Second
	// keepaliveTime and keepaliveTimeout find a replica that is gone without a goodbye.
	keepaliveTime    = 20 * time.Second
	keepaliveTimeout = 10 * time.Second
	// maxStreams bounds the streams of one connection: a replica has two.
	maxStreams = 8
)

// ServerOptions are for the gRPC server of the feed: bounds, keepalive.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(feedpb.MaxMessageBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WaitForHandlers(true),
	}
}
