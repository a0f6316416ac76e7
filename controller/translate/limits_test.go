package translate_test

import (
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/controller/translate"
)

// TestRouteTooBigForTheFeed has matches of more than 1 MiB, which the API server would
// take. The other routes are served.
func TestRouteTooBigForTheFeed(t *testing.T) {
	t.Parallel()
	in := largeInput(10, 20)
	big := in.HTTPRoutes[0]
	rule := &big.Spec.Rules[0]
	for i := range 64 {
		match := gatewayv1.HTTPRouteMatch{}
		for j := range 5 {
			match.Headers = append(match.Headers, gatewayv1.HTTPHeaderMatch{
				Name: gatewayv1.HTTPHeaderName(fmt.Sprintf("x-%d-%d", i, j)), Value: strings.Repeat("v", 4096)})
		}
		rule.Matches = append(rule.Matches, match)
	}
	out := translate.Translate(in)
	checkFeed(t, out)
	checkAttached(t, out)
	if want := len(in.HTTPRoutes) - 1; len(out.Routes) != want {
		t.Errorf("%d routes, want %d", len(out.Routes), want)
	}
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		if v.Policy.Name != "policy-0" {
			continue
		}
		a := v.Ancestors[0]
		if a.Override != translate.OverridePartial || !strings.Contains(a.OverrideMessage, "at most 1048576 are possible") {
			t.Errorf("%s: %q %s", v.Policy, a.Override, a.OverrideMessage)
		}
	}
}

// TestMessagesOfManyRoutes wants a message over a thousand routes to stay short.
func TestMessagesOfManyRoutes(t *testing.T) {
	t.Parallel()
	in := largeInput(10, 1000)
	for _, r := range in.HTTPRoutes {
		r.Spec.Rules[0].BackendRefs = make([]gatewayv1.HTTPBackendRef, 2)
	}
	for i, p := range in.CachePolicies {
		if i > 0 {
			p.Spec.TargetRefs = in.CachePolicies[0].Spec.TargetRefs // all but the first are in conflict
		}
	}
	out := translate.Translate(in)
	for i := range out.Verdicts {
		for _, a := range out.Verdicts[i].Ancestors {
			if n := len(a.Accepted.Message) + len(a.OverrideMessage); n > 1000 {
				t.Errorf("%s: messages of %d bytes:\n%s\n%s", out.Verdicts[i].Policy, n, a.Accepted.Message, a.OverrideMessage)
			}
		}
	}
	const want = "and 97 more"
	if got := out.Verdicts[0].Ancestors[0].Accepted.Message; !strings.Contains(got, want) {
		t.Errorf("%q does not say %q", got, want)
	}
}
