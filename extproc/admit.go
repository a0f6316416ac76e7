package extproc

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/wire"
)

// fetched is one answer to a fetch, with all that decides whether it is kept.
type fetched struct {
	binding *cachepolicy.Binding
	key     *cachepolicy.Key
	req     *httpcache.Request
	rules   *httpcache.Rules
	resp    *httpcache.Response
	// unreachable: Envoy made the answer, the origin gave none.
	unreachable bool
	// stored is what the store has of this variant, or nil.
	stored *store.Entry
	// asked and now are when the request went on and when the answer's headers came.
	asked, now time.Time
	// birth is the invalidation position when the request went on.
	birth uint64
	// draw is uniform in (0, 1].
	draw float64
}

// admission is the decision about an answer.
type admission struct {
	// entry is what is stored once its body is whole; nil: not stored.
	entry *store.Entry
	// share: the answer may go to others who asked while it was fetched.
	share bool
	// failed: the fetch failed (RFC 5861 §4): a stale copy may stand in.
	failed bool
	// drop: what is stored is gone at the origin (404, 410).
	drop   bool
	reason httpcache.Reason
}

// admit decides whether an answer is stored and shared: the HTTP rules say
// whether it may be, the policy how long it lives.
func admit(f *fetched) admission {
	v := httpcache.MayStore(f.req, f.resp, f.rules)
	a := admission{reason: v.Reason, failed: f.unreachable || isFetchError(f.resp.Status)}
	a.drop = f.stored != nil && (f.resp.Status == 404 || f.resp.Status == 410)
	life := lifetime(f, &v)
	switch {
	case !v.OK:
		return a
	case !life.OK && !v.ValidateAlways:
		a.reason = reasonNoLifetime
		return a
	case tooLarge(f.resp.Header, f.binding.Policy.Storage.MaxObjectSize):
		a.reason = reasonTooLarge
		return a
	}
	e := newEntry(f, &v, life)
	if reason := unkept(e); reason != "" {
		a.reason = reason
		return a
	}
	a.drop = false
	a.share = v.Shareable
	a.entry = e
	if a.entry.Lifetime <= 0 && !hasValidator(a.entry.Header) && a.entry.WhileRevalidate <= 0 && a.entry.IfError <= 0 &&
		!a.share {
		a.entry, a.reason = nil, reasonNoLifetime
	}
	return a
}

// isFetchError reports whether a status is an error in the sense of
// stale-if-error (RFC 5861 §4).
func isFetchError(status int) bool {
	return status == 500 || status == 502 || status == 503 || status == 504
}

func tooLarge(h httpcache.Fields, limit int64) bool {
	return contentLength(h) > limit
}

func hasValidator(h httpcache.Fields) bool { return h.Has("etag") || h.Has("last-modified") }

// lifetime asks the policy how long the answer is fresh.
func lifetime(f *fetched, v *httpcache.StoreVerdict) cachepolicy.Lifetime {
	in := cachepolicy.LifetimeInput{
		Status: f.resp.Status, Unreachable: f.unreachable, Prohibited: !v.OK,
		PolicyMayExtend: v.PolicyMayExtend && !v.ValidateAlways,
		Anonymous:       !httpcache.CarriesCredentials(f.req, f.rules),
	}
	in.Stated, _, in.HasStated = httpcache.StatedLifetime(f.resp, v.Directives, f.now)
	if !in.HasStated && v.Heuristic {
		in.Heuristic, in.HasHeuristic = httpcache.HeuristicLifetime(f.resp, f.now)
	}
	return f.binding.Policy.Lifetime(in)
}

func newEntry(f *fetched, v *httpcache.StoreVerdict, life cachepolicy.Lifetime) *store.Entry {
	p := f.binding.Policy
	vary := httpcache.ParseVary(f.resp.Header)
	e := &store.Entry{
		Key: *f.key, URI: ResourceOf(&p.Key, f.req), Vary: vary, VaryValues: vary.Select(f.req.Header),
		Status: f.resp.Status, Header: keptFields(f, v),
		ResponseTime: f.now, InitialAge: httpcache.InitialAge(f.resp, f.asked, f.now),
		Lifetime:       cachepolicy.Jitter(life.TTL, p.JitterPercent, 1-f.draw),
		ValidateAlways: v.ValidateAlways, Negative: life.Negative, Unreachable: f.unreachable,
		Cost: f.now.Sub(f.asked), Policy: p.String(), Birth: f.birth,
		Tags: tagsOf(f.resp.Header, p.Tags.ResponseHeader),
	}
	if f.stored != nil {
		e.Cost = cachepolicy.SmoothCost(f.stored.Cost, e.Cost)
	}
	if !life.Negative {
		e.WhileRevalidate, e.IfError = httpcache.StaleWindows(v.Directives, f.rules)
		if life.TTL <= 0 && !v.Directives.StaleWhileRevalidate.Set {
			// Who says max-age=0 wants each use validated: the policy's own window is
			// for answers that had a life.
			e.WhileRevalidate = 0
		}
	}
	e.Body = store.NewBody(contentLength(f.resp.Header))
	return e
}

// keptFields are the fields that are kept: without Envoy's own, which are about
// the fetch and which Envoy lets nobody else set, and without a Content-Length
// that is none, which Envoy would pass on.
func keptFields(f *fetched, v *httpcache.StoreVerdict) httpcache.Fields {
	kept := httpcache.WithDate(httpcache.StorableFields(f.resp, v.Directives, f.rules), f.now)
	unknown := contentLength(f.resp.Header) < 0
	return slices.DeleteFunc(kept, func(f httpcache.Field) bool {
		return strings.HasPrefix(f.Name, "x-envoy-") || unknown && f.Name == "content-length"
	})
}

// unkept is the reason not to keep an entry for what it carries, or none.
func unkept(e *store.Entry) httpcache.Reason {
	switch {
	case slices.ContainsFunc(e.Header, unsendable):
		return reasonInvalidField
	case len(e.Tags) > maxTags:
		return reasonTooManyTags
	}
	return ""
}

// unsendable reports whether Envoy would not take a field back: one character
// that may not stand in a field fails a whole streamed answer.
func unsendable(f httpcache.Field) bool {
	return !httpguts.ValidHeaderFieldName(f.Name) || !httpguts.ValidHeaderFieldValue(f.Value)
}

// freshen is what a 304 or a HEAD makes of the stored answer: its fields are
// updated and its life begins anew (RFC 9111 §3.2, §4.3.4). The body is shared.
// A reason is given if the answer may not stay stored by what was updated.
func freshen(f *fetched) (*store.Entry, httpcache.Reason) {
	merged := httpcache.Response{
		Status: f.stored.Status, Header: httpcache.Freshen(f.stored.Header, updates(f.resp, f.now)),
	}
	get := *f.req
	get.Method = "GET" // a HEAD is about the answer that is stored of a GET
	g := *f
	g.req, g.resp = &get, &merged
	v := httpcache.MayStore(g.req, &merged, f.rules)
	life := lifetime(&g, &v)
	// Age is that of the message that came now, not of the one stored.
	age := httpcache.Response{Status: 200, Header: f.resp.Header}
	e := newEntry(&g, &v, life)
	e.InitialAge = httpcache.InitialAge(&age, f.asked, f.now)
	if f.stored.Cost > 0 {
		e.Cost = f.stored.Cost // to validate costs less than to make
	}
	e.Body = f.stored.Body
	if slices.Equal(e.Vary.Names, f.stored.Vary.Names) {
		e.VaryValues = f.stored.VaryValues // of the request it answered first
	}
	switch {
	case !v.OK:
		return e, v.Reason
	case !life.OK && !v.ValidateAlways:
		return e, reasonNoLifetime
	}
	return e, unkept(e)
}

// updates are the fields of a 304, or of an answer to HEAD, that freshen what is
// stored.
func updates(resp *httpcache.Response, now time.Time) httpcache.Fields {
	return slices.DeleteFunc(slices.Clone(httpcache.WithDate(resp.Header, now)), unsendable)
}

// contentLength returns the stated length, or -1.
func contentLength(h httpcache.Fields) int64 {
	s, _ := h.Joined("content-length")
	if s == "" || len(s) > 18 {
		return -1
	}
	n := int64(0)
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

func uriOf(req *httpcache.Request) string {
	return httpcache.TargetOf(req).String()
}

// maxTags bounds the invalidation tags of one entry. An answer with more is not
// stored: by the tags left out it could not be invalidated.
const maxTags = 1024

// tagsOf reads the tags of an answer, separated by spaces or commas.
func tagsOf(h httpcache.Fields, name string) []string {
	if name == "" {
		return nil
	}
	value, _ := h.Joined(name)
	tags := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	slices.Sort(tags)
	return slices.Compact(tags)
}

// prepare returns the entry as it is kept, once its body is whole: with the
// bytes of its hits made, where they are one message.
func prepare(e *store.Entry) *store.Entry {
	out := *e
	n := e.Body.Len()
	if n == 0 || n > wire.MaxImmediateBody || !e.Header.Has("content-type") || bodiless(e.Status) {
		return &out
	}
	body := make([]byte, 0, n)
	for part := range e.Body.Bytes(0, n) {
		body = append(body, part...)
	}
	message, part := wire.PrepareImmediate(wire.Answer{Status: e.Status, Header: e.Header, Details: detailsHit}, body)
	out.Wire, out.Body = message, store.WholeBody(part)
	return &out
}

// bodiless reports whether answers with this status have no body (RFC 9110 §6.4.1).
func bodiless(status int) bool { return status == 204 || status == 304 || status < 200 }

// detailsHit is the access log's RESPONSE_CODE_DETAILS of a hit.
const detailsHit = "weir_hit"
