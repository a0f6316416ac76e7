package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

const (
	// invalidateTimeout bounds an invalidation over all replicas, answerTimeout what
	// one replica takes before the next is asked to tell the fleet.
	invalidateTimeout = 30 * time.Second
	answerTimeout     = 10 * time.Second
	// maxAttempts bounds the replicas that are asked, one after the other, to tell the
	// fleet.
	maxAttempts = 3
)

// ErrNoReplica says that no replica of the data plane is connected.
var ErrNoReplica = errors.New("no replica of the data plane is connected")

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
	ctx, cancel := context.WithTimeout(ctx, invalidateTimeout)
	defer cancel()
	var failures []error
	results := map[string]feed.Result{}
	for range maxAttempts {
		name, ok := s.untold(results)
		if !ok {
			break
		}
		r := s.tell(ctx, name, i)
		results[name] = r
		switch {
		case r.Error != "":
			failures = append(failures, fmt.Errorf("%s: %s", name, r.Error))
			continue
		case r.Shared:
			return Outcome{
				Covered: r.Covered, Confirmed: r.Confirmed, Total: r.Total, Silent: r.Silent, Shared: true,
				Warnings: r.Warnings,
			}, nil
		}
		break
	}
	if len(results) == 0 {
		return Outcome{}, ErrNoReplica
	}
	s.tellRest(ctx, i, results)
	out := sum(results)
	if out.Confirmed == 0 {
		return out, fmt.Errorf("no replica has invalidated: %w", errors.Join(failures...))
	}
	return out, nil
}

// untold returns the first connected replica without a result.
func (s *Server) untold(results map[string]feed.Result) (string, bool) {
	for _, r := range s.Replicas() {
		if _, told := results[r.Name]; !told {
			return r.Name, true
		}
	}
	return "", false
}

// tellRest tells every connected replica that has no result yet, all at once.
func (s *Server) tellRest(ctx context.Context, i feed.Invalidate, results map[string]feed.Result) {
	type named struct {
		name string
		feed.Result
	}
	answers, waiting := make(chan named), 0
	for _, r := range s.Replicas() {
		if _, told := results[r.Name]; !told {
			waiting++
			go func() { answers <- named{r.Name, s.tell(ctx, r.Name, i)} }()
		}
	}
	for range waiting {
		a := <-answers
		results[a.name] = a.Result
	}
}

// sum is the outcome where each replica speaks for itself.
func sum(results map[string]feed.Result) Outcome {
	out := Outcome{Total: len(results)}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		if r.Error != "" {
			out.Silent = append(out.Silent, name)
			continue
		}
		out.Confirmed++
		out.Covered = cmp.Or(out.Covered, r.Covered)
		for _, w := range r.Warnings {
			if !slices.Contains(out.Warnings, w) {
				out.Warnings = append(out.Warnings, w)
			}
		}
	}
	return out
}

// tell sends the invalidation to one replica and waits for its word.
func (s *Server) tell(ctx context.Context, name string, i feed.Invalidate) feed.Result {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	id, answer, err := s.command(name, i)
	if err != nil {
		return feed.Result{Error: err.Error()}
	}
	select {
	case r := <-answer:
		return r
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if r, ok := s.replicas[name]; ok {
			delete(r.answers, id)
		}
		return feed.Result{Error: "no answer: " + context.Cause(ctx).Error()}
	}
}

// command queues the invalidation for one replica. The channel gets its result.
func (s *Server) command(name string, i feed.Invalidate) (string, <-chan feed.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.replicas[name]
	if !ok {
		return "", nil, errors.New("not connected any more")
	}
	s.commands++
	c := feed.Command{ID: strconv.FormatUint(s.commands, 10), Invalidate: &i}
	answer := make(chan feed.Result, 1)
	select {
	case r.commands <- c:
		r.answers[c.ID] = answer
		return c.ID, answer, nil
	default:
		return "", nil, errors.New("too many commands wait for it")
	}
}
