package controller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

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
		files := &tlsFiles{cert: cfg.FeedCertFile, key: cfg.FeedKeyFile, clientCA: cfg.FeedClientCAFile, log: log}
		if err := files.load(); err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(files.config())))
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

// tlsFiles are what the feed's TLS is made of. They are read for each connection, of
// which each replica of the data plane makes two: so they may change at any time. While
// they are not usable, the last ones that were are used.
type tlsFiles struct {
	cert, key, clientCA string
	log                 *slog.Logger

	current atomic.Pointer[tls.Config]
}

func (f *tlsFiles) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if err := f.load(); err != nil {
				f.log.Error("TLS files of the feed not usable, using what was", "error", err)
			}
			return f.current.Load(), nil
		},
	}
}

func (f *tlsFiles) load() error {
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("--feed-tls-cert-file, --feed-tls-key-file: %w", err)
	}
	pem, err := os.ReadFile(f.clientCA)
	if err != nil {
		return fmt.Errorf("--feed-client-ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return errors.New("--feed-client-ca-file: no certificate in it (PEM)")
	}
	f.current.Store(&tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{cert},
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	return nil
}
