package feed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/cachepolicy/feed"
	controller "github.com/weirproxy/weir/controller/feed"
	"github.com/weirproxy/weir/extproc/feedclient"
)

// TestChangeReachesTheDataPlane: what is set comes into force, is changed and goes, and the controller hears of it.
func TestChangeReachesTheDataPlane(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.start("a")
	d := s.join("weir-0")
	policies, routes := []feed.Policy{policy("shop", "p", 1)}, []feed.Route{route("shop", "r", "shop/p")}
	if n, err := c.Set(policies, routes, nil); n != 2 || err != nil {
		t.Fatalf("%d changed, %v", n, err)
	}
	if got := jitterOf(d.next(t), "shop", "r"); got != 1 {
		t.Errorf("jitter %d, want 1", got)
	}
	names := []string{"policy/shop/p", "route/httproute/shop/r"}
	c.eventually(t, "the replica runs all", func() bool { return c.Runs("weir-0", names...) })
	if diff := cmp.Diff(map[string]string{"weir-0": c.Version(names[0])}, c.Running(names[0])); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	if r := c.Replicas(); len(r) != 1 || r[0].Name != "weir-0" || r[0].Version != "v1" || !r[0].Synced || r[0].Behind != 0 {
		t.Errorf("replicas %+v", r)
	}
	if n, _ := c.Set(policies, routes, nil); n != 0 {
		t.Errorf("%d changed where nothing did", n)
	}
	c.set([]feed.Policy{policy("shop", "p", 2)}, routes)
	if got := jitterOf(d.next(t), "shop", "r"); got != 2 {
		t.Errorf("jitter %d, want 2", got)
	}
	if n, _ := c.Set(nil, nil, nil); n != 2 {
		t.Errorf("%d changed, want 2 removed", n)
	}
	if set := d.next(t); set.Len() != 0 || jitterOf(set, "shop", "r") != -1 {
		t.Errorf("%d policies after all were removed", set.Len())
	}
	c.eventually(t, "the replica says that it runs nothing", func() bool { return len(c.Running(names[0])) == 0 })
}

// TestBadResourceIsRefusedByName: the good ones come into force, the controller hears which was refused and why, and
// that it is mended.
func TestBadResourceIsRefusedByName(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.start("a")
	d := s.join("weir-0")
	bad := route("shop", "bad", "shop/p")
	bad.Rules[0].Matches = []feed.Match{{Path: &feed.PathMatch{Type: "RegularExpression", Value: "("}}}
	c.set([]feed.Policy{policy("shop", "p", 1)}, []feed.Route{route("shop", "good", "shop/p"), bad})
	if set := d.next(t); jitterOf(set, "shop", "good") != 1 || jitterOf(set, "shop", "bad") != -1 {
		t.Errorf("good %d, bad %d", jitterOf(set, "shop", "good"), jitterOf(set, "shop", "bad"))
	}
	name := bad.Resource()
	c.eventually(t, "the refusal is known", func() bool { return len(c.Rejections(name)) == 1 })
	if got := c.Rejections(name)["weir-0"]; !strings.Contains(got, "rules[0].matches[0].path") {
		t.Errorf("refused with %q", got)
	}
	if c.Runs("weir-0", name) || !c.Runs("weir-0", "policy/shop/p", "route/httproute/shop/good") {
		t.Error("what runs is told wrongly")
	}
	if st := d.Status(); st.Rejected != 1 || len(st.Errors) != 1 || st.Errors[0].Name != name {
		t.Errorf("status %+v", st)
	}
	c.set([]feed.Policy{policy("shop", "p", 1)}, []feed.Route{route("shop", "good", "shop/p"), route("shop", "bad", "shop/p")})
	c.eventually(t, "it runs now", func() bool { return c.Runs("weir-0", name) && len(c.Rejections(name)) == 0 })
	if st := d.Status(); st.Rejected != 0 {
		t.Errorf("status %+v", st)
	}
}

// TestControllerGone: what was last in force stays, and another replica, or the same one started again, goes on: what
// changed meanwhile, gone resources included, is made good, and nothing else is sent.
func TestControllerGone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := s.start("a")
	d := s.join("weir-0")
	first.set([]feed.Policy{policy("shop", "p", 1), policy("shop", "q", 1)},
		[]feed.Route{route("shop", "r", "shop/p"), route("shop", "s", "shop/q")})
	d.next(t)
	first.stop()
	if set := d.set.Load(); jitterOf(set, "shop", "r") != 1 {
		t.Error("the set is gone with the controller")
	}
	second := s.start("a")
	second.eventually(t, "the replica is back", func() bool { return len(second.Replicas()) == 1 && second.Replicas()[0].Synced })
	select {
	case <-d.sets:
		t.Error("a controller that has not begun changed the set")
	default:
	}
	second.set([]feed.Policy{policy("shop", "p", 2)}, []feed.Route{route("shop", "r", "shop/p")})
	if set := d.next(t); jitterOf(set, "shop", "r") != 2 || jitterOf(set, "shop", "s") != -1 || set.Len() != 1 {
		t.Errorf("r %d, s %d, %d policies", jitterOf(set, "shop", "r"), jitterOf(set, "shop", "s"), set.Len())
	}
	second.eventually(t, "all runs", func() bool { return second.Replicas()[0].Behind == 0 })
}

// TestAllControllersHear: every replica of the controller knows what the data plane runs, whichever serves it.
func TestAllControllersHear(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	controllers := []*controllerReplica{s.start("a"), s.start("b"), s.start("c")}
	s.join("weir-0")
	s.join("weir-1")
	for _, c := range controllers {
		c.set([]feed.Policy{policy("shop", "p", 1)}, nil)
	}
	for _, c := range controllers {
		c.eventually(t, c.address+" knows of both", func() bool {
			return c.Runs("weir-0", "policy/shop/p") && c.Runs("weir-1", "policy/shop/p")
		})
		if c.Version("policy/shop/p") != controllers[0].Version("policy/shop/p") {
			t.Error("two replicas of the controller give one policy two versions")
		}
	}
}

// TestManyResources: more than one response holds come all the same, as one set.
func TestManyResources(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.start("a")
	policies, routes := many(100, 5000)
	c.set(policies, routes)
	d := s.join("weir-0")
	set := d.next(t)
	if set.Len() != 100 || jitterOf(set, "tenant-7", "route-4907") != 7 {
		t.Errorf("%d policies, jitter %d", set.Len(), jitterOf(set, "tenant-7", "route-4907"))
	}
	c.eventually(t, "all runs", func() bool { r := c.Replicas(); return len(r) == 1 && r[0].Synced && r[0].Behind == 0 })
}

// many is a world of policies and routes, each route under one policy.
func many(policies, routes int) (p []feed.Policy, r []feed.Route) {
	for i := range policies {
		p = append(p, policy(fmt.Sprint("tenant-", i), "p", int32(i%100)))
	}
	for i := range routes {
		tenant := fmt.Sprint("tenant-", i%policies)
		r = append(r, route(tenant, fmt.Sprint("route-", i), tenant+"/p"))
	}
	return p, r
}

func TestInvalidate(t *testing.T) {
	t.Parallel()
	asked := feed.Invalidate{By: "Tag", Value: "p7", Namespace: "shop", Mode: "Soft"}
	answer := func(r feed.Result) func(*feedclient.Options) {
		return func(o *feedclient.Options) {
			o.Invalidate = func(_ context.Context, i feed.Invalidate) feed.Result {
				if i != asked {
					return feed.Result{Error: fmt.Sprintf("asked for %+v", i)}
				}
				return r
			}
		}
	}
	tests := []struct {
		name    string
		results []feed.Result // of the replicas
		want    controller.Outcome
		wantErr string
	}{
		{name: "nobody", wantErr: "no replica"},
		{name: "each for itself", results: []feed.Result{{Covered: "tag p7", Warnings: []string{"alone"}}, {Covered: "tag p7", Warnings: []string{"alone"}}},
			want: controller.Outcome{Covered: "tag p7", Confirmed: 2, Total: 2, Warnings: []string{"alone"}}},
		{name: "one fails", results: []feed.Result{{Error: "broken"}, {Covered: "tag p7"}},
			want: controller.Outcome{Covered: "tag p7", Confirmed: 1, Total: 2, Silent: []string{"weir-0"}}},
		{name: "all fail", results: []feed.Result{{Error: "broken"}, {Error: "too"}}, wantErr: "broken",
			want: controller.Outcome{Total: 2, Silent: []string{"weir-0", "weir-1"}}},
		{name: "in a fleet", results: []feed.Result{{Shared: true, Covered: "tag p7", Confirmed: 2, Total: 3, Silent: []string{"weir-9"}}, {Error: "not to be asked"}},
			want: controller.Outcome{Shared: true, Covered: "tag p7", Confirmed: 2, Total: 3, Silent: []string{"weir-9"}}},
		{name: "in a fleet whose first fails", results: []feed.Result{{Error: "broken"}, {Shared: true, Covered: "tag p7", Confirmed: 2, Total: 2}},
			want: controller.Outcome{Shared: true, Covered: "tag p7", Confirmed: 2, Total: 2}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			c := s.start("a")
			for i, r := range tc.results {
				s.join(fmt.Sprint("weir-", i), answer(r))
			}
			c.eventually(t, "all are connected", func() bool { return len(c.Replicas()) == len(tc.results) })
			got, err := c.Invalidate(t.Context(), asked)
			if (tc.wantErr == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTraffic(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.start("a")
	c.set([]feed.Policy{policy("shop", "p", 1)}, nil)
	counted := func(n uint64) func(*feedclient.Options) {
		return func(o *feedclient.Options) {
			o.Traffic = func() map[string]feed.Traffic {
				return map[string]feed.Traffic{"shop/p": {Requests: n, Hits: n / 2}, "shop/unknown": {Requests: 1}}
			}
		}
	}
	s.join("weir-0", counted(10))
	s.join("weir-1", counted(30))
	want := map[string]feed.Traffic{"shop/p": {Requests: 40, Hits: 20}}
	c.eventually(t, "both are counted", func() bool { return cmp.Equal(want, c.Traffic()) })
}
