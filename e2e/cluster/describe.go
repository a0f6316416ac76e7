package cluster

import (
	"context"
	"strings"

	"github.com/weirproxy/weir/e2e/harness"
)

// Describe returns what one wants to see of a namespace when a test failed: its objects, events and the ends of its
// pods' logs.
func (c *Cluster) Describe(tb harness.TB, namespace string) string {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context()) // also when the test has ended
	var text strings.Builder
	show := func(args ...string) {
		out, err := c.Kubectl(ctx, "", append([]string{"--namespace=" + namespace}, args...)...)
		if err != nil {
			out += err.Error()
		}
		text.WriteString("--- kubectl " + strings.Join(args, " ") + "\n" + out + "\n")
	}
	show("get", "pods,jobs,services,endpointslices", "--output=wide")
	show("get", "events", "--sort-by=.lastTimestamp")
	pods, err := c.Kubectl(ctx, "", "--namespace="+namespace, "get", "pods", "--output=name")
	if err != nil {
		pods = ""
	}
	for pod := range strings.FieldsSeq(pods) {
		show("logs", pod, "--all-containers", "--prefix", "--tail=40")
	}
	return text.String()
}
