package admin

import (
	"cmp"
	"slices"
	"strings"
)

// InvalidateRequest is the body of POST /v1/invalidate.
type InvalidateRequest struct {
	By        string `json:"by"`
	Value     string `json:"value,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Mode      string `json:"mode,omitempty"`
}

// What an invalidation selects by, and how hard it is.
const (
	ByURL       = "Url"
	ByTag       = "Tag"
	ByHost      = "Host"
	ByPolicy    = "Policy"
	ByNamespace = "Namespace"
	ByAll       = "All"

	ModeHard = "Hard" // never served again
	ModeSoft = "Soft" // stale from now on
)

// InvalidateResult says what an invalidation covers, and what is not known of it.
type InvalidateResult struct {
	InvalidateRequest
	// Position is the invalidation's place in the order of all; it beats every
	// fetch that began before. 0 if it is yet to get one (Queued).
	Position uint64 `json:"position"`
	// Covers says in words which replicas follow it.
	Covers string `json:"covers"`
	// Confirmed of so many Replicas have applied it; Silent are those that have not.
	// Replicas counts those, too, that fell silent lately and may be cut off.
	Confirmed int      `json:"confirmed"`
	Replicas  int      `json:"replicas"`
	Silent    []string `json:"silent,omitempty"`
	// Certain says that no replica can serve what is covered from now on. It is false
	// without Redis too: whether there are other processes is not known then.
	Certain bool `json:"certain"`
	// Queued says that Redis is away: it holds in this process, and the others are
	// told once Redis is back.
	Queued bool `json:"queued,omitempty"`
	// TookSeconds is how long that took.
	TookSeconds float64 `json:"tookSeconds"`
	// Matched counts the entries in this process's memory that are named;
	// MatchedAtLeast says that not all of it was looked at.
	Matched        int  `json:"matched"`
	MatchedAtLeast bool `json:"matchedAtLeast,omitempty"`
	// Warnings say what cannot be known, and what may be a mistake.
	Warnings []string `json:"warnings,omitempty"`
}

const invalidateHint = `want {"by": "Url|Tag|Host|Policy|Namespace|All", "value": "…", ` +
	`"namespace": "…", "mode": "Hard|Soft"}`

// Normalize checks the request and brings it into the one form the backend
// knows: mode given, a policy split into namespace and name, a namespace moved
// from value to its own field.
func (r InvalidateRequest) Normalize() (InvalidateRequest, error) {
	if r.Mode == "" {
		r.Mode = ModeHard
	}
	if r.Mode != ModeHard && r.Mode != ModeSoft {
		return r, BadRequest(invalidateHint, "mode %q: want Hard or Soft", r.Mode)
	}
	if !slices.Contains([]string{ByURL, ByTag, ByHost, ByPolicy, ByNamespace, ByAll}, r.By) {
		return r, BadRequest(invalidateHint, "by %q: want Url, Tag, Host, Policy, Namespace or All", r.By)
	}
	if r.By == ByAll {
		if r.Value != "" || r.Namespace != "" {
			return r, BadRequest("by Namespace covers one namespace", "by All takes neither value nor namespace")
		}
		return r, nil
	}
	if r.Value == "" && (r.By != ByNamespace || r.Namespace == "") {
		return r, BadRequest(invalidateHint, "by %s wants a value", r.By)
	}
	return r.normalizeValue()
}

func (r InvalidateRequest) normalizeValue() (InvalidateRequest, error) {
	switch r.By {
	case ByURL:
		if _, err := parseURL(r.Value); err != nil {
			return r, err
		}
	case ByHost:
		if strings.ContainsAny(r.Value, "/?#@ ") {
			return r, BadRequest("such as shop.example", "value %q is no host", r.Value)
		}
		r.Value = strings.ToLower(r.Value)
	case ByTag:
		if r.Namespace == "" {
			return r, BadRequest("tags belong to a namespace: add it", "by Tag wants a namespace")
		}
	case ByPolicy:
		return r.splitPolicy()
	case ByNamespace:
		if r.Value != "" && r.Namespace != "" && r.Value != r.Namespace {
			return r, BadRequest("give one of them", "value %q and namespace %q differ", r.Value, r.Namespace)
		}
		r.Namespace, r.Value = cmp.Or(r.Namespace, r.Value), ""
	}
	return r, nil
}

// splitPolicy takes namespace/name apart.
func (r InvalidateRequest) splitPolicy() (InvalidateRequest, error) {
	value := r.Value
	namespace, name, qualified := strings.Cut(value, "/")
	if qualified && (r.Namespace == "" || r.Namespace == namespace) {
		r.Namespace, r.Value = namespace, name
	}
	if r.Namespace == "" || r.Value == "" || strings.Contains(r.Value, "/") {
		return r, BadRequest("such as shop/catalog", "value %q names no policy", value)
	}
	return r, nil
}
