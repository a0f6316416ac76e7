package httpcache

import "testing"

// hit is a plain fresh hit of a browser on an answer that varies.
type hit struct {
	req           *Request
	rules         Rules
	stored        Fields
	names, values []string
	buf           []byte
}

func newHit() *hit {
	req := get("Host: a.test",
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0",
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
		"Accept-Encoding: gzip, deflate, br, zstd", "Accept-Language: de-CH,de;q=0.9,en;q=0.8", "Cookie: a=b",
		"X-Request-Id: 0f8fad5b-d9cb-469f-a165-70867728950e", "X-Forwarded-For: 192.0.2.1", "Cache-Control: max-age=600")
	stored := fields("Date: "+at(0), "Content-Type: text/html", "Content-Length: 1024", "Cache-Control: max-age=60",
		`ETag: "abc"`, "Last-Modified: "+at(-5000), "Vary: Accept-Encoding, Accept-Language",
		"Cache-Status: origin; hit; ttl=30")
	v := ParseVary(stored)
	return &hit{req: req, stored: stored, names: v.Names, values: v.Select(req.Header), buf: make([]byte, 0, 256)}
}

// The rules that run on a plain fresh hit allocate nothing.
func TestHitAllocatesNothing(t *testing.T) {
	h := newHit()
	conditional := append(Fields(nil), h.req.Header...).with("if-none-match", `"x", W/"abc"`)
	since := append(Fields(nil), h.req.Header...).with("if-modified-since", "Monday, 30-Nov-26 11:10:00 GMT")
	honour := Rules{HonorRequestDirectives: true}
	for name, run := range map[string]func() bool{
		"CheckRequest": func() bool { pass, _ := CheckRequest(h.req, &h.rules); return !pass },
		"Tunnels":      func() bool { return !Tunnels(h.req) },
		"SameVariant":  func() bool { return SameVariant(h.names, h.values, h.req.Header) },
		"EvaluatePreconditions": func() bool {
			return EvaluatePreconditions(h.req.Header, h.stored, 200) == Full
		},
		"EvaluatePreconditions, If-None-Match": func() bool {
			return EvaluatePreconditions(conditional, h.stored, 200) == NotModified
		},
		"EvaluatePreconditions, If-Modified-Since": func() bool {
			return EvaluatePreconditions(since, h.stored, 200) == NotModified
		},
		"ReuseForbidden": func() bool {
			forbidden, _ := ReuseForbidden(h.req, &honour, seconds(5), seconds(60))
			return !forbidden
		},
		"CredentialsForbidReuse": func() bool {
			forbidden, _ := CredentialsForbidReuse(h.req, h.stored, &h.rules)
			return !forbidden
		},
		"StripConditionals": func() bool { return StripConditionals(h.req.Header) == nil },
		"AppendAge":         func() bool { return len(AppendAge(h.buf, seconds(12345))) == 5 },
		"AppendCacheStatus": func() bool {
			s := CacheStatus{Hit: true, TTL: 55, HasTTL: true, Detail: "two words"}
			return len(AppendCacheStatus(h.buf, "origin; hit; ttl=30", s)) > 0
		},
		"ParseDirectives": func() bool { return ParseDirectives(h.stored).MaxAge.Valid },
	} {
		if !run() {
			t.Errorf("%s: not a plain hit", name)
		}
		if n := testing.AllocsPerRun(100, func() { run() }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	h := newHit()
	b.ReportAllocs()
	for b.Loop() {
		if pass, _ := CheckRequest(h.req, &h.rules); pass {
			b.Fatal("passes")
		}
		if !SameVariant(h.names, h.values, h.req.Header) {
			b.Fatal("another variant")
		}
		if EvaluatePreconditions(h.req.Header, h.stored, 200) != Full {
			b.Fatal("not modified")
		}
		h.buf = AppendAge(h.buf[:0], seconds(12345))
		h.buf = AppendCacheStatus(h.buf, "origin; hit; ttl=30", CacheStatus{Hit: true, TTL: 55, HasTTL: true})
	}
}

func BenchmarkCheckRequest(b *testing.B) {
	h := newHit()
	for b.Loop() {
		CheckRequest(h.req, &h.rules)
	}
}

func BenchmarkSameVariant(b *testing.B) {
	h := newHit()
	for b.Loop() {
		SameVariant(h.names, h.values, h.req.Header)
	}
}

func BenchmarkAppendCacheStatus(b *testing.B) {
	h := newHit()
	for b.Loop() {
		AppendCacheStatus(h.buf, "origin; hit; ttl=30", CacheStatus{Hit: true, TTL: 55, HasTTL: true})
	}
}

func BenchmarkMayStore(b *testing.B) {
	h := newHit()
	resp := &Response{Status: 200, Header: h.stored}
	b.ReportAllocs()
	for b.Loop() {
		MayStore(h.req, resp, &h.rules)
	}
}
