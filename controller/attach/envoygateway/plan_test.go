package envoygateway

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// The levels above the rule of every case: Gateway infra/public, listener http, HTTPRoute shop/catalog, rule products.
var (
	onGateway  = translate.Target{Kind: kindGateway, Namespace: "infra", Name: "public"}
	onListener = translate.Target{Kind: kindGateway, Namespace: "infra", Name: "public", SectionName: "http"}
	onRoute    = translate.Target{Kind: kindHTTPRoute, Namespace: "shop", Name: "catalog"}
	onRule     = translate.Target{Kind: kindHTTPRoute, Namespace: "shop", Name: "catalog", SectionName: "products"}
)

func attachment(targets ...translate.Target) translate.Attachment {
	a := translate.Attachment{
		Route: onRoute, RuleName: "products", Listener: "http", Controller: controllerName, LongestWait: 5 * time.Second,
		Parent: gatewayv1.ParentReference{Name: "public", Namespace: new(gatewayv1.Namespace("infra"))},
	}
	for _, t := range targets {
		a.Layers = append(a.Layers, translate.Layer{Policy: t.Namespace + "/p", Target: t})
	}
	return a
}

// TestChoose holds at which target the filter is attached beside what others have there, and that nothing of theirs is
// silenced.
func TestChoose(t *testing.T) {
	t.Parallel()
	plain, merging := extension{name: "o/x"}, extension{name: "o/x", merges: true}
	extProc := extension{name: "o/x", extProc: true}
	tests := []struct {
		name   string
		layers []translate.Target
		others extensions
		want   translate.Target
		obst   string // part of what is said to be in the way
	}{
		{"the Gateway's policy", []translate.Target{onGateway}, nil, onGateway, ""},
		{"the listener's", []translate.Target{onListener}, nil, onListener, ""},
		{"the route's", []translate.Target{onRoute}, nil, onRoute, ""},
		{"the rule's", []translate.Target{onRule}, nil, onRule, ""},
		{"the least specific of all", []translate.Target{onGateway, onRoute, onRule}, nil, onGateway, ""},

		{"one on the same Gateway", []translate.Target{onGateway}, extensions{onGateway: plain}, translate.Target{}, "takes one for each target"},
		{"one on the same route", []translate.Target{onRoute}, extensions{onRoute: plain}, translate.Target{}, "o/x targets HTTPRoute shop/catalog"},
		{"one on the Gateway, so the route", []translate.Target{onGateway, onRoute}, extensions{onGateway: plain}, onRoute, ""},

		{"a listener's replaces the Gateway's", []translate.Target{onGateway}, extensions{onListener: plain}, translate.Target{}, "replaces the filter"},
		{"a route's replaces the Gateway's", []translate.Target{onGateway}, extensions{onRoute: plain}, translate.Target{}, "replaces the filter"},
		{"a route's that is merged", []translate.Target{onGateway}, extensions{onRoute: merging}, onGateway, ""},
		{"a rule's that is merged", []translate.Target{onGateway}, extensions{onRule: merging}, onGateway, ""},
		{"a route's that is merged and has ext_proc", []translate.Target{onGateway},
			extensions{onRoute: extension{name: "o/x", merges: true, extProc: true}}, translate.Target{}, "no extProc of its own"},
		{"a rule's replaces the route's, merged or not", []translate.Target{onRoute}, extensions{onRule: merging}, translate.Target{}, "replaces the filter"},

		{"ours on a route is merged into one on the Gateway", []translate.Target{onRoute}, extensions{onGateway: plain}, onRoute, ""},
		{"but not if it has ext_proc", []translate.Target{onRoute}, extensions{onGateway: extProc}, translate.Target{}, "would be silenced"},
		{"the listener's is the closest", []translate.Target{onRoute}, extensions{onGateway: extProc, onListener: plain}, onRoute, ""},
		{"ours on a listener would silence the Gateway's", []translate.Target{onListener}, extensions{onGateway: plain}, translate.Target{}, "silenced on listener http"},
		{"ours on a rule would silence the route's", []translate.Target{onRule}, extensions{onRoute: plain}, translate.Target{}, "silenced on rule products"},
		{"ours on a rule is merged into the Gateway's", []translate.Target{onRule}, extensions{onGateway: plain}, onRule, ""},
		{"one elsewhere", []translate.Target{onGateway}, extensions{{Kind: kindGateway, Namespace: "infra", Name: "other"}: plain}, onGateway, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := attachment(tt.layers...)
			got, obstacle := choose(&a, tt.others)
			if got != tt.want || (obstacle == "") != (tt.obst == "") || !strings.Contains(obstacle, tt.obst) {
				t.Errorf("chose %+v, obstacle %q; want %+v, %q", got, obstacle, tt.want, tt.obst)
			}
		})
	}
}

// TestMakePlan holds that attachments share objects: one in a namespace for Gateways and one for routes.
func TestMakePlan(t *testing.T) {
	t.Parallel()
	slow, blocked := attachment(onRoute), attachment(onListener)
	slow.LongestWait = 7 * time.Second
	attachments := []translate.Attachment{attachment(onGateway, onRoute), attachment(onGateway), slow, attachment(onRule), blocked}
	p := makePlan(attachments, extensions{onListener: extension{name: "o/x"}})
	// The extension on the listener replaces what is on the Gateway: the first goes to the route.
	want := map[objectKey]*object{
		{"shop", nameRoutes}: {targets: []translate.Target{onRoute, onRule}, longest: 7 * time.Second, owners: []string{"shop/p"}},
	}
	if diff := cmp.Diff(want, p.objects, cmp.AllowUnexported(object{})); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	var states []attach.State
	for _, v := range p.verdicts {
		states = append(states, v.State)
	}
	if diff := cmp.Diff([]attach.State{"", attach.Blocked, "", "", attach.Blocked}, states); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// TestWithdraw holds that nothing is planned for a Service that does not resolve, and that what blocks is still said.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	p := makePlan([]translate.Attachment{attachment(onGateway), attachment(onListener)}, extensions{onListener: extension{name: "o/x"}})
	p.withdraw(attach.DataPlane{Port: 9002})
	if len(p.objects) != 0 || p.verdicts[0].State != attach.Blocked || p.verdicts[1].State != attach.Blocked {
		t.Errorf("objects %v, verdicts %+v", p.objects, p.verdicts)
	}
	p = makePlan([]translate.Attachment{attachment(onGateway)}, nil)
	p.withdraw(attach.DataPlane{Port: 9002})
	if len(p.objects) != 0 || p.verdicts[0].State != attach.Pending || !strings.Contains(p.verdicts[0].Message, "9002") {
		t.Errorf("objects %v, verdicts %+v", p.objects, p.verdicts)
	}
}

// TestOldestExtension holds that of several on one target the oldest counts.
func TestOldestExtension(t *testing.T) {
	t.Parallel()
	x := extensions{}
	for _, o := range parse(t, `
metadata: {namespace: infra, name: younger, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {targetRefs: [{kind: Gateway, name: public}]}
---
metadata: {namespace: infra, name: older, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {targetRefs: [{kind: Gateway, name: public}], extProc: [{}]}
---
metadata: {namespace: infra, name: b, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {targetRef: {kind: Gateway, name: public}}
`) {
		if err := x.add(o, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := x[onGateway]; got.name != "infra/b" {
		t.Errorf("got %+v, want infra/b: as old as infra/older, and before it by name", got)
	}
}
