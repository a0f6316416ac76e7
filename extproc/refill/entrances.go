package refill

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirproxy/weir/cachepolicy"
)

// MaxEntrances bounds the entrances through which fetches come in at a time. What
// falls under another has no detached fetch then.
const MaxEntrances = 256

// Entrances are Fetchers by the entrance through which their fetches come into Envoy,
// as a controller names them: each has connections of its own, and all of them share
// the bound on fetches. They are safe for concurrent use.
type Entrances struct {
	opts  Options
	slots chan struct{}

	byEntrance sync.Map // *cachepolicy.Entrance → *Fetcher
	size       atomic.Int64
	mu         sync.Mutex // of what changes byEntrance
}

// NewEntrances returns Entrances whose Fetchers are made with these options; Addr and
// TLS are the entrance's.
func NewEntrances(o Options) *Entrances {
	o.setDefaults()
	return &Entrances{opts: o, slots: make(chan struct{}, o.MaxConcurrent)}
}

// For returns what makes a fetch for requests with this scheme and authority through
// the first of the entrances that serves them; nil: none does.
func (e *Entrances) For(list []*cachepolicy.Entrance, scheme, authority string) *Fetcher {
	for _, entrance := range list {
		if !entrance.Serves(scheme, authority) {
			continue
		}
		if f, ok := e.byEntrance.Load(entrance); ok {
			return f.(*Fetcher)
		}
		return e.open(entrance)
	}
	return nil
}

func (e *Entrances) open(entrance *cachepolicy.Entrance) *Fetcher {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok := e.byEntrance.Load(entrance); ok {
		return f.(*Fetcher)
	}
	if e.size.Load() >= MaxEntrances {
		return nil
	}
	o := e.opts
	o.Addr = entrance.Address
	if entrance.Scheme == "https" {
		// No server name: it is the host of each request, as a client's would be.
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if entrance.CA != "" {
			o.TLS.RootCAs = x509.NewCertPool()
			o.TLS.RootCAs.AppendCertsFromPEM([]byte(entrance.CA)) // the Table saw it
		}
	}
	f, err := New(o)
	if err != nil {
		return nil // the Table saw the address
	}
	f.slots = e.slots
	e.byEntrance.Store(entrance, f)
	e.size.Add(1)
	return f
}

// Keep closes the connections through all entrances but these. Fetches that run end
// by themselves.
func (e *Entrances) Keep(list []*cachepolicy.Entrance) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for entrance, f := range e.byEntrance.Range {
		if !slices.Contains(list, entrance.(*cachepolicy.Entrance)) {
			e.byEntrance.Delete(entrance)
			e.size.Add(-1)
			f.(*Fetcher).Close()
		}
	}
}

// Len returns the number of entrances through which fetches came in.
func (e *Entrances) Len() int { return int(e.size.Load()) }
