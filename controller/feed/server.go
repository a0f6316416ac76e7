package feed

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// Options configure a Server; the zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: none
}

// Server gives the data plane its configuration and hears what it runs. Every
// replica of the controller has one, elected or not; all have the same resources in
// the same versions. It is safe for concurrent use.
type Server struct{}

// New returns a Server that has no resources, and tells subscribers so only after
// the first Set: one that was served before keeps what it has until then.
func New(o Options) *Server { _ = o; return &Server{} }

// Register adds the server's services to a gRPC server, which is best made with
// ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) { _ = r }

// Close ends all streams. It is called before the gRPC server's GracefulStop.
func (s *Server) Close() {}

// Set makes these the resources, tells subscribers what changed, and returns how
// many did (removed ones too). An object that cannot be sent (too large) is left
// out, keeps the version that was sent before, and is in the error by name.
func (s *Server) Set(policies []feed.Policy, routes []feed.Route, entrances []feed.Entrance) (changed int, err error) {
	_, _, _ = policies, routes, entrances
	return 0, nil
}

// Version returns the current version of a resource ([feed.Policy.Resource] and the
// like give names); empty: there is none.
func (s *Server) Version(resource string) string { _ = resource; return "" }

// Replica is a replica of the data plane that is connected to this replica of the
// controller.
type Replica struct {
	Name    string // the pod's
	Version string // release
	Since   time.Time
	// Synced: it has said all that it runs.
	Synced bool
	// Behind is the number of resources that it does not run in their current version.
	Behind int
	// Rejected is the number of resources that it refused.
	Rejected int
}

// Replicas returns the replicas that are connected, by name.
func (s *Server) Replicas() []Replica { return nil }

// Runs reports whether a replica is connected, has said all that it runs, and runs
// every one of the resources in its current version. It takes a look-up for each.
func (s *Server) Runs(replica string, resources ...string) bool {
	_, _ = replica, resources
	return false
}

// Running returns, by replica, the version in which each runs a resource. Replicas
// that do not run it are left out.
func (s *Server) Running(resource string) map[string]string { _ = resource; return nil }

// Rejections returns, by replica, why each refused the version of a resource that
// is current.
func (s *Server) Rejections(resource string) map[string]string { _ = resource; return nil }

// Changed gets a value after anything changed in what Replicas, Runs, Running,
// Rejections or Traffic return; changes that come before it was received are one.
func (s *Server) Changed() <-chan struct{} { return nil }

// Traffic returns, by policy (namespace/name), what all replicas counted since this
// Server began, and before that since they started. It never goes back for the same
// Server; another replica of the controller may have seen less.
func (s *Server) Traffic() map[string]feed.Traffic { return nil }

// Outcome says how an invalidation went over all replicas.
type Outcome struct {
	// Covered says what is invalid, as the data plane understood it.
	Covered string
	// Confirmed of Total replicas have applied it.
	Confirmed, Total int
	// Silent are the replicas of which that is not known, or that failed.
	Silent []string
	// Shared: the replicas told each other (Redis). Else each was told by itself.
	Shared   bool
	Warnings []string
}

// Invalidate has all replicas invalidate. In a fleet with Redis one replica tells
// all; others take its place if it fails. Without Redis every replica that is connected
// is told. The error says that no replica is connected, or that all failed; what
// Outcome says holds all the same. It waits for the replicas until ctx ends, and at
// most 30 s.
func (s *Server) Invalidate(ctx context.Context, i feed.Invalidate) (Outcome, error) {
	_, _ = ctx, i
	return Outcome{}, nil
}

// ServerOptions are for the gRPC server of the feed: bounds, keepalive.
func ServerOptions() []grpc.ServerOption { return nil }
