package admin

import (
	"net/http"
	"net/url"

	"github.com/weirproxy/weir/extproc/warm"
)

// maxWarmBytes bounds the body of a WarmRequest: a list, as JSON.
const maxWarmBytes = 2 * warm.MaxFileBytes

// WarmRequest is the body of POST /v1/warm: URLs, or a list as --warm-file has it,
// or both.
type WarmRequest struct {
	URLs []string `json:"urls,omitempty"`
	List string   `json:"list,omitempty"`
	// Headers ("Name: value"), Policy (namespace/name) and Route hold for the URLs of
	// URLs; those of List come with their own.
	Headers []string `json:"headers,omitempty"`
	Policy  string   `json:"policy,omitempty"`
	Route   string   `json:"route,omitempty"`
}

// WarmResult says under which ID the URLs are loaded.
type WarmResult struct {
	Job   string `json:"job"`
	Total int    `json:"total"`
}

// WarmJobs is what GET /v1/warm answers.
type WarmJobs struct {
	Jobs []warm.Job `json:"jobs"`
}

// Requests returns what is to be loaded.
func (r *WarmRequest) Requests() ([]warm.Request, error) {
	requests, err := warm.ParseFile("list", []byte(r.List))
	if err != nil {
		return nil, BadRequest("", "%s", err)
	}
	for _, text := range r.URLs {
		one, err := warm.ParseURL(text)
		if err != nil {
			return nil, BadRequest("such as https://shop.example/products?id=7", "%s", err)
		}
		for _, line := range r.Headers {
			if err := one.AddHeader(line); err != nil {
				return nil, BadRequest("", "%s", err)
			}
		}
		one.Policy, one.Route = r.Policy, r.Route
		requests = append(requests, one)
	}
	if len(requests) == 0 {
		return nil, BadRequest(`want {"urls": ["https://…"]}`, "no URLs")
	}
	if len(requests) > warm.MaxRequests {
		return nil, BadRequest("send them in several requests", "%d URLs are more than %d", len(requests), warm.MaxRequests)
	}
	return requests, nil
}

func (h *handler) warm(r *http.Request) (any, error) {
	var body WarmRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	return h.backend.Warm(r.Context(), body)
}

func (h *handler) warmJobs(r *http.Request) (any, error) {
	q := r.URL.Query()
	if err := knownParameters(q, "job"); err != nil {
		return nil, err
	}
	return jobsOf(h.backend.WarmJobs(), q)
}

// jobsOf returns all jobs, or the one that is asked for.
func jobsOf(jobs []warm.Job, q url.Values) (WarmJobs, error) {
	if !q.Has("job") {
		return WarmJobs{Jobs: append([]warm.Job{}, jobs...)}, nil
	}
	for _, j := range jobs {
		if j.ID == q.Get("job") {
			return WarmJobs{Jobs: []warm.Job{j}}, nil
		}
	}
	return WarmJobs{}, &Error{Status: http.StatusNotFound, Message: "no warm-up job " + q.Get("job"),
		Hint: "the last ones are in /v1/warm"}
}
