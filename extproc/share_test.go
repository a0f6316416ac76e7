package extproc

import (
	"testing"

	"github.com/weirproxy/weir/extproc/httpcache"
)

// TestKnowsLess: only a process that has seen the head of an answer which the fleet
// waits for knows a resource to vary by more.
func TestKnowsLess(t *testing.T) {
	t.Parallel()
	none, one := []string(nil), []string{"accept-encoding"}
	both, other := []string{"accept-encoding", "accept-language"}, []string{"origin"}
	for _, tt := range []struct {
		fleet, own []string
		want       bool
	}{
		{none, none, false}, {none, one, true}, {one, none, false}, {one, one, false},
		{one, both, true}, {both, one, false}, {one, other, false}, {other, both, false},
	} {
		if got := knowsLess(httpcache.Vary{Names: tt.fleet}, httpcache.Vary{Names: tt.own}); got != tt.want {
			t.Errorf("the fleet knows %v, this process %v: %v, want %v", tt.fleet, tt.own, got, tt.want)
		}
	}
}
