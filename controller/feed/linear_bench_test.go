package feed

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

// BenchmarkOneChange compares what one change among resources costs the history and go-control-plane's LinearCache,
// with ten subscribers, from the change to the response of each (docs/design/0010-feed.md). What encodes the changed
// resource is left out on both sides.
func BenchmarkOneChange(b *testing.B) {
	const subscribers = 10
	for _, n := range []int{100, 11_000} {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("route/httproute/tenant-%d/route-%d", i%50, i)
		}
		wrapped := func(name string, i int) feed.Resource {
			data := fmt.Appendf(make([]byte, 400), "%d", i)
			return feed.Resource{Name: name, Version: feed.VersionOf(data), Data: data}
		}
		b.Run(fmt.Sprintf("history/%d", n), func(b *testing.B) {
			s := New(Options{})
			defer s.Close()
			s.take(&next{server: s, names: map[string]struct{}{}})
			set := func(i int, name string) {
				wire, err := feedpb.Wrap(wrapped(name, i))
				if err != nil {
					b.Fatal(err)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				s.subscribers.history.put(name, wire.GetVersion(), wire)
				s.subscribers.tell()
			}
			for _, name := range names {
				set(0, name)
			}
			var watching []*subscriber
			for range subscribers {
				c := s.subscribe(b, nil)
				c.catchUp()
				watching = append(watching, c)
			}
			b.ReportAllocs()
			for i := 1; b.Loop(); i++ {
				set(i, names[i%n])
				for _, c := range watching {
					if r := c.next(); len(r.GetResources()) != 1 {
						b.Fatal(r)
					}
				}
			}
		})
		b.Run(fmt.Sprintf("LinearCache/%d", n), func(b *testing.B) {
			resource := func(i int, name string) types.Resource {
				inner, err := anypb.New(wrapperspb.Bytes(wrapped(name, i).Data))
				if err != nil {
					b.Fatal(err)
				}
				return &corev3.TypedExtensionConfig{Name: name, TypedConfig: inner}
			}
			all := make(map[string]types.Resource, n)
			for _, name := range names {
				all[name] = resource(0, name)
			}
			linear := cache.NewLinearCache(feedpb.TypeURL, cache.WithInitialResources(all))
			benchLinear(b, linear, subscribers, func(i int) {
				if err := linear.UpdateResource(names[i%n], resource(i, names[i%n])); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// benchLinear subscribes to a cache, and measures changes.
func benchLinear(b *testing.B, linear *cache.LinearCache, subscribers int, change func(i int)) {
	b.Helper()
	outs := make([]chan cache.DeltaResponse, subscribers)
	subs := make([]stream.Subscription, subscribers)
	step := func(i int) int {
		r := <-outs[i]
		response, err := r.GetDeltaDiscoveryResponse()
		if err != nil {
			b.Fatal(err)
		}
		subs[i].SetReturnedResources(r.GetReturnedResources())
		acknowledged := &cache.DeltaRequest{TypeUrl: feedpb.TypeURL, ResponseNonce: "1"}
		if _, err := linear.CreateDeltaWatch(acknowledged, subs[i], outs[i]); err != nil {
			b.Fatal(err)
		}
		return len(response.GetResources())
	}
	for i := range subscribers {
		outs[i] = make(chan cache.DeltaResponse, 2)
		subs[i] = stream.NewDeltaSubscription([]string{"*"}, nil, nil, true)
		if _, err := linear.CreateDeltaWatch(&cache.DeltaRequest{TypeUrl: feedpb.TypeURL}, subs[i], outs[i]); err != nil {
			b.Fatal(err)
		}
		step(i)
	}
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		change(i)
		for w := range subscribers {
			if got := step(w); got != 1 {
				b.Fatal(got)
			}
		}
	}
}
