package extproc

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/flight"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/popularity"
	"github.com/weirproxy/weir/extproc/refill"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// ServiceName is the gRPC service that Envoy's ext_proc filter calls.
const ServiceName = "envoy.service.ext_proc.v3.ExternalProcessor"

// The gRPC metadata by which a route's configuration in Envoy names its policy, and,
// under a controller, its rule.
const (
	policyMetadata = "x-weir-policy"
	scopeMetadata  = "x-weir-scope"
)

// Options are the parts that a Service is made of.
type Options struct {
	// Policies returns the policies in force. It is called once per stream.
	Policies func() *cachepolicy.Set
	Store    store.Store
	Stamps   *fleet.Stamps
	// Fleet coalesces fetches with other processes; nil: this one is alone.
	Fleet *fleet.Fleet
	// Shed is what happens to a fetch that would be coalesced in the fleet, but Redis
	// does not answer: it is not made, and a stale copy or an error stands in. Else
	// this process coalesces for itself.
	Shed bool
	// Shared is the store that all processes share, whose entries are prepared
	// ([Prepare]), and Through is Store over it: for requests that do not lead a
	// flight, and for what is stored without a lease. Nil without Fleet.
	Shared, Through store.Store
	// Fetcher makes detached fetches; nil if there is no way back into Envoy.
	Fetcher *refill.Fetcher
	// Entrances make the detached fetches of routes that a controller gave entrances.
	Entrances *refill.Entrances
	Tokens    *refill.Tokens
	Metrics   *metrics.Metrics
	Logger    *slog.Logger
	// MessageTimeout and MaxMessageTimeout are what Envoy's filter is configured
	// with; MaxMessageTimeout 0 says that it grants no extension.
	MessageTimeout, MaxMessageTimeout time.Duration
	// Ramp spreads each policy's fetches after a cold start and after an
	// invalidation of very much; the zero value does not.
	Ramp refill.RampOptions
	// Popularity counts reads; nil: a sketch of default size.
	Popularity *popularity.Sketch
	// Draw returns a number uniform in (0, 1] and is safe for concurrent use;
	// math/rand/v2 if nil.
	Draw func() float64
}

// Service is the ext_proc service. Create it with New; it is safe for
// concurrent use.
type Service struct {
	opts      Options
	facts     facts
	flights   *flight.Group
	states    sync.Map // policy name → *policyState
	resources resources
	backoff   *refill.Backoff
	refills   atomic.Int64 // detached fetches that run or wait for their turn
	behind    *background
	once      onceNotes
	traffic   traffic
	sessions  sync.Pool // of *session, zero
}

// New returns a Service. Close it when its gRPC server has stopped.
func New(o Options) *Service {
	if o.Popularity == nil {
		o.Popularity = popularity.New(popularity.Options{}, time.Now())
	}
	if o.Draw == nil {
		o.Draw = func() float64 { return 1 - rand.Float64() }
	}
	s := &Service{opts: o, backoff: refill.NewBackoff(refill.BackoffOptions{})}
	s.behind = newBackground()
	s.facts = facts{
		messageTimeout: o.MessageTimeout, maxMessageTimeout: o.MaxMessageTimeout,
		refill:   func(b *cachepolicy.Binding, req *httpcache.Request) bool { return s.fetcher(b, req) != nil },
		position: o.Stamps.Position,
		draw:     o.Draw,
		sight:    func(p *cachepolicy.Policy) *sight { return &s.state(p).sight },
	}
	s.flights = flight.New(flight.Options{TakeOver: s.takeOver, Dropped: s.dropLease})
	return s
}

// Register registers the service with a gRPC server that uses [wire.Codec].
func (s *Service) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "Process", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.process(stream) },
		}},
	}, s)
}

// Drain ends all holds: what is held goes on to the origin, and nothing is held
// any more.
func (s *Service) Drain() { s.flights.Drain() }

// Close cancels the detached fetches and waits until they have ended.
func (s *Service) Close() {
	s.behind.close()
}

// process runs one stream.
func (s *Service) process(stream grpc.ServerStream) error {
	ses, ok := s.sessions.Get().(*session)
	if !ok {
		ses = &session{}
	}
	ses.svc, ses.stream, ses.m.facts = s, stream, &s.facts
	ses.m.out = ses.room[:0]
	ses.msg.Back(ses.fields[:])
	defer s.ended(ses) // by a panic too: nobody may wait for a stream that is gone
	return ses.run()
}

// ended leaves nothing behind of a session, and keeps its memory for another where nobody else can have a part of it.
func (s *Service) ended(ses *session) {
	alone := ses.alone()
	ses.close()
	if alone {
		*ses = session{}
		s.sessions.Put(ses)
	}
}

// bind finds the policy of a stream (design §2: metadata, then route name, then the
// request itself).
func (s *Service) bind(stream grpc.ServerStream, msg *wire.Message) *cachepolicy.Binding {
	set := s.policies()
	if set == nil {
		return nil
	}
	policy := firstOf(metadata.ValueFromIncomingContext(stream.Context(), policyMetadata))
	scope := firstOf(metadata.ValueFromIncomingContext(stream.Context(), scopeMetadata))
	b, decided := set.Identify(policy, scope, msg.RouteName)
	if decided || msg.Kind != wire.KindRequestHeaders {
		return b
	}
	return set.Match(&cachepolicy.MatchInput{
		Authority: msg.Authority, Method: msg.Method, Path: msg.Path, Header: msg.Header.Joined,
	})
}

func firstOf(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// limits are what a request brings to a flight.
func (s *Service) limits(j *job) flight.Limits {
	p := j.binding.Policy
	return flight.Limits{
		MaxWaiters: p.Coalescing.MaxWaiters, Waiters: &s.state(p).waiters,
		Position: s.opts.Stamps.Position(), Owner: j,
	}
}

// noted carries out opNote.
func (s *Service) noted(n note, policy string) {
	switch n {
	case noteModeUnusable, noteResponseUnseen:
		s.opts.Metrics.ModeUnusable()
	case noteHoldCapped:
		s.opts.Metrics.HoldCapped()
	default:
	}
	s.once.log(s.opts.Logger, n, policy)
}

// onceNotes logs each kind of note once per process: they come with every
// request or never.
type onceNotes struct{ done [numNotes]sync.Once }

func (o *onceNotes) log(l *slog.Logger, n note, policy string) {
	o.done[n].Do(func() {
		switch n {
		case noteModeUnusable:
			l.Warn("Envoy's ext_proc processing mode leaves no room for a cache: requests pass by",
				"remedy", "set request and response bodies to NONE and allow_mode_override to true", "policy", policy)
		case noteHoldCapped:
			l.Warn("Envoy's message timeout is shorter than coalescing.maxWait: holds end 200 ms before it",
				"remedy", "raise max_message_timeout and --envoy-max-message-timeout", "policy", policy)
		case noteResponseUnseen:
			l.Warn("Envoy did not show weir a response: while that is so requests pass by and nothing is stored",
				"remedy", "set response_header_mode to SEND and allow_mode_override to true", "policy", policy)
		case noteSoftTimeoutInactive:
			l.Warn("stale.softTimeout is inactive: no detached refill is possible",
				"remedy", "set --refill-address", "policy", policy)
		case noteSilence:
			l.Warn("The rest or the end of a response without Content-Length did not come: it is not stored from there",
				"remedy", "put filters that add trailers to responses, such as the decompressor, before ext_proc",
				"policy", policy)
		}
	})
}
