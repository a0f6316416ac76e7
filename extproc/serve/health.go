package serve

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// The named conditions of readiness.
const (
	checkPolicies = "policies" // loaded
	checkWarmUp   = "warm-up"  // over
	checkServing  = "serving"  // not draining
)

// errDraining says that the process goes out of service.
var errDraining = errors.New("draining")

// readiness is what /readyz answers. A store that is not reachable is no part
// of it: a cache that fails open stays in its place. Safe for concurrent use.
type readiness struct {
	mu     sync.Mutex
	names  []string
	checks map[string]error // nil: fulfilled
}

// newReadiness returns a readiness in which no condition is fulfilled.
func newReadiness(names ...string) *readiness {
	r := &readiness{names: names, checks: make(map[string]error, len(names))}
	for _, name := range names {
		r.checks[name] = errors.New("not yet")
	}
	return r
}

// set says whether the condition is fulfilled: nil is.
func (r *readiness) set(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks[name] = err
}

// state is starting, ready or draining.
func (r *readiness) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.checks[checkServing], errDraining) {
		return "draining"
	}
	for _, err := range r.checks {
		if err != nil {
			return "starting"
		}
	}
	return "ready"
}

// report returns whether every condition is fulfilled, and a line for each.
func (r *readiness) report() (ready bool, lines string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	ready = true
	for _, name := range r.names {
		if err := r.checks[name]; err != nil {
			ready = false
			fmt.Fprintf(&b, "[-] %s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&b, "[+] %s\n", name)
	}
	return ready, b.String()
}

// healthHandler answers /healthz (the process runs) and /readyz (send traffic
// here). A failed check and ?verbose name the conditions.
func healthHandler(r *readiness) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, req *http.Request) {
		ready, lines := r.report()
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, lines)
			return
		}
		if req.URL.Query().Has("verbose") {
			fmt.Fprint(w, lines)
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
