package translate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
	"github.com/weirproxy/weir/controller/translate"
)

// view is an Output as the golden files show it.
type view struct {
	Policies  []string        `json:"policies,omitempty"`
	Routes    []feed.Route    `json:"routes,omitempty"`
	Entrances []feed.Entrance `json:"entrances,omitempty"`
	Verdicts  []verdictView   `json:"verdicts,omitempty"`
	Affected  []affectedView  `json:"affected,omitempty"`
	Attached  []attachedView  `json:"attached,omitempty"`
}

type verdictView struct {
	Policy     string         `json:"policy"`
	Generation int64          `json:"generation,omitempty"`
	Ancestors  []ancestorView `json:"ancestors"`
	Omitted    int            `json:"omitted,omitempty"`
}

type ancestorView struct {
	Ref             string   `json:"ref"`
	Controller      string   `json:"controller,omitempty"`
	Accepted        string   `json:"accepted"`
	ResolvedRefs    string   `json:"resolvedRefs"`
	Override        string   `json:"override,omitempty"`
	OverrideMessage string   `json:"overrideMessage,omitempty"`
	Resources       []string `json:"resources,omitempty"`
}

type affectedView struct {
	Object     string   `json:"object"`
	Generation int64    `json:"generation,omitempty"`
	Policies   []string `json:"policies"`
	Parents    []string `json:"parents,omitempty"`
}

type attachedView struct {
	Rule        string   `json:"rule"`
	At          string   `json:"at"`
	Hosts       []string `json:"hosts,omitempty"`
	Layers      []string `json:"layers"`
	LongestWait string   `json:"longestWait"`
}

func viewOf(out *translate.Output) *view {
	v := &view{Routes: out.Routes, Entrances: out.Entrances}
	for i := range out.Policies {
		v.Policies = append(v.Policies, out.Policies[i].Resource())
	}
	for i := range out.Verdicts {
		v.Verdicts = append(v.Verdicts, viewVerdict(&out.Verdicts[i]))
	}
	for _, a := range out.Affected {
		w := affectedView{Object: a.Kind + " " + a.Namespace + "/" + a.Name, Generation: a.Generation, Policies: a.Policies}
		for _, ref := range a.Parents {
			w.Parents = append(w.Parents, viewRef(ref))
		}
		v.Affected = append(v.Affected, w)
	}
	for i := range out.Attached {
		a := &out.Attached[i]
		w := attachedView{Rule: strings.TrimSpace(fmt.Sprintf("%s, rule %d %s", a.Route, a.RuleIndex, a.RuleName)),
			At:    fmt.Sprintf("%s, %s:%d", viewRef(a.Parent), a.Listener, a.Port),
			Hosts: a.Hosts, LongestWait: a.LongestWait.String()}
		if a.Class != "" {
			w.At += fmt.Sprintf(" %s, class %s of %s", a.Protocol, a.Class, a.Controller)
		}
		for _, l := range a.Layers {
			w.Layers = append(w.Layers, l.Policy+" by "+l.Target.String())
		}
		v.Attached = append(v.Attached, w)
	}
	return v
}

func viewVerdict(v *translate.Verdict) verdictView {
	w := verdictView{Policy: v.Policy.String(), Generation: v.Generation, Omitted: v.Omitted}
	for _, a := range v.Ancestors {
		w.Ancestors = append(w.Ancestors, ancestorView{Ref: viewRef(a.Ref), Controller: a.Controller,
			Accepted: viewCondition(a.Accepted), ResolvedRefs: viewCondition(a.ResolvedRefs),
			Override: string(a.Override), OverrideMessage: a.OverrideMessage, Resources: a.Resources})
	}
	return w
}

func viewCondition(c translate.Condition) string {
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func viewRef(ref gatewayv1.ParentReference) string {
	s := ""
	if ref.Kind != nil {
		s += string(*ref.Kind) + " "
	}
	if ref.Namespace != nil {
		s += string(*ref.Namespace) + "/"
	}
	s += string(ref.Name)
	if ref.SectionName != nil {
		s += " (" + string(*ref.SectionName) + ")"
	}
	if ref.Port != nil {
		s += fmt.Sprintf(" port %d", *ref.Port)
	}
	return s
}

// checkRules wants what a rule names to be in the feed, and its policies to compile.
func checkRules(t *testing.T, r *feed.Route, specs map[string]*v1alpha1.CachePolicySpec, entrances map[string]bool) {
	t.Helper()
	scopes := map[string]bool{}
	for i := range r.Rules {
		u := &r.Rules[i]
		if scopes[u.Scope] {
			t.Errorf("%s: scope %s is there twice", r.Resource(), u.Scope)
		}
		scopes[u.Scope] = true
		var layers []*v1alpha1.CachePolicySpec
		for _, name := range u.Policies {
			if specs[name] == nil {
				t.Errorf("%s: policy %s is not in the feed", r.Resource(), name)
			}
			layers = append(layers, specs[name])
		}
		if _, err := cachepolicy.Compile("ns", "name", cachepolicy.Merge(layers...)); err != nil {
			t.Errorf("%s, rule %d: %v", r.Resource(), i, err)
		}
		for _, e := range u.Entrances {
			if !entrances[e] {
				t.Errorf("%s: %s is not in the feed", r.Resource(), e)
			}
		}
	}
}

// checkAttached wants attachments to say what the rules in the feed say.
func checkAttached(t *testing.T, out *translate.Output) {
	t.Helper()
	rules := map[string]*feed.Rule{}
	for i := range out.Routes {
		for j := range out.Routes[i].Rules {
			u := &out.Routes[i].Rules[j]
			rules[u.Scope] = u
		}
	}
	attached := map[string]bool{}
	for i := range out.Attached {
		a := &out.Attached[i]
		attached[a.Scope] = true
		u := rules[a.Scope]
		if u == nil {
			t.Errorf("attachment %d: scope %s is not in the feed", i, a.Scope)
			continue
		}
		for _, l := range a.Layers {
			listener := translate.Target{Kind: "Gateway", Namespace: string(*a.Parent.Namespace),
				Name: string(a.Parent.Name), SectionName: a.Listener}
			gateway, rule := listener, a.Route
			gateway.SectionName, rule.SectionName = "", a.RuleName
			if !slices.Contains([]translate.Target{gateway, listener, a.Route, rule}, l.Target) {
				t.Errorf("attachment %d: %s claims something else: %s", i, l.Policy, l.Target)
			}
		}
		if diff := cmp.Diff(u.Matches, a.Matches); diff != "" {
			t.Errorf("attachment %d: matches (-feed +attachment):\n%s", i, diff)
		}
	}
	for scope, u := range rules {
		if len(u.Policies) > 0 && !attached[scope] {
			t.Errorf("policies are in force under %s, and nothing is attached there", scope)
		}
	}
}
