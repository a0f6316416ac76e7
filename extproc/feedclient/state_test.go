package feedclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// told is all that a reporter is told, in how many messages.
func (s *state) told(p *pending) (feed.Report, int) {
	sum, messages := feed.Report{Running: map[string]string{}, Rejected: map[string]feed.Rejection{}}, 0
	for {
		r, all := s.take(p)
		messages++
		maps.Copy(sum.Running, r.Running)
		maps.Copy(sum.Rejected, r.Rejected)
		if all {
			return sum, messages
		}
	}
}

// TestReportersAreToldOnce: one that joins hears all, then each what changed, whatever the others were told.
func TestReportersAreToldOnce(t *testing.T) {
	t.Parallel()
	s := newState()
	s.note("a", "v1", nil)
	s.note("b", "v1", errors.New("bad"))
	none := feed.Rejection{}
	bad := feed.Rejection{Version: "v1", Error: "bad"}
	p := s.join()
	<-p.wake
	want := func(p *pending, running map[string]string, rejected map[string]feed.Rejection) {
		t.Helper()
		got, _ := s.told(p)
		if diff := cmp.Diff(feed.Report{Running: running, Rejected: rejected}, got); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	}
	want(p, map[string]string{"a": "v1", "b": ""}, map[string]feed.Rejection{"b": bad})
	want(p, map[string]string{}, map[string]feed.Rejection{})

	s.note("a", "v1", nil) // it is still so
	select {
	case <-p.wake:
		t.Error("woken for nothing")
	default:
	}
	s.note("a", "v2", nil)
	s.note("b", "v2", nil)
	s.note("a", "v3", errors.New("bad"))
	q := s.join()
	<-p.wake
	want(p, map[string]string{"a": "", "b": "v2"}, map[string]feed.Rejection{"a": {Version: "v3", Error: "bad"}, "b": none})
	want(q, map[string]string{"a": "", "b": "v2"}, map[string]feed.Rejection{"a": {Version: "v3", Error: "bad"}})
	s.leave(q)
	s.note("b", "", nil)
	want(p, map[string]string{"b": ""}, map[string]feed.Rejection{})
	want(q, map[string]string{}, map[string]feed.Rejection{})
}

func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	s := newState()
	for i := range 2*feed.MaxReported + 1 {
		s.note(fmt.Sprint(i), "v", nil)
	}
	got, messages := s.told(s.join())
	if messages != 3 || len(got.Running) != 2*feed.MaxReported+1 {
		t.Errorf("%d in %d messages", len(got.Running), messages)
	}
}

// TestBackoff: waits grow, are never longer than their bound, and end with the context.
func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b backoff
		var longest time.Duration
		for i := range 200 {
			start := time.Now()
			if !b.wait(t.Context()) {
				t.Fatal("ended")
			}
			took := time.Since(start)
			if i == 0 && took > backoffBase+time.Millisecond || took > backoffMax+time.Millisecond {
				t.Errorf("attempt %d waits %s", i, took)
			}
			longest = max(longest, took)
		}
		if longest < backoffMax/2 {
			t.Errorf("the longest wait was %s", longest)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if b.wait(ctx) {
			t.Error("goes on after the end")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Address: "nowhere"}, {Address: "a:1", TLS: TLSFiles{CA: "/no/such/file"}},
		{Address: "a:1", TLS: TLSFiles{CA: "client.go"}}, {Address: "a:1", TLS: TLSFiles{Cert: "client.go", Key: "client.go"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
