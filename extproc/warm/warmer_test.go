package warm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// list is n URLs.
func list(n int) []Request {
	requests := make([]Request, n)
	for i := range requests {
		requests[i] = Request{Scheme: "http", Authority: "a", Path: fmt.Sprintf("/%d", i)}
	}
	return requests
}

// running starts a Warmer that ends with the test.
func running(t *testing.T, o Options) *Warmer {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	w := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return w
}

func (w *Warmer) add(t *testing.T, requests []Request) <-chan struct{} {
	t.Helper()
	_, done, err := w.Add("test", requests, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestJob: each result under its count, the reasons with the URLs.
func TestJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outcomes := map[string]Outcome{
			"/0": {Result: Stored}, "/1": {Result: Skipped}, "/2": {Result: Uncacheable, Reason: "private"},
			"/3": {Result: Failed, Reason: "status 500"}, "/4": {Result: Stored},
		}
		w := running(t, Options{Load: func(_ context.Context, r *Request) Outcome { return outcomes[r.Path] }})
		queued := time.Now()
		<-w.add(t, list(5))
		want := []Job{{ID: "1", Source: "test", State: Done, Total: 5, Loaded: 5, Stored: 2, Skipped: 1, Uncacheable: 1,
			Failed: 1, Faults: []Fault{{"http://a/2", "private"}, {"http://a/3", "status 500"}}, QueuedAt: queued,
			StartedAt: queued, EndedAt: time.Now()}}
		less := func(a, b Fault) bool { return a.URL < b.URL }
		if diff := cmp.Diff(want, w.Jobs(), cmpopts.SortSlices(less)); diff != "" {
			t.Errorf("jobs (-want +got):\n%s", diff)
		}
	})
}

// TestPaceAndConcurrency: no more a second, and at a time, than asked for.
func TestPaceAndConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		w := running(t, Options{Rate: 10, Concurrency: 3, Load: func(context.Context, *Request) Outcome {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(250 * time.Millisecond)
			now.Add(-1)
			return Outcome{}
		}})
		start := time.Now()
		<-w.add(t, list(100))
		if took := time.Since(start); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("100 URLs at 10 a second took %v", took)
		}
		if most.Load() != 3 {
			t.Errorf("%d at a time, want 3", most.Load())
		}
		slow := running(t, Options{Rate: 1000, Concurrency: 2, Load: func(context.Context, *Request) Outcome {
			time.Sleep(time.Second)
			return Outcome{}
		}})
		start = time.Now()
		<-slow.add(t, list(10))
		if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("10 URLs of a second each, two at a time, took %v", took)
		}
	})
}

// TestRetry: what may go better is tried again for as long as the job is young.
func TestRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		up, tries := start.Add(7*time.Second), atomic.Int64{}
		w := running(t, Options{Patience: 10 * time.Second, Load: func(context.Context, *Request) Outcome {
			tries.Add(1)
			if time.Now().Before(up) {
				return Outcome{Result: Failed, Reason: "not yet", Retry: true}
			}
			return Outcome{Result: Stored}
		}})
		<-w.add(t, list(3))
		if j := w.Jobs()[0]; j.Stored != 3 || time.Since(start) > 9*time.Second || tries.Load() > 30 {
			t.Errorf("%d stored after %v and %d tries", j.Stored, time.Since(start), tries.Load())
		}
		tries.Store(0)
		never := running(t, Options{Load: func(context.Context, *Request) Outcome {
			tries.Add(1)
			return Outcome{Result: Failed, Reason: "for good"}
		}})
		<-never.add(t, list(3))
		if tries.Load() != 3 {
			t.Errorf("%d tries of 3 URLs that fail for good", tries.Load())
		}
		up = time.Now().Add(time.Hour)
		start = time.Now()
		<-w.add(t, list(100))
		j := w.Jobs()[1]
		if took := time.Since(start); j.Failed != 100 || len(j.Faults) != MaxFaults || took > 13*time.Second {
			t.Errorf("%d failed, %d told, after %v", j.Failed, len(j.Faults), took)
		}
	})
}

// TestJobsInTurn: one list after the other; what the end of the process leaves is
// canceled.
func TestJobsInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{Rate: 1000, Concurrency: 1, Log: slog.New(slog.DiscardHandler),
			Load: func(ctx context.Context, _ *Request) Outcome {
				sleep(ctx, time.Second)
				return Outcome{}
			}})
		ctx, cancel := context.WithCancel(t.Context())
		first, second := w.add(t, list(2)), w.add(t, list(2))
		go w.Run(ctx)
		<-first
		time.Sleep(1500 * time.Millisecond)
		if jobs := w.Jobs(); jobs[0].State != Done || jobs[1].State != Running || jobs[1].Loaded != 1 {
			t.Errorf("jobs %+v", jobs)
		}
		third := w.add(t, list(2))
		cancel()
		<-second
		<-third
		if jobs := w.Jobs(); jobs[1].State != Canceled || jobs[2].State != Canceled || jobs[2].Loaded != 0 {
			t.Errorf("jobs %+v", jobs)
		}
		synctest.Wait()
	})
}

func TestWarmerBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{Load: func(context.Context, *Request) Outcome { return Outcome{} }})
		for range maxWaiting {
			w.add(t, list(1))
		}
		if _, _, err := w.Add("test", list(1), time.Now()); !errors.Is(err, ErrBusy) {
			t.Errorf("one job too many: %v", err)
		}
		full := New(Options{})
		full.add(t, make([]Request, MaxRequests))
		full.add(t, make([]Request, MaxRequests))
		if _, _, err := full.Add("test", list(1), time.Now()); !errors.Is(err, ErrBusy) {
			t.Errorf("one URL too many: %v", err)
		}
		r := running(t, Options{Rate: 1e6, Load: func(context.Context, *Request) Outcome { return Outcome{} }})
		for i := range 3 * maxJobs {
			<-r.add(t, list(1))
			if jobs := r.Jobs(); len(jobs) != min(i+1, maxJobs) || jobs[len(jobs)-1].ID != fmt.Sprint(i+1) {
				t.Fatalf("%d jobs after %d", len(jobs), i+1)
			}
		}
	})
}
