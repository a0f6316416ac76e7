package cachepolicy

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/weirproxy/weir/cachepolicy/feed"
)

// Bounds of what a rule matches by.
const (
	// maxPathDepth bounds the segments of a path prefix, and so the look-ups that a
	// request's path costs.
	maxPathDepth = 64
	maxRegex     = 4096 // bytes of a regular expression
)

// matcher is a match of a rule, compiled: all that it says must hold.
type matcher struct {
	path    string         // exact, or a prefix without its last slash
	kind    pathKind       // of path
	regex   *regexp.Regexp // pathRegex: of the whole path
	method  string         // empty: every method
	headers []valueMatcher
	query   []valueMatcher
}

type pathKind uint8

const (
	pathPrefix pathKind = iota
	pathExact
	pathRegex
)

// valueMatcher matches a header field or a query parameter.
type valueMatcher struct {
	name, value string
	regex       *regexp.Regexp // nil: value, exactly
}

func (v *valueMatcher) matches(value string) bool {
	if v.regex != nil {
		return v.regex.MatchString(value)
	}
	return value == v.value
}

// compileMatches compiles the matches of a rule; no match is a match of every path.
func compileMatches(list []feed.Match) ([]matcher, error) {
	if len(list) == 0 {
		return []matcher{{}}, nil
	}
	out := make([]matcher, len(list))
	for i := range list {
		m, err := compileMatch(&list[i])
		if err != nil {
			return nil, fmt.Errorf("matches[%d].%w", i, err)
		}
		out[i] = m
	}
	return out, nil
}

func compileMatch(in *feed.Match) (m matcher, err error) {
	m.method = in.Method
	if in.Path != nil {
		if err := m.compilePath(in.Path); err != nil {
			return m, fmt.Errorf("path: %w", err)
		}
	}
	if m.headers, err = compileValues(in.Headers); err != nil {
		return m, fmt.Errorf("headers%w", err)
	}
	for i := range m.headers {
		m.headers[i].name = asciiLower(m.headers[i].name)
	}
	if m.query, err = compileValues(in.Query); err != nil {
		return m, fmt.Errorf("query%w", err)
	}
	return m, nil
}

func (m *matcher) compilePath(p *feed.PathMatch) (err error) {
	switch p.Type {
	case "RegularExpression":
		m.kind = pathRegex
		m.regex, err = compileRegex(p.Value)
		return err
	case "Exact", "PathPrefix":
	default:
		return fmt.Errorf("type %q: want Exact, PathPrefix or RegularExpression", p.Type)
	}
	if !strings.HasPrefix(p.Value, "/") {
		return fmt.Errorf("%q: must begin with a slash", p.Value)
	}
	if p.Type == "Exact" {
		m.kind, m.path = pathExact, p.Value
		return nil
	}
	m.path = strings.TrimSuffix(p.Value, "/")
	if n := strings.Count(m.path, "/"); n > maxPathDepth {
		return fmt.Errorf("a prefix of %d segments: at most %d are possible", n, maxPathDepth)
	}
	return nil
}

func compileValues(list []feed.ValueMatch) ([]valueMatcher, error) {
	var out []valueMatcher
	for i := range list {
		v := valueMatcher{name: list[i].Name, value: list[i].Value}
		var err error
		switch {
		case v.name == "":
			err = fmt.Errorf("no name")
		case list[i].Type == "RegularExpression":
			v.regex, err = compileRegex(v.value)
		case list[i].Type != "Exact":
			err = fmt.Errorf("type %q: want Exact or RegularExpression", list[i].Type)
		}
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// compileRegex compiles an RE2 expression that matches the whole, as Envoy does it.
func compileRegex(s string) (*regexp.Regexp, error) {
	if len(s) > maxRegex {
		return nil, fmt.Errorf("a regular expression of %d bytes: at most %d are possible", len(s), maxRegex)
	}
	return regexp.Compile(`\A(?:` + s + `)\z`)
}

// MatchInput is what of a request the rules of routes match by.
type MatchInput struct {
	Authority string // as received
	Method    string
	Path      string // path and query as received
	Header    HeaderLookup
}

// matches reports whether the rest of a match holds, of which the path does.
func (m *matcher) matches(in *MatchInput, query string) bool {
	if m.method != "" && m.method != in.Method {
		return false
	}
	for i := range m.headers {
		value, ok := in.Header(m.headers[i].name)
		if !ok || !m.headers[i].matches(value) {
			return false
		}
	}
	for i := range m.query {
		value, ok := queryValue(query, m.query[i].name)
		if !ok || !m.query[i].matches(value) {
			return false
		}
	}
	return true
}

// queryValue returns the first value of a parameter, decoded.
func queryValue(query, name string) (string, bool) {
	for more := true; more; {
		var parameter string
		parameter, query, more = strings.Cut(query, "&")
		key, value, _ := strings.Cut(parameter, "=")
		if unescape(key) == name {
			return unescape(value), true
		}
	}
	return "", false
}

func unescape(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}
