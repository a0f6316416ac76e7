package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/e2e/harness"
)

// scene is an exchange drawn by chance: a request that may be stored, perhaps a write, and a second request. What the
// fields say is kept in parts, so that the model below reads no header fields.
type scene struct {
	status                  int
	cc                      said
	cdn                     *said // of CDN-Cache-Control, or nil
	began                   time.Time
	expires                 int // seconds from Date; absent
	age                     int
	etag, setCookie, odd    bool
	vary                    string // "", "Foo" or "*"
	first, second           asked
	write                   int // status of the answer to a POST in between; 0: none
	secondFails, headSecond bool
}

// absent stands for a number that is not said.
const absent = -1

// said are cache directives of a response. Numbers are seconds.
type said struct {
	noStore, noCache, private, public, mustRevalidate, proxyRevalidate, mustUnderstand bool
	maxAge, sMaxAge, swr, sie                                                          int
	excluded                                                                           bool // no-cache="x-odd"
}

// asked is what a request says.
type asked struct {
	foo                        string
	authorization              bool
	noCache, noStore           bool
	maxAge, minFresh, maxStale int
}

// Ages and lifetimes are so far apart that no pause of the machine makes one the other.
func draw(r *rand.Rand) scene {
	rare := func() bool { return r.IntN(16) == 0 }
	number := func(of ...int) int { return of[r.IntN(len(of))] }
	request := func() asked {
		return asked{
			foo: []string{"", "1", "2"}[r.IntN(3)], authorization: rare(), noCache: rare(), noStore: rare(),
			maxAge:   number(absent, absent, absent, absent, absent, absent, 0, 500, 5000),
			minFresh: number(absent, absent, absent, absent, absent, 500),
			maxStale: number(absent, absent, 10, 5000),
		}
	}
	say := func() said {
		return said{
			noStore: rare(), noCache: rare(), private: rare(), public: rare(), mustUnderstand: rare(), excluded: rare(),
			mustRevalidate: rare(), proxyRevalidate: rare(),
			maxAge:  number(absent, 0, 50, 10_000, 10_000, 10_000),
			sMaxAge: number(absent, absent, absent, absent, absent, 0, 50, 10_000),
			swr:     number(absent, absent, 10, 5000), sie: number(absent, absent, 10, 5000),
		}
	}
	s := scene{
		status: number(200, 200, 200, 200, 200, 200, 200, 203, 404, 301, 206, 503, 599), cc: say(),
		expires: number(absent, absent, -100, 10_000), age: number(absent, absent, 0, 1000),
		etag: r.IntN(3) == 0, setCookie: rare(), odd: rare(),
		vary:  []string{"", "", "", "", "Foo", "Foo", "Foo", "*"}[r.IntN(8)],
		first: request(), second: request(), secondFails: r.IntN(4) == 0, headSecond: rare(),
	}
	if r.IntN(4) > 0 {
		s.second.foo = s.first.foo
	}
	if r.IntN(6) == 0 {
		targeted := say()
		s.cdn = &targeted
	}
	if rare() {
		s.write = number(200, 201, 303, 400, 500)
	}
	return s
}

// directives are those that count: RFC 9213 §2.2.
func (s *scene) directives() said {
	if s.cdn != nil && s.cdn.String() != "" {
		return *s.cdn
	}
	return s.cc
}

// lifetime is that of RFC 9111 §4.2.1; absent without one.
func (s *scene) lifetime() int {
	d := s.directives()
	switch {
	case d.sMaxAge != absent:
		return d.sMaxAge
	case d.maxAge != absent:
		return d.maxAge
	case s.expires != absent && d == s.cc && (s.cdn == nil || s.cdn.String() == ""):
		return max(0, s.expires)
	}
	return absent
}

// stale is for how long the answer has been so; 0 or less: it is fresh.
func (s *scene) stale() int { return max(s.age, 0) - s.lifetime() + 1 }

// forbidsStoring is RFC 9111 §3 and §3.5, and what the policy adds. "" allows.
func (s *scene) forbidsStoring() string {
	d := s.directives()
	switch understood := s.status != 599; {
	case s.status == 206:
		return "partial"
	case d.noStore && !(d.mustUnderstand && understood), d.mustUnderstand && !understood:
		return "no-store or must-understand"
	case d.private:
		return "private"
	case s.setCookie:
		return "Set-Cookie"
	case s.vary == "*":
		return "Vary: *"
	case s.first.noStore:
		return "the request's no-store"
	case s.first.authorization && !d.consents():
		return "Authorization"
	case s.lifetime() == absent && !d.noCache: // no-cache is stored for the sake of its validator
		return "no lifetime"
	}
	return ""
}

// consents is RFC 9111 §3.5.
func (d said) consents() bool { return d.public || d.mustRevalidate || d.sMaxAge != absent }

// forbidsServing says why the stored answer must not go to the second request as it is, without a word of the origin;
// "" allows.
func (s *scene) forbidsServing() string {
	d, q := s.directives(), s.second
	if why := s.forbidsReuse(); why != "" {
		return why
	}
	switch stale := s.stale(); {
	case d.noCache, q.noCache:
		return "no-cache"
	case q.maxAge == 0, q.maxAge != absent && q.maxAge < s.age:
		return "the request's max-age"
	case q.minFresh != absent && q.minFresh > -stale:
		return "the request's min-fresh"
	case stale <= 0:
		return ""
	case q.maxAge != absent && q.maxStale == absent:
		return "stale, and the request's max-age wants it fresh"
	case d.mustRevalidate, d.proxyRevalidate:
		return "stale, must-revalidate"
	case d.sMaxAge == absent && q.maxStale > stale:
		return ""
	case d.swr > stale && s.status < 400: // errors have no window: a rule of the house
		return ""
	}
	return "stale"
}

// forbidsReuse says why the stored answer must not go to the second request even after the origin said 304.
func (s *scene) forbidsReuse() string {
	switch why := s.forbidsStoring(); {
	case why != "":
		return why
	case s.vary == "Foo" && s.first.foo != s.second.foo:
		return "another variant"
	case s.second.authorization && !s.directives().consents():
		return "Authorization of the second"
	case s.write >= 200 && s.write < 400:
		return "invalidated"
	}
	return ""
}

// forbidsStandingIn says why the stored answer must not go out in the place of the origin's error (RFC 9111 §4.2.4, RFC
// 5861 §4; the policy's own window is 10 min).
func (s *scene) forbidsStandingIn() string {
	d, window := s.directives(), 600
	if d.sMaxAge != absent {
		window = 0
	}
	if d.sie != absent {
		window = d.sie
	}
	switch why, stale := s.forbidsReuse(), s.stale(); {
	case why != "":
		return why
	case d.noCache:
		return "no-cache"
	case s.status >= 500 && s.status <= 504:
		return "an error itself"
	case stale <= 0:
		return ""
	case d.mustRevalidate, d.proxyRevalidate:
		return "stale, must-revalidate"
	case s.status >= 400:
		return "stale, an error"
	case stale >= max(window, d.swr):
		return "stale beyond the window"
	}
	return ""
}

func (d said) String() string {
	var members []string
	for _, m := range []struct {
		name string
		said bool
	}{
		{"no-store", d.noStore}, {"private", d.private}, {"public", d.public}, {"must-revalidate", d.mustRevalidate},
		{"proxy-revalidate", d.proxyRevalidate}, {"must-understand", d.mustUnderstand}, {"no-cache", d.noCache},
		{`no-cache="x-odd"`, d.excluded && !d.noCache},
	} {
		if m.said {
			members = append(members, m.name)
		}
	}
	return strings.Join(append(members, numbers(map[string]int{
		"max-age": d.maxAge, "s-maxage": d.sMaxAge, "stale-while-revalidate": d.swr, "stale-if-error": d.sie,
	})...), ", ")
}

func numbers(of map[string]int) (members []string) {
	for name, n := range of {
		if n != absent {
			members = append(members, fmt.Sprintf("%s=%d", name, n))
		}
	}
	slices.Sort(members)
	return members
}

// fields are those of a request, as name, value pairs.
func (q asked) fields() (pairs []string) {
	if q.foo != "" {
		pairs = append(pairs, "Foo", q.foo)
	}
	if q.authorization {
		pairs = append(pairs, "Authorization", "Basic eDp5")
	}
	members := numbers(map[string]int{"max-age": q.maxAge, "min-fresh": q.minFresh, "max-stale": q.maxStale})
	if q.noCache {
		members = append(members, "no-cache")
	}
	if q.noStore {
		members = append(members, "no-store")
	}
	return append(pairs, "Cache-Control", strings.Join(members, ", "))
}

// answer is the origin's to the n-th request.
func (s *scene) answer(n int, r *http.Request) harness.Reply {
	if r.Method == http.MethodPost {
		return harness.Reply{Status: s.write}
	}
	a := harness.Reply{Status: s.status, Header: make(http.Header), Body: answerBody(n)}
	if n > 1 && s.secondFails {
		a.Status = http.StatusServiceUnavailable
		return a
	}
	set := func(name, value string) {
		if value != "" {
			a.Header.Add(name, value)
		}
	}
	set("Cache-Control", s.cc.String())
	if s.cdn != nil {
		set("CDN-Cache-Control", s.cdn.String())
	}
	if s.expires != absent {
		// The same each time: a 304 may bring another, which the stored answer takes over.
		set("Date", s.began.Format(http.TimeFormat))
		set("Expires", s.began.Add(time.Duration(s.expires)*time.Second).Format(http.TimeFormat))
	}
	if s.age != absent {
		set("Age", fmt.Sprint(s.age))
	}
	s.setRest(set, n)
	if s.etag {
		a.ETag = `"v1"`
	}
	if r.Header.Get("If-None-Match") != "" {
		a.Header.Del("X-N") // a 304 would update it
	}
	return a
}

func (s *scene) setRest(set func(name, value string), n int) {
	set("Content-Type", "text/plain")
	set("Vary", s.vary)
	set("X-N", fmt.Sprint(n))
	set("X-Two", "a, b")
	set("X-Two", "c")
	if s.setCookie {
		set("Set-Cookie", "a=b")
	}
	if s.odd {
		set("X-Odd", "odd")
		set("Content-Language", "de")
		set("Link", `</a,b>; rel="preload"`)
	}
}
