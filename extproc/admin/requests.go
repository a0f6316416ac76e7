package admin

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EntriesRequest is the query of GET /v1/entries.
type EntriesRequest struct {
	Limit  int    // 1 to maxPage
	After  string // cursor: Next of the page before
	Policy string // namespace/name; empty: all
	Host   string // empty: all
}

// EntriesPage is one page of entries, in an order that stays while the store
// does.
type EntriesPage struct {
	Entries []Entry `json:"entries"`
	Next    string  `json:"next,omitempty"` // cursor of the next page; empty: this is the last
}

// Entry is one stored response, without its body.
type Entry struct {
	URI             string            `json:"uri"`
	Policy          string            `json:"policy"`
	Vary            map[string]string `json:"vary,omitempty"` // the request fields that select this variant
	Status          int               `json:"status"`
	State           string            `json:"state"`  // fresh, stale or kept (for validation only)
	Places          []string          `json:"places"` // memory; and shared, if the fleet has it too
	AgeSeconds      int64             `json:"ageSeconds"`
	LifetimeSeconds int64             `json:"lifetimeSeconds"`
	StaleSeconds    int64             `json:"staleSeconds,omitempty"` // windows after the lifetime
	BodyBytes       int64             `json:"bodyBytes"`
	HeldBytes       int64             `json:"heldBytes"` // what the store accounts for
	Negative        bool              `json:"negative,omitempty"`
	Tags            []string          `json:"tags,omitempty"`
	ExpiresAt       time.Time         `json:"expiresAt"`
}

const (
	defaultPage = 100
	maxPage     = 1000
)

// knownParameters refuses query parameters that are not among names, so that a
// mistyped filter is not taken for none.
func knownParameters(q url.Values, names ...string) error {
	for name := range q {
		if !slices.Contains(names, name) {
			return BadRequest("known are "+strings.Join(names, ", "), "unknown parameter %q", name)
		}
	}
	return nil
}

func parseEntries(q url.Values) (EntriesRequest, error) {
	r := EntriesRequest{Limit: defaultPage, After: q.Get("after"), Policy: q.Get("policy"),
		Host: strings.ToLower(q.Get("host"))}
	if err := knownParameters(q, "limit", "after", "policy", "host"); err != nil {
		return r, err
	}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxPage {
			return r, BadRequest("want a number from 1 to 1000", "limit %q", s)
		}
		r.Limit = n
	}
	return r, nil
}
