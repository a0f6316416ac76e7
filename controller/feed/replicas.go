package feed

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

const (
	// maxReplicas bounds the replicas that are connected.
	maxReplicas = 1000
	// maxNames bounds the resources that one replica says it runs or rejects.
	maxNames = 200_000
	// maxQueued bounds the commands that wait to be sent to one replica.
	maxQueued = 16
)

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

// replica is what is known of a connected replica. It is guarded by Server.mu, but
// for its channels.
type replica struct {
	Replica
	started  int64
	running  map[string]string
	rejected map[string]feed.Rejection
	// behind are the resources that it does not run in the version that is current,
	// and those it runs that are gone.
	behind  map[string]struct{}
	traffic map[string]feed.Traffic // the last it said

	commands chan feed.Command
	answers  map[string]chan<- feed.Result // by ID; each takes one without blocking
	replaced chan struct{}                 // closed when a stream of the same name took over
}

var (
	errTooManyReplicas = errors.New("too many replicas are connected")
	errTooManyNames    = errors.New("a replica reports too many resources")
)

// join notes a replica that connected. One of the same name is gone then, whether
// or not its connection has noticed.
func (s *Server) join(first *feed.Report, now time.Time) (*replica, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, again := s.replicas[first.Replica]
	if !again && len(s.replicas) >= maxReplicas {
		return nil, errTooManyReplicas
	}
	r := &replica{
		Replica: Replica{Name: first.Replica, Version: first.Version, Since: now}, started: first.Started,
		running: map[string]string{}, rejected: map[string]feed.Rejection{}, behind: map[string]struct{}{},
		commands: make(chan feed.Command, maxQueued), answers: map[string]chan<- feed.Result{},
		replaced: make(chan struct{}),
	}
	if again {
		s.retire(old)
		close(old.replaced)
	}
	r.traffic = s.retired.back(r.Name, r.started)
	for name, c := range s.subscribers.history.byName {
		if c.wire != nil {
			r.behind[name] = struct{}{}
		}
	}
	s.replicas[r.Name] = r
	s.notify()
	return r, nil
}

// leave forgets a replica whose stream ended.
func (s *Server) leave(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, answer := range r.answers {
		answer <- feed.Result{ID: id, Error: "the connection ended"}
	}
	r.answers = nil
	if s.replicas[r.Name] != r {
		return // replaced
	}
	delete(s.replicas, r.Name)
	s.retire(r)
	s.notify()
}

func (s *Server) retire(r *replica) { s.retired.keep(r.Name, r.started, r.traffic) }

// report takes in what a replica says.
func (s *Server) report(r *replica, said *feed.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, version := range said.Running {
		if version == "" {
			delete(r.running, name)
		} else {
			r.running[name] = version
		}
		s.compare(r, name)
	}
	for name, refused := range said.Rejected {
		if refused.Error == "" {
			delete(r.rejected, name)
		} else {
			refused.Error = refused.Error[:min(len(refused.Error), feed.MaxErrorBytes)]
			r.rejected[name] = refused
		}
	}
	if len(r.running) > maxNames || len(r.rejected) > maxNames {
		return errTooManyNames
	}
	r.Synced = r.Synced || said.Synced
	s.count(r, said.Traffic)
	if said.Result != nil {
		if answer, ok := r.answers[said.Result.ID]; ok {
			delete(r.answers, said.Result.ID)
			answer <- *said.Result
		}
	}
	s.notify()
	return nil
}

// compare notes whether a replica runs a resource as it is now.
func (s *Server) compare(r *replica, name string) {
	if s.subscribers.history.version(name) == r.running[name] {
		delete(r.behind, name)
	} else {
		r.behind[name] = struct{}{}
	}
}

// isBehind compares all replicas after a resource changed.
func (s *Server) isBehind(name string) {
	for _, r := range s.replicas {
		s.compare(r, name)
	}
}

// Replicas returns the replicas that are connected, by name.
func (s *Server) Replicas() []Replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Replica, 0, len(s.replicas))
	for _, r := range s.replicas {
		shown := r.Replica
		shown.Behind, shown.Rejected = len(r.behind), len(r.rejected)
		out = append(out, shown)
	}
	slices.SortFunc(out, func(a, b Replica) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Runs reports whether a replica is connected, has said all that it runs, and runs
// every one of the resources in its current version. It takes a look-up for each.
func (s *Server) Runs(replica string, resources ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.replicas[replica]
	if !ok || !r.Synced {
		return false
	}
	return !slices.ContainsFunc(resources, func(name string) bool {
		_, behind := r.behind[name]
		return behind || s.subscribers.history.version(name) == ""
	})
}

// Running returns, by replica, the version in which each runs a resource. Replicas
// that do not run it are left out.
func (s *Server) Running(resource string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for _, r := range s.replicas {
		if version := r.running[resource]; version != "" {
			out[r.Name] = version
		}
	}
	return out
}

// Rejections returns, by replica, why each refused the version of a resource that
// is current.
func (s *Server) Rejections(resource string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, current := map[string]string{}, s.subscribers.history.version(resource)
	for _, r := range s.replicas {
		if refused, ok := r.rejected[resource]; ok && refused.Version == current {
			out[r.Name] = refused.Error
		}
	}
	return out
}

// Traffic returns, by policy (namespace/name), what all replicas counted since this
// Server began, and before that since they started. It never goes back for the same
// Server; another replica of the controller may have seen less.
func (s *Server) Traffic() map[string]feed.Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.traffic)
}
