package cachepolicy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// chain is the merge of the policies that are in force together, however many rules
// they are in force on: a Gateway's policy that changes is compiled once for each of
// its chains.
type chain struct {
	names  []string // the least specific first
	policy *Policy  // the last good one; nil: none
	err    error    // why it is not what the policies say now
	stale  bool     // a policy changed since
	// tenants are the namespaces of the routes under it, with how many rules each has.
	tenants map[string]int
}

// chainKey tells chains apart.
func chainKey(names []string) string { return strings.Join(names, "\x00") }

// compile merges and compiles. A contradiction leaves what was in force; a policy
// that is gone leaves nothing: what its author took away is not to be guessed.
func (c *chain) compile(specs map[string]*policyState) {
	c.stale = false
	layers := make([]*v1alpha1.CachePolicySpec, len(c.names))
	for i, name := range c.names {
		p, ok := specs[name]
		if !ok {
			c.policy, c.err = nil, fmt.Errorf("policy %s is not here", name)
			return
		}
		layers[i] = p.spec
	}
	namespace, name, _ := strings.Cut(c.names[len(c.names)-1], "/")
	policy, err := Compile(namespace, name, Merge(layers...))
	if err != nil {
		c.err = fmt.Errorf("%s: %w", strings.Join(c.names, " + "), err)
		return
	}
	if len(c.names) > 1 {
		policy.Layers = slices.Clone(c.names)
	}
	c.policy, c.err = policy, nil
}
