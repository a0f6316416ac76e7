package cachepolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds of what a request's host and path cost in look-ups.
const (
	maxHost   = 253 // bytes of a host name (RFC 1035 §2.3.4, without the last dot)
	anyHost   = ""
	maxLabels = 32 // of a host, that are taken off one by one to find a wildcard
)

// hosts finds rules by what they match. It is immutable. Hosts are kept as they are,
// "*.example" as ".example", and every host as the empty string.
type hosts struct{ byHost index[*hostRules] }

// hostRules are the rules of one host, by path.
type hostRules struct {
	exact, prefix index[[]candidate] // a prefix without its last slash
	regex         []candidate
	size          int
}

// candidate is one match of a rule. Candidates of the same path stand in the order
// of the Gateway API: the first that matches is the one.
type candidate struct {
	rule  *rule
	match *matcher
	at    int // of the match in its rule
}

// find returns the rule that matches a request best: of the most specific host,
// with the most specific path; nil: none.
func (h *hosts) find(in *MatchInput) *rule {
	if h.byHost.size == 0 {
		return nil
	}
	host := hostOf(in.Authority)
	path, query, _ := strings.Cut(in.Path, "?")
	if len(host) > maxHost {
		return nil
	}
	if r := h.under(host, in, path, query); r != nil {
		return r
	}
	rest := host
	for range maxLabels {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			break
		}
		if r := h.under(rest[dot:], in, path, query); r != nil {
			return r
		}
		rest = rest[dot+1:]
	}
	return h.under(anyHost, in, path, query)
}

// under returns the best rule of one host.
func (h *hosts) under(host string, in *MatchInput, path, query string) *rule {
	rules, ok := h.byHost.get(host)
	if !ok {
		return nil
	}
	if r := first(&rules.exact, path, in, query); r != nil {
		return r
	}
	if r := rules.longest(in, path, query); r != nil {
		return r
	}
	for i := range rules.regex {
		c := &rules.regex[i]
		if c.match.regex.MatchString(path) && c.match.matches(in, query) {
			return c.rule
		}
	}
	return nil
}

// longest returns the rule with the longest prefix of the path, in whole segments.
func (r *hostRules) longest(in *MatchInput, path, query string) *rule {
	var ends [maxPathDepth + 1]int // where prefixes of the path end, the shortest first
	n := 1                         // the empty one
	for i := 1; i <= len(path) && n < len(ends); i++ {
		if i == len(path) || path[i] == '/' {
			ends[n] = i
			n++
		}
	}
	for i := n - 1; i >= 0; i-- {
		if found := first(&r.prefix, path[:ends[i]], in, query); found != nil {
			return found
		}
	}
	return nil
}

func first(x *index[[]candidate], path string, in *MatchInput, query string) *rule {
	list, _ := x.get(path)
	for i := range list {
		if list[i].match.matches(in, query) {
			return list[i].rule
		}
	}
	return nil
}

// compareCandidates is the order of the Gateway API for matches of the same path:
// method, more headers, more query parameters, then the older route, then the name,
// then the place.
func compareCandidates(a, b candidate) int {
	said := func(m *matcher) int {
		if m.method != "" {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(said(b.match), said(a.match)),
		cmp.Compare(len(b.match.headers), len(a.match.headers)),
		cmp.Compare(len(b.match.query), len(a.match.query)),
		compareRules(a.rule, b.rule),
		cmp.Compare(a.at, b.at),
	)
}

// hostKey returns where the rules of a host are kept.
func hostKey(host string) (string, error) {
	name := asciiLower(host)
	suffix, wildcard := strings.CutPrefix(name, "*")
	switch {
	case name == "*":
		return anyHost, nil
	case name == "" || len(name) > maxHost || strings.ContainsAny(suffix, "*:/ ") ||
		wildcard && !strings.HasPrefix(suffix, "."):
		return "", fmt.Errorf("host %s: want a name, which may begin with an asterisk and a dot", quote(host))
	}
	return suffix, nil
}

// hostsEdit is hosts while they are changed.
type hostsEdit struct {
	byHost *indexEdit[*hostRules]
	open   map[string]*hostRulesEdit
}

type hostRulesEdit struct {
	exact, prefix *indexEdit[[]candidate]
	regex         []candidate
	size          int
}

func (h *hosts) edit() *hostsEdit {
	return &hostsEdit{byHost: h.byHost.edit(), open: map[string]*hostRulesEdit{}}
}

func (e *hostsEdit) at(host string) *hostRulesEdit {
	if open, ok := e.open[host]; ok {
		return open
	}
	old, ok := e.byHost.get(host)
	if !ok {
		old = &hostRules{}
	}
	open := &hostRulesEdit{old.exact.edit(), old.prefix.edit(), slices.Clone(old.regex), old.size}
	e.open[host] = open
	return open
}

// add adds the matches of a rule.
func (e *hostsEdit) add(r *rule) {
	for _, host := range r.hosts {
		h := e.at(host)
		for i := range r.matches {
			h.change(candidate{r, &r.matches[i], i}, func(list []candidate, c candidate) []candidate {
				at, _ := slices.BinarySearchFunc(list, c, compareCandidates)
				return slices.Insert(slices.Clone(list), at, c)
			})
			h.size++
		}
	}
}

// remove takes the matches of a rule away.
func (e *hostsEdit) remove(r *rule) {
	for _, host := range r.hosts {
		h := e.at(host)
		for i := range r.matches {
			h.change(candidate{r, &r.matches[i], i}, func(list []candidate, c candidate) []candidate {
				return slices.DeleteFunc(slices.Clone(list), func(have candidate) bool {
					return have.rule == c.rule && have.at == c.at
				})
			})
			h.size--
		}
	}
}

// change replaces the list that a candidate stands in.
func (h *hostRulesEdit) change(c candidate, with func([]candidate, candidate) []candidate) {
	if c.match.kind == pathRegex {
		h.regex = with(h.regex, c)
		return
	}
	x := h.prefix
	if c.match.kind == pathExact {
		x = h.exact
	}
	list, _ := x.get(c.match.path)
	if list = with(list, c); len(list) == 0 {
		x.remove(c.match.path)
	} else {
		x.set(c.match.path, list)
	}
}

func (e *hostsEdit) done() hosts {
	for host, open := range e.open {
		if open.size == 0 {
			e.byHost.remove(host)
			continue
		}
		e.byHost.set(host, &hostRules{open.exact.done(), open.prefix.done(), open.regex, open.size})
	}
	return hosts{e.byHost.done()}
}
