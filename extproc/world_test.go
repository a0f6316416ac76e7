package extproc_test

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/extproc"
	"github.com/weirproxy/weir/extproc/extproctest"
	"github.com/weirproxy/weir/extproc/fleet"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/metrics"
	"github.com/weirproxy/weir/extproc/store/memory"
)

// world is the real service with Envoy played in memory, before an origin that is
// a script. It lives in a synctest bubble.
type world struct {
	t        *testing.T
	service  *extproc.Service
	envoy    *extproctest.Envoy
	entrance *extproctest.Entrance
	stamps   *fleet.Stamps
	binding  *cachepolicy.Binding
	registry *prometheus.Registry
	clients  sync.WaitGroup

	mu     sync.Mutex
	script extproctest.Origin
	asked  []asked
	now    int // requests at the origin
	most   int // at a time
}

// asked is a request that the origin saw.
type asked struct {
	at     time.Duration // since the beginning
	path   string
	header httpcache.Fields
}

// newWorld makes a world with one policy, shop/catalog. change may change the
// service's options.
func newWorld(t *testing.T, spec string, script extproctest.Origin, change func(*extproc.Options)) *world {
	t.Helper()
	w := &world{t: t, script: script, stamps: fleet.NewStamps(0), registry: prometheus.NewRegistry()}
	parsed := new(v1alpha1.CachePolicySpec)
	if err := yaml.UnmarshalStrict([]byte(spec), parsed); err != nil {
		t.Fatal(err)
	}
	policy, err := cachepolicy.Compile("shop", "catalog", parsed)
	if err != nil {
		t.Fatal(err)
	}
	set, err := cachepolicy.NewSet(cachepolicy.Binding{Policy: policy, Scope: "shop", Route: "products"})
	if err != nil {
		t.Fatal(err)
	}
	w.binding, _ = set.ByRoute("products")
	start := time.Now()
	origin := func(ctx context.Context, req *httpcache.Request) extproctest.Answer { return w.answer(ctx, req, start) }
	w.entrance = extproctest.NewEntrance(origin)
	o := extproc.Options{
		Policies: func() *cachepolicy.Set { return set }, Store: memory.New(memory.Options{Limit: 64 << 20}),
		Stamps: w.stamps, Fetcher: w.entrance.Fetcher, Metrics: metrics.New(w.registry, metrics.Build{}),
		Logger: w.logger(), MessageTimeout: time.Second, MaxMessageTimeout: time.Minute,
	}
	if change != nil {
		change(&o)
	}
	w.service = extproc.New(o)
	w.envoy = extproctest.NewEnvoy(w.service.Register, "products", origin)
	t.Cleanup(func() {
		w.clients.Wait()
		w.service.Close()
		w.entrance.Close()
		if s := w.service.Stats(); s.Flights != 0 || s.Waiters != 0 || s.Refills != 0 {
			t.Errorf("left behind: %+v", s)
		}
		for _, o := range w.service.Origins() {
			if o.Running != 0 || o.Queued != 0 {
				t.Errorf("left behind: %+v", o)
			}
		}
	})
	return w
}

func (*world) logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (w *world) answer(ctx context.Context, req *httpcache.Request, start time.Time) extproctest.Answer {
	w.mu.Lock()
	script := w.script
	w.asked = append(w.asked, asked{time.Since(start), req.Path, req.Header})
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now--
	}()
	return script(ctx, req)
}

// answers changes the script.
func (w *world) answers(script extproctest.Origin) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script = script
}

// seen returns what the origin was asked since the last call.
func (w *world) seen() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.asked
	w.asked = nil
	return seen
}

func (w *world) wantSeen(n int, when string) {
	w.t.Helper()
	if seen := w.seen(); len(seen) != n {
		w.t.Errorf("%s: the origin saw %d requests, want %d; the first: %v", when, len(seen), n, seen[:min(len(seen), 5)])
	}
}

// get asks for a path and waits for the answer.
func (w *world) get(path string, fields ...string) extproctest.Result {
	return w.envoy.Do(w.t.Context(), extproctest.Get("shop.test", path, fields...))
}

// start asks for a path; the answer comes on the channel.
func (w *world) start(path string) <-chan extproctest.Result {
	c := make(chan extproctest.Result, 1)
	w.clients.Go(func() { c <- w.get(path) })
	return c
}

// counted returns the value of a counter of the service by its label.
func (w *world) counted(name string) map[string]float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if v := m.GetCounter().GetValue(); v > 0 {
				out[m.GetLabel()[0].GetValue()] = v
			}
		}
	}
	return maps.Clone(out)
}

// page answers 200 after a time, with the fields.
func page(after time.Duration, fields ...string) extproctest.Origin {
	header := httpcache.Fields{{Name: "content-type", Value: "text/plain"}}
	for i := 0; i+1 < len(fields); i += 2 {
		header = append(header, httpcache.Field{Name: fields[i], Value: fields[i+1]})
	}
	return func(ctx context.Context, req *httpcache.Request) extproctest.Answer {
		extproctest.Sleep(ctx, after)
		tag := header.Get("etag")
		if match := req.Header.Get("if-none-match"); match != "" && match == tag {
			return extproctest.Answer{Status: 304, Header: header}
		}
		return extproctest.Answer{Status: 200, Header: header, Body: []byte("page " + req.Path)}
	}
}

// status answers with a status and nothing else.
func status(code int) extproctest.Origin {
	return func(context.Context, *httpcache.Request) extproctest.Answer { return extproctest.Answer{Status: code} }
}

// hang does not answer as long as the client waits.
func hang(ctx context.Context, _ *httpcache.Request) extproctest.Answer {
	<-ctx.Done()
	return extproctest.Answer{Status: 504}
}
