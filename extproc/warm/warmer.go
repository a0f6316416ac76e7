package warm

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// Defaults of Options.
const (
	DefaultRate        = 50 // URLs a second
	DefaultConcurrency = 8
	DefaultPatience    = 10 * time.Second
)

// Bounds of a Warmer.
const (
	maxWaiting         = 16 // jobs that wait or run
	maxWaitingRequests = 2 * MaxRequests
	maxJobs            = 32 // jobs that are remembered
)

// The waits between tries of a URL that may go better soon.
const (
	firstRetry = 100 * time.Millisecond
	maxRetry   = 2 * time.Second
)

// ErrBusy says that too much waits to be loaded already.
var ErrBusy = errors.New("warm: too many URLs wait to be loaded; try again later")

// Options configure a Warmer. Only Load is needed.
type Options struct {
	// Load loads one URL. It is called by several goroutines.
	Load func(ctx context.Context, r *Request) Outcome
	// Rate bounds the URLs per second, Concurrency how many are loaded at a time,
	// over all jobs.
	Rate        float64
	Concurrency int
	// Patience is how long after the start of a job its URLs are tried again if
	// that may help: Envoy or the origin may come up later than weir.
	Patience time.Duration
	Log      *slog.Logger
}

// Warmer loads lists of URLs, one list after the other. It is safe for concurrent
// use; Run must run for anything to be loaded.
type Warmer struct {
	opts Options
	pace *rate.Limiter
	wake chan struct{} // holds a token when there may be a job to begin

	mu     sync.Mutex
	lastID int
	jobs   []*job // oldest first: those that ended, one that runs, those that wait
}

// New returns a Warmer.
func New(o Options) *Warmer {
	if o.Rate <= 0 {
		o.Rate = DefaultRate
	}
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	return &Warmer{
		opts: o, pace: rate.NewLimiter(rate.Limit(o.Rate), max(int(o.Rate/10), 1)), wake: make(chan struct{}, 1),
	}
}

// Add queues a list and returns the job's ID and a channel that is closed when it
// has ended. source says in words who asked.
func (w *Warmer) Add(source string, requests []Request, now time.Time) (id string, done <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting, urls := 0, len(requests)
	for _, j := range w.jobs {
		if s := j.snapshot(); !s.Ended() {
			waiting++
			urls += s.Total - s.Loaded
		}
	}
	if waiting >= maxWaiting || urls > maxWaitingRequests {
		return "", nil, ErrBusy
	}
	w.lastID++
	j := &job{requests: requests, done: make(chan struct{}), now: Job{
		ID: strconv.Itoa(w.lastID), Source: source, State: Waiting, Total: len(requests), QueuedAt: now,
	}}
	w.jobs = append(w.jobs, j)
	w.jobs = w.jobs[max(len(w.jobs)-maxJobs, 0):] // ended ones: fewer wait
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return j.now.ID, j.done, nil
}

// Jobs returns the last jobs, oldest first.
func (w *Warmer) Jobs() []Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs := make([]Job, 0, len(w.jobs))
	for _, j := range w.jobs {
		jobs = append(jobs, j.snapshot())
	}
	return jobs
}

// Run loads what is queued until ctx ends; what is left then is canceled.
func (w *Warmer) Run(ctx context.Context) {
	for {
		for j := w.next(); j != nil; j = w.next() {
			w.run(ctx, j)
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
	}
}

// next returns the first job that waits.
func (w *Warmer) next() *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.jobs, func(j *job) bool { s := j.snapshot(); return s.State == Waiting })
	if i < 0 {
		return nil
	}
	return w.jobs[i]
}

func (w *Warmer) run(ctx context.Context, j *job) {
	j.begins(time.Now())
	end := time.Now().Add(w.opts.Patience)
	var g errgroup.Group
	g.SetLimit(w.opts.Concurrency)
	for i := range j.requests {
		r := &j.requests[i]
		if w.pace.Wait(ctx) != nil {
			break
		}
		g.Go(func() error {
			w.load(ctx, j, r, end)
			return nil
		})
	}
	_ = g.Wait() // no error comes of it
	j.ends(time.Now())
	s := j.snapshot()
	w.opts.Log.Info("Warmed up", "job", s.ID, "source", s.Source, "state", s.State, "urls", s.Total, "stored", s.Stored,
		"skipped", s.Skipped, "uncacheable", s.Uncacheable, "failed", s.Failed, "took", s.EndedAt.Sub(s.StartedAt))
}

// load loads one URL, again if that may help, until end.
func (w *Warmer) load(ctx context.Context, j *job, r *Request, end time.Time) {
	for wait := firstRetry; ; wait = min(2*wait, maxRetry) {
		o := w.opts.Load(ctx, r)
		if ctx.Err() != nil {
			return
		}
		if o.Result != Failed || !o.Retry || time.Now().Add(wait).After(end) {
			j.note(r, o)
			return
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// sleep waits for d; it is false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
