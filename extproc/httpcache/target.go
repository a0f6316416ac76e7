package httpcache

import "strings"

// TargetOf returns the target URI of a request, normalised as InvalidatedBy does.
func TargetOf(req *Request) Target {
	return Target{
		Scheme:    strings.ToLower(req.Scheme),
		Authority: normalAuthority(req.Scheme, req.Authority),
		Path:      req.Path,
	}
}

// String returns the URI.
func (t Target) String() string { return t.Scheme + "://" + t.Authority + t.Path }
