package feedclient

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

// taker is a subscriber without a network.
type taker struct {
	*subscriber
	sets []*cachepolicy.Set
}

func newTaker(t *testing.T) *taker {
	t.Helper()
	tk := &taker{}
	c, err := New(Options{
		Address: "controller:18000", Replica: "weir-0", Started: time.Unix(1, 0),
		OnChange: func(set *cachepolicy.Set) { tk.sets = append(tk.sets, set) },
	})
	if err != nil {
		t.Fatal(err)
	}
	tk.subscriber = &subscriber{
		Client: c, table: cachepolicy.NewTable(), versions: map[string]string{}, unread: map[string]error{},
		batch: map[string]arrived{},
	}
	return tk
}

func testPolicy(jitter int32) *feed.Policy {
	p := &feed.Policy{Namespace: "shop", Name: "p"}
	p.Spec.JitterPercent = &jitter
	return p
}

func testRoute() *feed.Route {
	return &feed.Route{Kind: "HTTPRoute", Namespace: "shop", Name: "r", Rules: []feed.Rule{{
		Policies: []string{"shop/p"}, Scope: "shop/httproute/r/0",
	}}}
}

func response(t *testing.T, objects ...feed.Object) *discoveryv3.DeltaDiscoveryResponse {
	t.Helper()
	r := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: feedpb.TypeURL}
	for _, o := range objects {
		encoded, err := feed.Encode(o)
		if err != nil {
			t.Fatal(err)
		}
		wire, err := feedpb.Wrap(encoded)
		if err != nil {
			t.Fatal(err)
		}
		r.Resources = append(r.Resources, wire)
	}
	return r
}

// garbled is a resource that cannot be read.
func garbled(t *testing.T, name string) *discoveryv3.Resource {
	t.Helper()
	wire, err := feedpb.Wrap(feed.Resource{Name: name, Version: "newer", Data: []byte(`{"mood":"good"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// jitter is that in force on the route; -1: none.
func (tk *taker) jitter() int {
	b, _ := tk.sets[len(tk.sets)-1].Identify("", "shop/httproute/r/0", "")
	if b == nil {
		return -1
	}
	return b.Policy.JitterPercent
}

func (tk *taker) standing() (running, rejected []string) {
	return slices.Sorted(maps.Keys(tk.state.running)), slices.Sorted(maps.Keys(tk.state.rejected))
}

// TestWhatCannotBeRead: it is refused by name, what was in force stays, and stays refused whatever changes around it,
// until it comes in a form that can be read or goes.
func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	const route = "route/httproute/shop/r"
	tk := newTaker(t)
	if refused := tk.take(response(t, testPolicy(1), testRoute())); len(refused) != 0 || tk.jitter() != 1 {
		t.Fatalf("refused %v, jitter %d", refused, tk.jitter())
	}
	bad := response(t, testPolicy(2))
	bad.Resources = append(bad.Resources, garbled(t, route))
	refused := tk.take(bad)
	if err := refused[route]; len(refused) != 1 || err == nil || !strings.Contains(err.Error(), `unknown field "mood"`) {
		t.Errorf("refused %v", refused)
	}
	want := func(when string, jitter int, running, rejected []string) {
		t.Helper()
		gotRunning, gotRejected := tk.standing()
		if diff := cmp.Diff([][]string{running, rejected}, [][]string{gotRunning, gotRejected}); diff != "" || tk.jitter() != jitter {
			t.Errorf("%s: jitter %d, want %d; running and rejected (-want +got):\n%s", when, tk.jitter(), jitter, diff)
		}
	}
	want("once refused", 2, []string{"policy/shop/p"}, []string{route})
	if tk.versions[route] != "newer" {
		t.Errorf("version %q: the controller would send it again", tk.versions[route])
	}
	tk.take(response(t, testPolicy(3)))
	want("the policy changed", 3, []string{"policy/shop/p"}, []string{route})
	tk.take(response(t, testRoute()))
	want("mended", 3, []string{"policy/shop/p", route}, nil)
	tk.take(&discoveryv3.DeltaDiscoveryResponse{RemovedResources: []string{route}})
	want("gone", -1, []string{"policy/shop/p"}, nil)
}

// TestParts: what comes in several responses comes into force as one.
func TestParts(t *testing.T) {
	t.Parallel()
	tk := newTaker(t)
	first := response(t, testRoute()) // before its policy: it is not refused for that
	first.SystemVersionInfo = feedpb.More
	if refused := tk.take(first); len(refused) != 0 || len(tk.sets) != 0 {
		t.Fatalf("refused %v, %d sets after a part", refused, len(tk.sets))
	}
	select {
	case <-tk.Synced():
		t.Error("synced after a part")
	default:
	}
	if refused := tk.take(response(t, testPolicy(1))); len(refused) != 0 || len(tk.sets) != 1 || tk.jitter() != 1 {
		t.Errorf("refused %v, %d sets", refused, len(tk.sets))
	}
	<-tk.Synced()
	if s := tk.Status(); !s.Synced || s.Updates != 1 || s.Resources != 2 {
		t.Errorf("status %+v", s)
	}
}

// TestNothingIsAFirstWord: a controller that has nothing has said so.
func TestNothingIsAFirstWord(t *testing.T) {
	t.Parallel()
	tk := newTaker(t)
	tk.take(response(t))
	<-tk.Synced()
	if len(tk.sets) != 1 || tk.sets[0].Len() != 0 {
		t.Errorf("sets %v", tk.sets)
	}
}

func TestNackIsBounded(t *testing.T) {
	t.Parallel()
	refused := map[string]error{}
	for i := range maxNacked + 7 {
		refused[fmt.Sprintf("route/%02d", i)] = errors.New("bad")
	}
	text := nack(refused)
	if strings.Count(text, "\n") != maxNacked || !strings.HasSuffix(text, "and 7 more") || !strings.HasPrefix(text, "route/00: bad\n") {
		t.Errorf("text %q", text)
	}
}

func TestResourcesAreBounded(t *testing.T) {
	t.Parallel()
	tk := newTaker(t)
	for i := range maxResources {
		tk.versions[fmt.Sprint(i)] = "v"
	}
	refused := tk.take(response(t, testPolicy(1)))
	if err := refused["policy/shop/p"]; err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("refused %v", refused)
	}
}
