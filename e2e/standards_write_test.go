package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/e2e/harness"
)

// site is an origin whose pages all have two variants and live long; writes are answered as the test says.
type site struct {
	*edge
	pages []string // as stored: "other.test/b" has a host of its own
}

// page is a GET of one variant of a page.
func (s *site) page(name, language string) *http.Request {
	host, path, _ := strings.Cut(name, "/")
	if host == "" {
		host = s.envoy.Address()
	}
	return s.get("/"+path, "Host", host, "Accept-Language", language)
}

// fill stores every page, and those that are stored already stay.
func (s *site) fill() {
	s.t.Helper()
	for _, page := range s.pages {
		for _, language := range []string{"de", "en"} {
			s.do(s.page(page, language))
		}
	}
}

// stored are the pages of which both variants are hits, and those of which one is.
func (s *site) stored() (both, one []string) {
	s.t.Helper()
	for _, page := range s.pages {
		hits := 0
		for _, language := range []string{"de", "en"} {
			r := s.page(page, language)
			r.Header.Set("Cache-Control", "only-if-cached") // asks without storing
			if resp := s.do(r); resp.Status == http.StatusOK {
				hits++
			}
		}
		switch hits {
		case 2:
			both = append(both, page)
		case 1:
			one = append(one, page)
		}
	}
	return both, one
}

// TestWritesInvalidate: a write that succeeded drops every variant of its URI, and of the URIs of the same origin that
// the answer names; nothing else drops anything.
func TestWritesInvalidate(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{
		Spec:  "requestDirectives: Honor",
		Envoy: harness.EnvoyOptions{AllowCustomMethods: true},
	})
	defer e.quiet() // OPTIONS does not pass weir
	s := &site{edge: e, pages: []string{"/a", "/b", "/c", "/c?q=1", "other.test/b"}}
	for i, c := range []struct {
		method, target string
		status         int
		fields         []string
		dropped        []string
	}{
		{"POST", "/a", 200, nil, []string{"/a"}},
		{"POST", "/a", 204, nil, []string{"/a"}},
		{"POST", "/a", 303, []string{"Location", "/b"}, []string{"/a", "/b"}},
		{"POST", "/b", 500, nil, nil},
		{"POST", "/b", 404, []string{"Location", "/a"}, nil},
		{"PUT", "/c", 201, []string{"Location", "/a", "Content-Location", "http://other.test/b"}, []string{"/a", "/c"}},
		{"PUT", "/c", 201, []string{"Content-Location", "c?q=1"}, []string{"/c", "/c?q=1"}},
		{"DELETE", "/c?q=1", 200, nil, []string{"/c?q=1"}},
		{"PATCH", "other.test/b", 200, nil, []string{"other.test/b"}},
		{"M-SEARCH", "/b", 200, nil, []string{"/b"}},
		{"GET", "/a", 200, nil, nil},
		{"HEAD", "/a", 200, nil, nil},
		{"OPTIONS", "/a", 200, nil, nil},
	} {
		e.serve("/", func(_ int, r *http.Request) harness.Reply {
			reply := harness.Reply{Body: []byte(r.Header.Get("Accept-Language")),
				Header: harness.Fields("Cache-Control", "max-age=1000", "Vary", "Accept-Language")}
			if r.Method == c.method && r.Method != http.MethodGet {
				reply.Status, reply.Header = c.status, harness.Fields(c.fields...)
			}
			return reply
		})
		what := fmt.Sprintf("%d: %s %s", i, c.method, c.target)
		s.fill()
		if both, _ := s.stored(); len(both) != len(s.pages) {
			t.Fatalf("%s: stored before: %q", what, both)
		}
		write := s.page(c.target, "de")
		write.Method = c.method
		if resp := e.do(write); resp.Status != c.status {
			t.Errorf("%s: status %d, want %d", what, resp.Status, c.status)
		}
		var want []string
		for _, page := range s.pages {
			if !strings.Contains("|"+strings.Join(c.dropped, "|")+"|", "|"+page+"|") {
				want = append(want, page)
			}
		}
		both, one := s.stored()
		if diff := cmp.Diff(want, both); diff != "" || one != nil {
			t.Errorf("%s: stored afterwards (-want +got), half of %q:\n%s", what, one, diff)
		}
	}
}

// TestWriteDuringAFetch: what was fetched before a write is not stored after it, and who comes after the write does not
// wait for it.
func TestWriteDuringAFetch(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill})
		defer e.settles()
		gate := make(chan struct{})
		e.serve("/a", func(n int, r *http.Request) harness.Reply {
			switch {
			case r.Method == http.MethodPost:
				return harness.Reply{}
			case n == 1:
				return version("old", false, gate)(n, r)
			default:
				return version("new", false, nil)(n, r)
			}
		})
		early := e.burst(1, e.get("/a"))
		e.answering("/a", 1)
		write := e.get("/a")
		write.Method = http.MethodPost
		e.do(write)
		if got := e.do(e.get("/a")); string(got.Body) != "new" {
			t.Errorf("after the write: %q", got.Body)
		}
		close(gate)
		e.wantBody(early(), []byte("old"))
		for range 2 {
			if got := e.do(e.get("/a")); string(got.Body) != "new" {
				t.Errorf("after the old fetch: %q", got.Body)
			}
		}
		e.wantCount("/a", 3)
	})
}

// TestCacheStatusIsAList: weir's member comes last, once, and those of caches nearer the origin stay before it as they
// were (RFC 9211 §2).
func TestCacheStatusIsAList(t *testing.T) {
	t.Parallel()
	const upstream = "OriginCache; hit; ttl=5"
	eachWay(t, func(t *testing.T, noRefill bool) {
		e := startEdge(t, edgeOptions{NoRefill: noRefill, Spec: "jitterPercent: 0\n"})
		defer e.settles()
		page := func(cacheControl, age string, gate <-chan struct{}) harness.Reply {
			return harness.Reply{Gate: gate, ETag: `"v1"`, Body: []byte("page"), Header: harness.Fields(
				"Cache-Control", cacheControl, "Age", age, "Cache-Status", upstream)}
		}
		want := func(what, path, weir string) {
			t.Helper()
			e.wantMember(what, e.do(e.get(path)).Header, upstream, weir)
		}
		e.serve("/page", harness.Always(page("max-age=60", "0", nil)))
		want("miss", "/page", "fwd=uri-miss; fwd-status=200; stored")
		for range 3 {
			want("hit", "/page", "hit; ttl")
		}

		e.serve("/stale", harness.Always(page("max-age=90, stale-while-revalidate=600", "100", nil)))
		want("miss", "/stale", "fwd=uri-miss; fwd-status=200; stored")
		stale := "hit; ttl=-"
		if noRefill {
			stale = "fwd=stale; fwd-status=304; stored" // the request itself carries the refresh
		}
		for range 3 {
			want("stale", "/stale", stale)
		}

		e.serve("/validated", harness.Always(page("max-age=90, must-revalidate", "100", nil)))
		want("miss", "/validated", "fwd=uri-miss; fwd-status=200; stored")
		for range 3 {
			want("validated", "/validated", "fwd=stale; fwd-status=304; stored")
		}

		gate := make(chan struct{})
		e.serve("/coalesced", harness.Always(page("max-age=60", "0", gate)))
		answers := e.burst(2, e.get("/coalesced"))
		e.waiting(1)
		close(gate)
		collapsed := 0
		for _, r := range answers() {
			if strings.HasSuffix(r.Header.Get("Cache-Status"), "weir; fwd=uri-miss; collapsed") {
				collapsed++
			} else {
				e.wantMember("leader", r.Header, upstream, "fwd=uri-miss; fwd-status=200; stored")
			}
		}
		if collapsed != 1 {
			t.Errorf("%d of 2 answers say collapsed, want 1", collapsed)
		}
	})
}

// wantMember checks that Cache-Status is a structured field of two members: the upstream's as it came, and weir's,
// which begins with params.
func (e *edge) wantMember(what string, h http.Header, upstream, params string) {
	e.t.Helper()
	lines := h.Values("Cache-Status")
	list, err := httpsfv.UnmarshalList(lines)
	all := strings.Join(lines, ", ")
	if err != nil || len(list) != 2 || !strings.HasPrefix(all, upstream+", weir; "+params) {
		e.t.Errorf("%s: Cache-Status %q (%v), want %s, weir; %s…", what, lines, err, upstream, params)
	}
}

// TestAgeWhileTheBodyArrives: who joins an answer that is still arriving is told its age (RFC 9111 §5.1).
func TestAgeWhileTheBodyArrives(t *testing.T) {
	t.Parallel()
	e := startEdge(t, edgeOptions{})
	defer e.settles()
	gate := make(chan struct{})
	e.serve("/large", harness.Always(harness.Reply{
		Size: 10_000, PauseAfter: 5_000, BodyGate: gate,
		Header: harness.Fields("Cache-Control", "max-age=600", "Age", "30"),
	}))
	leader := e.begin(e.get("/large"), 5_000)
	tail := e.begin(e.get("/large"), 5_000)
	if age := tail.resp.Header.Get("Age"); age != "30" && age != "31" && age != "32" {
		t.Errorf("Age %q, want about 30", age)
	}
	close(gate)
	for _, a := range []*answer{leader, tail} {
		if body, err := a.rest(); err != nil || !bytes.Equal(body, harness.GeneratedBody(10_000)) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	}
	e.wantCount("/large", 1)
}
