package feedclient

import (
	"sync"
	"time"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// maxListed bounds the refused resources that a Status lists.
const maxListed = 100

// state is what this process runs and refuses, and who is to be told of it.
type state struct {
	mu        sync.Mutex
	running   map[string]string
	rejected  map[string]feed.Rejection
	reporters map[*pending]struct{}
	status    Status
}

// Status is what is known of the feed at one moment.
type Status struct {
	// Address is the replica of the controller that is subscribed to; empty: none.
	Address string
	// ConnectedAt is when that began, UpdatedAt when a set was last made of what came.
	ConnectedAt, UpdatedAt time.Time
	// Synced: a set was complete once.
	Synced bool
	// Updates counts the sets, Failures the streams that ended otherwise than by us.
	Updates, Failures uint64
	LastError         string // of the subscription
	// Resources are those in force as they came, Rejected the others.
	Resources, Rejected int
	Errors              []Rejected // of the rejected, at most 100
	// Reporting is the number of the controller's replicas that hear what we run.
	Reporting int
}

// Rejected is a resource that is not in force as it came.
type Rejected struct {
	Name, Error string
}

// pending is what one replica of the controller has yet to be told. The names are
// guarded by state.mu.
type pending struct {
	names   map[string]struct{}
	refused map[string]struct{} // that it was told are rejected
	wake    chan struct{}       // has a value when there are names
}

func newState() *state {
	return &state{
		running: map[string]string{}, rejected: map[string]feed.Rejection{}, reporters: map[*pending]struct{}{},
	}
}

// note takes in where a resource stands: it runs in a version, or was refused in it.
func (s *state) note(name, version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		text := err.Error()
		s.rejected[name] = feed.Rejection{Version: version, Error: text[:min(len(text), feed.MaxErrorBytes)]}
		delete(s.running, name)
	case version == "":
		delete(s.rejected, name)
		delete(s.running, name)
	case s.running[name] == version: // it is still so, after another resource changed
		return
	default:
		delete(s.rejected, name)
		s.running[name] = version
	}
	for p := range s.reporters {
		p.names[name] = struct{}{}
		p.signal()
	}
}

func (p *pending) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// join adds a replica of the controller that is to be told of everything.
func (s *state) join() *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &pending{
		names: make(map[string]struct{}, len(s.running)), refused: map[string]struct{}{}, wake: make(chan struct{}, 1),
	}
	for name := range s.running {
		p.names[name] = struct{}{}
	}
	for name := range s.rejected {
		p.names[name] = struct{}{}
	}
	s.reporters[p] = struct{}{}
	p.signal()
	return p
}

func (s *state) leave(p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reporters, p)
}

// take returns the next of what is to be told, and whether that is all.
func (s *state) take(p *pending) (report feed.Report, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	report.Running, report.Rejected = map[string]string{}, map[string]feed.Rejection{}
	for name := range p.names {
		if len(report.Running) >= feed.MaxReported {
			break
		}
		delete(p.names, name)
		report.Running[name] = s.running[name]
		rejected, is := s.rejected[name]
		if _, was := p.refused[name]; is || was {
			report.Rejected[name] = rejected // the zero value: no longer
		}
		if delete(p.refused, name); is {
			p.refused[name] = struct{}{}
		}
	}
	return report, len(p.names) == 0
}

// update changes the status.
func (s *state) update(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status)
}

// Status returns what is known of the feed.
func (c *Client) Status() Status {
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.status
	out.Resources, out.Rejected, out.Reporting = len(s.running), len(s.rejected), len(s.reporters)
	for name, r := range s.rejected {
		if len(out.Errors) == maxListed {
			break
		}
		out.Errors = append(out.Errors, Rejected{name, r.Error})
	}
	return out
}
