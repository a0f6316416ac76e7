package envoygateway

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weirproxy/weir/controller/attach"
	"github.com/weirproxy/weir/controller/translate"
)

// holdMargin is what the filter's message timeout exceeds the longest wait by: Envoy
// Gateway cannot let it be extended.
const holdMargin = 500 * time.Millisecond

// The names of what is written, in each namespace where there is something to attach.
const (
	nameGateways = "weir-gateways"
	nameRoutes   = "weir-routes"
)

// extension is an EnvoyExtensionPolicy of somebody else.
type extension struct {
	name    string // namespace/name
	merges  bool   // it has a mergeType
	extProc bool   // it has ext_proc filters of its own
	created time.Time
}

// extensionSpec is what matters here of an EnvoyExtensionPolicy.
type extensionSpec struct {
	targetRefs `json:",inline"`
	ExtProc    []struct{} `json:"extProc"`
}

// extensions are the EnvoyExtensionPolicies of others, by what they target; the oldest
// where there are several, as Envoy Gateway takes it.
type extensions map[translate.Target]extension

func (x extensions) add(o *unstructured.Unstructured, objects []labelled) error {
	var spec extensionSpec
	if err := readSpec(o, &spec); err != nil {
		return err
	}
	e := extension{
		name: o.GetNamespace() + "/" + o.GetName(), merges: spec.MergeType != "", extProc: len(spec.ExtProc) > 0,
		created: o.GetCreationTimestamp().Time,
	}
	for _, t := range spec.resolve(o.GetNamespace(), objects) {
		before, ok := x[t]
		if !ok || cmp.Or(e.created.Compare(before.created), cmp.Compare(e.name, before.name)) < 0 {
			x[t] = e
		}
	}
	return nil
}

// The levels at which a filter can be attached, the least specific first.
const (
	levelGateway = iota
	levelListener
	levelRoute
	levelRule
	levels
)

// path is what is above a rule at a listener, by level; a zero Target where there is
// nothing to point at.
type path [levels]translate.Target

func pathOf(a *translate.Attachment) path {
	gateway := translate.Target{Kind: kindGateway, Name: string(a.Parent.Name)}
	if a.Parent.Namespace != nil {
		gateway.Namespace = string(*a.Parent.Namespace)
	}
	listener, rule := gateway, a.Route
	listener.SectionName, rule.SectionName = a.Listener, a.RuleName
	p := path{levelGateway: gateway, levelListener: listener, levelRoute: a.Route}
	if a.RuleName != "" {
		p[levelRule] = rule
	}
	return p
}

// objectKey names an EnvoyExtensionPolicy that is to be written.
type objectKey struct{ namespace, name string }

// object is an EnvoyExtensionPolicy that is to be written.
type object struct {
	targets []translate.Target // sorted
	longest time.Duration
	owners  []string // policies, namespace/name, sorted
}

// plan is what is to be written, and what cannot be.
type plan struct {
	objects map[objectKey]*object
	// carriers are, by attachment, the object that attaches it; empty where verdicts
	// says Blocked.
	carriers []objectKey
	verdicts []attach.Verdict
}

// makePlan chooses for each attachment the least specific of the targets of its
// policies at which nothing of others is in the way: a policy on a Gateway is one
// target, however many routes are below.
func makePlan(attachments []translate.Attachment, others extensions) *plan {
	p := &plan{
		objects: map[objectKey]*object{}, carriers: make([]objectKey, len(attachments)),
		verdicts: make([]attach.Verdict, len(attachments)),
	}
	for i := range attachments {
		a := &attachments[i]
		target, obstacle := choose(a, others)
		if obstacle != "" {
			p.verdicts[i] = attach.Verdict{State: attach.Blocked, Message: obstacle}
			continue
		}
		key := objectKey{target.Namespace, nameRoutes}
		if target.Kind == kindGateway {
			key.name = nameGateways
		}
		o := p.objects[key]
		if o == nil {
			o = &object{}
			p.objects[key] = o
		}
		o.targets = append(o.targets, target)
		o.longest = max(o.longest, a.LongestWait)
		for _, l := range a.Layers {
			if l.Target.Namespace == target.Namespace {
				o.owners = append(o.owners, l.Policy)
			}
		}
		p.carriers[i] = key
	}
	for _, o := range p.objects {
		slices.SortFunc(o.targets, compareTargets)
		o.targets = slices.Compact(o.targets)
		slices.Sort(o.owners)
		o.owners = slices.Compact(o.owners)
	}
	return p
}

// choose returns the target to attach at, or what is in the way of the least specific.
func choose(a *translate.Attachment, others extensions) (translate.Target, string) {
	var first string
	above := pathOf(a)
	for _, l := range a.Layers {
		level := slices.Index(above[:], l.Target)
		if level < 0 {
			continue
		}
		obstacle := inTheWay(above, level, others)
		if obstacle == "" {
			return l.Target, ""
		}
		first = cmp.Or(first, obstacle)
	}
	return translate.Target{}, cmp.Or(first, "None of the policy's targets can carry the filter here.")
}

// inTheWay says which EnvoyExtensionPolicy of somebody else keeps the rule from being
// attached at the level, without being silenced or silencing; "": none does.
//
// In Envoy Gateway a policy replaces the less specific ones, unless it is on a route or
// rule and has a mergeType: then it is merged into the closest one on a listener or
// Gateway, list by list, and its ext_proc filters replace those there.
func inTheWay(above path, level int, others extensions) string {
	at := func(level int) (extension, bool) {
		if above[level] == (translate.Target{}) {
			return extension{}, false
		}
		e, ok := others[above[level]]
		return e, ok
	}
	if e, ok := at(level); ok {
		return fmt.Sprintf("EnvoyExtensionPolicy %s targets %s already, and Envoy Gateway takes one for each target. "+
			"Move what it does to a more specific target, or add weir to its extProc.", e.name, describe(above[level]))
	}
	for more := level + 1; more < levels; more++ {
		e, ok := at(more)
		if ok && (level >= levelRoute || !e.merges || e.extProc) {
			return fmt.Sprintf("EnvoyExtensionPolicy %s on %s replaces the filter from %s. Give it a mergeType, "+
				"and no extProc of its own; or add weir to its extProc.", e.name, describe(above[more]), describe(above[level]))
		}
	}
	return wouldSilence(above, level, at)
}

// wouldSilence says which of the less specific EnvoyExtensionPolicies ours would silence
// at the level.
func wouldSilence(above path, level int, at func(int) (extension, bool)) string {
	switch level {
	case levelListener:
		if e, ok := at(levelGateway); ok {
			return fmt.Sprintf("EnvoyExtensionPolicy %s on %s would be silenced on listener %s. Target the Gateway's "+
				"routes instead.", e.name, describe(above[levelGateway]), above[level].SectionName)
		}
	case levelRule:
		if e, ok := at(levelRoute); ok {
			return fmt.Sprintf("EnvoyExtensionPolicy %s on %s would be silenced on rule %s. Add weir to its extProc.",
				e.name, describe(above[levelRoute]), above[level].SectionName)
		}
		fallthrough
	case levelRoute:
		e, ok := at(levelListener)
		if !ok {
			e, ok = at(levelGateway)
		}
		if ok && e.extProc {
			return fmt.Sprintf("The ext_proc filters of EnvoyExtensionPolicy %s would be silenced on %s. "+
				"Add weir to its extProc.", e.name, describe(above[level]))
		}
	}
	return ""
}

// describe names a target for a user.
func describe(t translate.Target) string {
	s := t.Kind + " " + t.Namespace + "/" + t.Name
	if t.SectionName != "" {
		s += ", section " + t.SectionName
	}
	return s
}
