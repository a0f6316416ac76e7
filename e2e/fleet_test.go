package e2e_test

import (
	"testing"

	"github.com/weirproxy/weir/e2e/harness"
)

// TestFleet: three processes over one Redis, a real Envoy in front of each, are one cache.
func TestFleet(t *testing.T) {
	f := startFleet(t, 3)
	for _, test := range []struct {
		name string
		run  func(*fleet)
	}{
		{"cold key", (*fleet).coldKey},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.run(t, test.run)
		})
	}
}

// run runs a part of the test, as its own t.
func (f *fleet) run(t *testing.T, part func(*fleet)) {
	t.Helper()
	outer := f.t
	set := func(t *testing.T) {
		f.t = t
		for _, r := range f.replicas {
			r.t = t
		}
	}
	set(t)
	defer set(outer)
	part(f)
	f.settles()
}

// coldKey: 250 clients come to each process at the same moment. The origin sees one request, and answers when all
// wait.
func (f *fleet) coldKey() {
	const clients = 250
	gate := make(chan struct{})
	f.origin.Handle("/cold", harness.Always(harness.Reply{
		Gate: gate, Size: 10_000, Header: harness.Fields("Cache-Control", "max-age=60", "Content-Type", "text/plain"),
	}))
	answers := f.burst(clients, "/cold")
	f.waiting(len(f.replicas)*clients - 1)
	close(gate)
	f.replicas[0].wantBody(answers(), harness.GeneratedBody(10_000))
	f.replicas[0].wantCount("/cold", 1)
}
