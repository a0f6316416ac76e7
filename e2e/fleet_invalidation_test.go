package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestFleetInvalidation: what was fetched before an invalidation is served by nobody once all have confirmed it,
// whoever fetched it, whoever invalidates, and whenever it arrives. From reference case 26.
func TestFleetInvalidation(t *testing.T) {
	f := startFleet(t)
	for _, part := range []struct {
		name string
		run  func(*fleet)
	}{
		{"receipt", (*fleet).receipt},
		{"in flight", (*fleet).inFlight},
		{"unsafe methods", (*fleet).unsafeMethods},
		{"a crowd of pages with one tag", (*fleet).crowd},
		{"during fills", (*fleet).duringFills},
	} {
		t.Run(part.name, func(t *testing.T) { f.run(t, part.run) })
	}
}

// receipt: the answer says how many have confirmed, and what cannot be known.
func (f *fleet) receipt() {
	a := f.replicas[0]
	f.serve("/receipt", versions())
	a.do(a.get("/receipt"))
	done := a.invalidates("Url", fleetURL("/receipt"))
	if !done.Certain || done.Confirmed != 3 || done.Replicas != 3 || done.Covers != "all 3 replicas" ||
		done.Matched != 1 || done.Position == 0 || done.TookSeconds <= 0 || len(done.Warnings) != 0 {
		f.t.Errorf("%+v, want 3 of 3", done)
	}
	unknown := a.invalidates("Host", "blog.example")
	if !unknown.Certain || unknown.Matched != 0 || !strings.Contains(strings.Join(unknown.Warnings, "\n"), "host") {
		f.t.Errorf("a host nobody asked for: %+v, want to be warned", unknown)
	}
}

// inFlight: an invalidation by another process comes while the old content is on its way.
func (f *fleet) inFlight() {
	old, fresh := make(chan struct{}), make(chan struct{})
	f.serve("/flight", versions(old, fresh))
	early := f.leads("/flight")
	if done := f.replicas[1].invalidates("Url", fleetURL("/flight")); !done.Certain {
		f.t.Fatalf("%+v", done)
	}
	var late []*answerTo
	for _, r := range f.replicas {
		late = append(late, r.ask("/flight"))
	}
	f.replicas[0].eventually("a fetch of its own is made for those who come later",
		func() bool { return f.origin.Count("/flight") >= 2 })
	close(old)
	early.wantsBody("v1") // it was asked for before
	close(fresh)
	for _, a := range late {
		a.wantsBody("v2")
	}
	for _, r := range f.replicas {
		r.wantsStored("/flight", "v2")
	}
	f.wantCount("/flight", 2)
}

// unsafeMethods: who has the answer to an unsafe request finds what it changed, wherever it asks.
func (f *fleet) unsafeMethods() {
	var content atomic.Int64
	f.serve("/cart", func(_ int, r *http.Request) harness.Reply {
		if r.Method == http.MethodPost {
			content.Add(1)
			return harness.Reply{Status: http.StatusNoContent}
		}
		return harness.Reply{
			Body: strconv.AppendInt(nil, content.Load(), 10), Header: harness.Fields("Cache-Control", "max-age=600"),
		}
	})
	for i := range 20 {
		for _, r := range f.replicas {
			r.wantsStored("/cart", strconv.Itoa(i))
		}
		writer := f.replicas[i%len(f.replicas)]
		if got := writer.do(writer.post("/cart")); got.Status != http.StatusNoContent {
			f.t.Fatalf("POST: %d", got.Status)
		}
	}
	for _, r := range f.replicas {
		r.wantsStored("/cart", "20")
	}
}

// crowd: many pages carry one tag. A soft invalidation has each served stale while it is refreshed once; a hard one
// costs at most one fetch a page.
func (f *fleet) crowd() {
	const pages = 150
	page := func(i int) string { return fmt.Sprintf("/crowd/%d", i) }
	for i := range pages {
		f.serve(page(i), func(n int, _ *http.Request) harness.Reply {
			return harness.Reply{
				Delay: 5 * time.Millisecond, Body: fmt.Appendf(nil, "v%d", n),
				Header: harness.Fields("Cache-Control", "max-age=600", "Surrogate-Key", "crowd"),
			}
		})
	}
	all := func() { // everybody asks for everything
		f.concurrently(func(r *replica) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}}
			defer client.CloseIdleConnections()
			for i := range pages {
				if _, err := fetch(client, r.get(page(i))); err != nil {
					f.t.Errorf("%s: %v", page(i), err)
				}
			}
		})
	}
	total := func() (n, most int) {
		for i := range pages {
			n, most = n+f.origin.Count(page(i)), max(most, f.origin.Count(page(i)))
		}
		return n, most
	}
	want := func(what string, each int) {
		f.t.Helper()
		if n, most := total(); n != each*pages || most != each {
			f.t.Errorf("%s: %d fetches for %d pages, at most %d for one; want %d each", what, n, pages, most, each)
		}
	}
	all()
	want("cold", 1)
	var done invalidation
	f.replicas[0].weir.AdminPost("/v1/invalidate",
		map[string]string{"by": "Tag", "value": "crowd", "namespace": "shop", "mode": "Soft"}, &done)
	if !done.Certain {
		f.t.Errorf("soft: %+v", done)
	}
	all()
	f.replicas[0].eventually("each page was refreshed", func() bool { n, _ := total(); return n >= 2*pages })
	for _, r := range f.replicas {
		r.quiet()
	}
	want("soft", 2)
	if done := f.replicas[1].invalidates("Tag", "crowd"); !done.Certain {
		f.t.Errorf("hard: %+v", done)
	}
	all()
	want("hard", 3)
}

// fetch sends a request and returns the body of a 200.
func fetch(client *http.Client, req *http.Request) (string, error) {
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var body strings.Builder
	if _, err := io.Copy(&body, resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", resp.StatusCode)
	}
	return body.String(), nil
}

// duringFills: writers change content and invalidate it, by all roads, through all processes, while clients ask and
// fills are under way, until there were so many of both. No client ever gets what was invalid when it asked.
func (f *fleet) duringFills() {
	want := int64(1000) // confirmed invalidations, and requests at the origin
	if full() {
		want = 10_000
	}
	c := &churn{fleet: f}
	c.run(func() bool { return c.writes.Load() >= want && c.fetches.Load() >= want })
}
