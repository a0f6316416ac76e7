package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc"

	"github.com/weirproxy/weir/controller/feed"
)

// feedServer is the gRPC server of the feed. It runs on every replica of the
// controller.
type feedServer struct {
	server   *feed.Server
	listener net.Listener
	options  []grpc.ServerOption
	log      *slog.Logger
}

// newFeedServer binds the port, so that an address in use is an error at start.
func newFeedServer(cfg *Config, server *feed.Server, log *slog.Logger) (*feedServer, error) {
	options := feed.ServerOptions()
	if cfg.tls() {
		files := feed.TLSFiles{Cert: cfg.FeedCertFile, Key: cfg.FeedKeyFile, ClientCA: cfg.FeedClientCAFile}
		credentials, err := files.Credentials(log)
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials))
	}
	listener, err := net.Listen("tcp", cfg.FeedBindAddress)
	if err != nil {
		return nil, fmt.Errorf("--feed-bind-address: %w", err)
	}
	return &feedServer{server: server, listener: listener, options: options, log: log}, nil
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (*feedServer) NeedLeaderElection() bool { return false }

// Start implements [manager.Runnable].
func (s *feedServer) Start(ctx context.Context) error {
	g := grpc.NewServer(s.options...)
	s.server.Register(g)
	s.log.Info("Feed serves", "address", s.listener.Addr().String())
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.server.Close() // replicas turn to another one, and keep what they have
		g.GracefulStop()
	})
	err := g.Serve(s.listener)
	if !stop() {
		<-stopped
		return nil
	}
	return fmt.Errorf("serve the feed: %w", err)
}
