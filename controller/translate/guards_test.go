package translate_test

import (
	"slices"
	"testing"

	"github.com/weirproxy/weir/controller/translate"
)

// TestNothingIsAttachedWhereItIsRefused reads the Guards in another way: class by class,
// from the rule to the Gateway.
func TestNothingIsAttachedWhereItIsRefused(t *testing.T) {
	t.Parallel()
	refusing := 0
	for seed := range uint64(inputs) {
		in := newRandom(seed).input(false)
		for _, g := range in.Guards {
			if g.RefuseReason != "" {
				refusing++
			}
		}
		out := translate.Translate(in)
		for i := range out.Attached {
			if a := &out.Attached[i]; refused(in.Guards, a) {
				t.Fatalf("seed %d: %s is attached at %s:%s", seed, a.Route, viewRef(a.Parent), a.Listener)
			}
		}
	}
	if refusing < inputs/10 {
		t.Errorf("only %d Guards refuse: the inputs are too tame", refusing)
	}
}

func refused(guards []translate.Guard, a *translate.Attachment) bool {
	parent := translate.Target{Kind: string(*a.Parent.Kind), Namespace: string(*a.Parent.Namespace), Name: string(a.Parent.Name)}
	rule, listener := a.Route, parent
	rule.SectionName, listener.SectionName = a.RuleName, a.Listener
	path := []translate.Target{rule, a.Route, listener, parent}
	for _, class := range []string{"", "x"} {
		for _, level := range slices.Compact(path) {
			lifts := false
			for _, g := range guards {
				if g.Target != level || g.Class != class || g.Controller != "" && g.Controller != a.Controller {
					continue
				}
				if g.RefuseReason != "" {
					return true
				}
				lifts = lifts || !g.Inherits
			}
			if lifts {
				break
			}
		}
	}
	return false
}
