package translate

import (
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
)

// find returns the ancestors of a target, and what is missing.
func (t *translation) find(group string, target Target) ([]site, *Condition) {
	self := []site{{key: ancestorKey{group, target.Kind, target.Namespace, target.Name}}}
	switch target.Kind {
	case kindGateway:
		return t.findGateway(self, target)
	case cachepolicy.KindEnvoyRoute:
		c := no(gatewayv1.PolicyReasonInvalid,
			"An EnvoyRoute is a target of policies from files (--policy-dir), not of policies in a cluster.")
		self[0].problem = &c
		return self, nil
	}
	return t.findRoute(self, target)
}

func (t *translation) findGateway(self []site, target Target) ([]site, *Condition) {
	g := t.gateways[types.NamespacedName{Namespace: target.Namespace, Name: target.Name}]
	if g == nil {
		c := targetNotFound(target.whole().String() + " does not exist.")
		return self, &c
	}
	sites := []site{{key: g.key, controller: g.controller, problem: g.refusal}}
	if target.SectionName == "" || g.listener(target.SectionName) != nil {
		return sites, nil
	}
	names := make([]string, len(g.listeners))
	for i, l := range g.listeners {
		names[i] = l.name
	}
	c := targetNotFound(target.whole().String() + " has no listener for HTTP with the name " +
		quoted(target.SectionName) + among(names))
	return sites, &c
}

func (t *translation) findRoute(self []site, target Target) ([]site, *Condition) {
	r := t.routes[target.whole()]
	if r == nil {
		c := targetNotFound(target.whole().String() + " does not exist.")
		return self, &c
	}
	sites := r.sites
	if len(sites) == 0 {
		c := no(ReasonTargetNotAttached, r.String()+" has no parent.")
		self[0].problem = &c
		sites = self
	}
	if target.SectionName == "" || r.rule(target.SectionName) != nil {
		return sites, nil
	}
	var names []string
	for i := range r.rules {
		if name := r.rules[i].name; name != "" {
			names = append(names, name)
		}
	}
	c := targetNotFound(r.String() + " has no rule with the name " + quoted(target.SectionName) + among(names))
	return sites, &c
}

// whole is the target without its section.
func (t Target) whole() Target {
	t.SectionName = ""
	return t
}
