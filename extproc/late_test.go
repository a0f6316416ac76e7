package extproc_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/extproc/extproctest"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// TestWhoComesAfterAnInvalidationGetsNothingFromBefore, although the fetch is under
// way, by whatever the content was named: what tags it has only the answer tells.
// Who came before gets that answer.
func TestWhoComesAfterAnInvalidationGetsNothingFromBefore(t *testing.T) {
	t.Parallel()
	const url = "http://shop.test/page"
	for _, by := range []fleet.Invalidation{
		{Kind: fleet.ByURL, Namespace: "shop", Value: url}, {Kind: fleet.ByTag, Namespace: "shop", Value: "red"},
		{Kind: fleet.ByHost, Value: "shop.test"}, {Kind: fleet.ByPolicy, Namespace: "shop", Value: "shop/catalog"},
		{Kind: fleet.ByNamespace, Namespace: "shop", Value: "shop"}, {Kind: fleet.ByAll},
	} {
		t.Run(by.Kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { lateRequest(t, by) })
		})
	}
}

func lateRequest(t *testing.T, by fleet.Invalidation) {
	t.Helper()
	var version atomic.Int64
	w := newWorld(t, "{tags: {responseHeader: Surrogate-Key}}",
		func(context.Context, *httpcache.Request) extproctest.Answer {
			body := fmt.Append(nil, "v", version.Load())
			time.Sleep(time.Second)
			return extproctest.Answer{Status: 200, Body: body, Header: httpcache.Fields{
				{Name: "cache-control", Value: "max-age=60"}, {Name: "content-type", Value: "text/plain"},
				{Name: "surrogate-key", Value: "red"},
			}}
		}, nil)
	early := []<-chan extproctest.Result{w.start("/page"), w.start("/page")}
	time.Sleep(300 * time.Millisecond)
	version.Add(1)
	if _, err := w.service.Invalidate(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	late, later := w.start("/page"), w.start("/page")
	old := 0
	for _, answer := range early {
		r := <-answer
		if r.Err != nil || r.Status != 200 {
			t.Errorf("who came before got %+v", r)
		}
		if string(r.Body) == "v0" && r.FirstByte == time.Second {
			old++
		}
	}
	if want := 2; old != want && by.Kind != fleet.ByTag || old == 0 { // a follower asks again: see session.judged
		t.Errorf("%d of those who came before got the answer that they waited for, want %d", old, want)
	}
	for _, r := range []extproctest.Result{<-late, <-later} {
		if string(r.Body) != "v1" {
			t.Errorf("who came after got %q after %v", r.Body, r.FirstByte)
		}
	}
	w.wantSeen(2, "together")
	if r := w.get("/page"); string(r.Body) != "v1" || r.FirstByte != 0 {
		t.Errorf("later: %q after %v", r.Body, r.FirstByte)
	}
}

// TestInvalidatedIsAMiss: what is gone is no other variant (RFC 9211 §2.2).
func TestInvalidatedIsAMiss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "{}", page(0, "cache-control", "max-age=60"), nil)
		w.get("/page")
		if _, err := w.service.Invalidate(t.Context(), fleet.Invalidation{Kind: fleet.ByAll}); err != nil {
			t.Fatal(err)
		}
		if got, want := w.get("/page").Header.Get("cache-status"), "weir; fwd=uri-miss; fwd-status=200; stored"; got != want {
			t.Errorf("Cache-Status %q, want %q", got, want)
		}
	})
}
