package conformance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// checkCacheStatus demands that Cache-Status, where it is, is well formed by RFC 9211 with weir's member last, and
// that the conditions hold for that member.
func checkCacheStatus(t *testing.T, what string, h http.Header, conditions []string) {
	t.Helper()
	lines := h.Values("Cache-Status")
	if len(lines) == 0 {
		if len(conditions) > 0 {
			t.Errorf("%s: no Cache-Status, want %q", what, conditions)
		}
		return
	}
	member, err := lastMember(lines)
	if err != nil {
		t.Errorf("%s: Cache-Status: %q: %v", what, lines, err)
		return
	}
	for _, c := range conditions {
		if err := matchCacheStatus(member, c); err != nil {
			t.Errorf("%s: Cache-Status: %q: %v", what, lines, err)
		}
	}
}

// lastMember parses the list and returns its last member, which must be weir's and well formed.
func lastMember(lines []string) (*httpsfv.Params, error) {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil, fmt.Errorf("not a list of structured fields: %w", err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("empty")
	}
	item, ok := list[len(list)-1].(httpsfv.Item)
	if !ok {
		return nil, fmt.Errorf("the last member is an inner list")
	}
	if name := fmt.Sprint(item.Value); name != "weir" {
		return nil, fmt.Errorf("the last member is %q, want weir", name)
	}
	return item.Params, wellFormed(item.Params)
}

// wellFormed checks the parameters' types (RFC 9211 §2), and that hit and fwd exclude each other (§2.1, §2.2).
func wellFormed(p *httpsfv.Params) error {
	for _, name := range p.Names() {
		v, _ := p.Get(name)
		var ok bool
		switch name {
		case "hit", "stored", "collapsed":
			_, ok = v.(bool)
		case "ttl", "fwd-status":
			_, ok = v.(int64)
		case "fwd":
			token, isToken := v.(httpsfv.Token)
			ok = isToken && slices.Contains([]httpsfv.Token{
				"bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial",
			}, token)
		case "key":
			_, ok = v.(string)
		case "detail":
			_, isToken := v.(httpsfv.Token)
			_, isString := v.(string)
			ok = isToken || isString
		}
		if !ok {
			return fmt.Errorf("parameter %s is %v (%T)", name, v, v)
		}
	}
	_, hit := p.Get("hit")
	if _, fwd := p.Get("fwd"); hit == fwd {
		return fmt.Errorf("hit: %v, fwd: %v: want one of them", hit, fwd)
	}
	return nil
}

// matchCacheStatus checks one condition: "hit" (there), "!stored" (not there), "fwd=stale", "ttl<0", "ttl>=80".
func matchCacheStatus(p *httpsfv.Params, condition string) error {
	if name, not := strings.CutPrefix(condition, "!"); not {
		if v, ok := p.Get(name); ok && v != false {
			return fmt.Errorf("%s is there", name)
		}
		return nil
	}
	for _, op := range []string{">=", "<", "="} {
		name, want, ok := strings.Cut(condition, op)
		if !ok {
			continue
		}
		v, _ := p.Get(name)
		if !compare(v, op, want) {
			return fmt.Errorf("%s is %v, want %s", name, v, condition)
		}
		return nil
	}
	if v, ok := p.Get(condition); !ok || v == false {
		return fmt.Errorf("no %s", condition)
	}
	return nil
}

func compare(v any, op, want string) bool {
	if op == "=" {
		return slices.Contains(strings.Split(want, "|"), fmt.Sprint(v))
	}
	n, isNumber := v.(int64)
	var bound int64
	if _, err := fmt.Sscan(want, &bound); err != nil || !isNumber {
		return false
	}
	if op == "<" {
		return n < bound
	}
	return n >= bound
}
