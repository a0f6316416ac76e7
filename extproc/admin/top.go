package admin

import (
	"net/http"
	"net/url"
	"strconv"
)

const (
	defaultTop = 20
	maxTop     = 1000
)

// TopRequest is the query of GET /v1/top.
type TopRequest struct {
	Limit  int    // 1 to 1000
	Policy string // namespace/name; empty: all
}

// TopResult is what GET /v1/top answers: the keys that are read most at present,
// the first most.
type TopResult struct {
	// HalfLifeSeconds is how long it takes until a read counts half.
	HalfLifeSeconds float64  `json:"halfLifeSeconds"`
	Keys            []HotKey `json:"keys"`
}

// HotKey is a key that is read often.
type HotKey struct {
	URI    string  `json:"uri"`
	Policy string  `json:"policy"`
	Route  string  `json:"route,omitempty"`
	Rate   float64 `json:"rate"` // reads per second, of all variants
	// Headers are the request fields that the key or Vary goes by, Cookies the names
	// of the cookies that do; their values are secrets and not told.
	Headers map[string]string `json:"headers,omitempty"`
	Cookies []string          `json:"cookies,omitempty"`
}

func parseTop(q url.Values) (TopRequest, error) {
	r := TopRequest{Limit: defaultTop, Policy: q.Get("policy")}
	if err := knownParameters(q, "limit", "policy"); err != nil {
		return r, err
	}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxTop {
			return r, BadRequest("want a number from 1 to 1000", "limit %q", s)
		}
		r.Limit = n
	}
	return r, nil
}

func (h *handler) top(r *http.Request) (any, error) {
	q, err := parseTop(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return h.backend.Top(r.Context(), q)
}
