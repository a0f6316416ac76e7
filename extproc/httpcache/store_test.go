package httpcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// storeCase is one case of MayStore: what the RFC says of a request, its
// response and the rules.
type storeCase struct {
	name  string
	req   *Request // nil: a plain GET
	resp  *Response
	rules Rules
	want  Reason // ReasonStorable and ReasonMustUnderstand are OK
}

func (c *storeCase) verdict() StoreVerdict {
	req := c.req
	if req == nil {
		req = get()
	}
	return MayStore(req, c.resp, &c.rules)
}

func runStoreCases(t *testing.T, cases []storeCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := tt.verdict()
			wantEqual(t, "Reason", v.Reason, tt.want)
			wantEqual(t, "OK", v.OK, tt.want == ReasonStorable || tt.want == ReasonMustUnderstand)
			if !v.OK && (v.Shareable || v.PolicyMayExtend || v.Heuristic || v.Explicit || v.ValidateAlways) {
				t.Errorf("refused, but %+v", v)
			}
		})
	}
}

// RFC 9111 §3, §5.2.2.
func TestMayStoreResponse(t *testing.T) {
	t.Parallel()
	runStoreCases(t, []storeCase{
		{name: "nothing said", resp: ok(), want: ReasonStorable},
		{name: "max-age", resp: ok("Cache-Control: max-age=60"), want: ReasonStorable},
		{name: "max-age=0", resp: ok("Cache-Control: max-age=0"), want: ReasonStorable},
		{name: "§5.2.2.5", resp: ok("Cache-Control: no-store, max-age=60", "Expires: "+at(60)), want: ReasonNoStore},
		{name: "§5.2.2.5, on its own line", resp: ok("Cache-Control: max-age=60", "Cache-Control: nO-StOrE"),
			want: ReasonNoStore},
		{name: "§5.2.2.7", resp: ok("Cache-Control: private, max-age=60"), want: ReasonPrivate},
		{name: "§5.2.2.7, beside public", resp: ok("Cache-Control: public, private"), want: ReasonPrivate},
		{name: "§5.2.2.7, qualified", resp: ok(`Cache-Control: private="a", max-age=60`), want: ReasonStorable},
		{name: "§5.2.2.4, with a validator", resp: ok("Cache-Control: no-cache", `ETag: "a"`), want: ReasonStorable},
		{name: "§5.2.2.4, with a date", resp: ok("Cache-Control: no-cache", "Last-Modified: "+at(-9)),
			want: ReasonStorable},
		{name: "§5.2.2.4, without", resp: ok("Cache-Control: no-cache, max-age=60"), want: ReasonNoCacheNoValidator},
		{name: "§5.2.2.4, with an invalid date", resp: ok("Cache-Control: no-cache", "Last-Modified: x"),
			want: ReasonNoCacheNoValidator},
		{name: "§5.2.2.4, qualified", resp: ok(`Cache-Control: no-cache="a", max-age=60`), want: ReasonStorable},
		{name: "RFC 9213 §2.2: targeted no-store", resp: ok("CDN-Cache-Control: no-store",
			"Cache-Control: max-age=60"), want: ReasonNoStore},
		{name: "RFC 9213 §2.2: targeted private", resp: ok("CDN-Cache-Control: private", "Cache-Control: max-age=60"),
			want: ReasonPrivate},
		{name: "RFC 9213 §2.2: it beats no-store", resp: ok("CDN-Cache-Control: max-age=60",
			"Cache-Control: no-store"), want: ReasonStorable},
		{name: "RFC 9213 §2.1: unless it is invalid", resp: ok(`CDN-Cache-Control: max-age="60"`,
			"Cache-Control: no-store"), want: ReasonNoStore},
		{name: "§4.1: Vary", resp: ok("Vary: a, b"), want: ReasonStorable},
		{name: "§4.1: Vary *", resp: ok("Cache-Control: max-age=60", "Vary: a", "Vary: *"), want: ReasonVaryAny},
		{name: "Pragma in a response means nothing (§5.4)", resp: ok("Cache-Control: max-age=60", "Pragma: no-cache"),
			want: ReasonStorable},
		{name: "events", resp: ok("Content-Type: Text/Event-Stream; charset=utf-8", "Cache-Control: max-age=60"),
			want: ReasonEventStream},
		{name: "frames", resp: ok("Content-Type: multipart/x-mixed-replace;boundary=x"), want: ReasonEventStream},
		{name: "RFC 9110 §14.4: a range in a 200", resp: ok("Cache-Control: max-age=60",
			"Content-Range: bytes 0-9/100"), want: ReasonPartial},
		{name: "RFC 9110 §14.4: of unknown size", resp: ok("Content-Range: Bytes 0-9/*"), want: ReasonPartial},
		{name: "RFC 9110 §14.4: no range of bytes", resp: ok("Cache-Control: max-age=60", "Content-Range: 0-9/100"),
			want: ReasonStorable},
		{name: "RFC 9110 §14.4: nonsense", resp: ok("Cache-Control: max-age=60", "Content-Range: deadbeef"),
			want: ReasonStorable},
	})
}

// RFC 9111 §3, RFC 9110 §15, RFC 6585 §3 to §6: even with explicit freshness.
func TestMayStoreStatus(t *testing.T) {
	t.Parallel()
	refused := map[int]Reason{206: ReasonPartial, 304: ReasonNotModified, 412: ReasonStatusOfRequest,
		416: ReasonStatusOfRequest, 417: ReasonStatusOfRequest, 428: ReasonStatusUnstorable,
		429: ReasonStatusUnstorable, 431: ReasonStatusUnstorable, 511: ReasonStatusUnstorable}
	for status := -1; status < 1001; status++ {
		want, found := refused[status]
		switch {
		case status < 200:
			want = ReasonInterim
		case status > 599:
			want = ReasonStatusInvalid
		case !found:
			want = ReasonStorable
		}
		for _, mode := range []OriginMode{OriginHonor, OriginIgnoreAll} {
			v := MayStore(get(), response(status, "Cache-Control: max-age=60"), &Rules{Origin: mode})
			if v.Reason != want || v.OK != (want == ReasonStorable) {
				t.Errorf("%d, %s: %v %q, want %q", status, mode, v.OK, v.Reason, want)
			}
		}
	}
}

// RFC 9111 §5.2.2.3.
func TestMayStoreMustUnderstand(t *testing.T) {
	t.Parallel()
	const both, alone = "Cache-Control: max-age=60, no-store, must-understand",
		"Cache-Control: max-age=60, must-understand"
	runStoreCases(t, []storeCase{
		{name: "understood: no-store does not count", resp: response(200, both), want: ReasonMustUnderstand},
		{name: "understood, 404", resp: response(404, both), want: ReasonMustUnderstand},
		{name: "understood, without no-store", resp: response(200, alone), want: ReasonStorable},
		{name: "not understood", resp: response(599, both), want: ReasonStatusNotUnderstood},
		{name: "not understood, without no-store", resp: response(599, alone), want: ReasonStatusNotUnderstood},
		{name: "not understood, 299", resp: response(299, both), want: ReasonStatusNotUnderstood},
		{name: "not understood, and nobody asks", resp: response(599, "Cache-Control: max-age=60"), want: ReasonStorable},
		{name: "private still counts", resp: response(200, both+", private"), want: ReasonPrivate},
		{name: "IgnoreAll", resp: response(599, both), rules: Rules{Origin: OriginIgnoreAll}, want: ReasonStorable},
	})
}

func TestMayStoreRequest(t *testing.T) {
	t.Parallel()
	fresh := ok("Cache-Control: max-age=60")
	auth := get("Authorization: Bearer x")
	cookie := Rules{CookiesOutsideKey: true}
	runStoreCases(t, []storeCase{
		{name: "HEAD", req: &Request{Method: "HEAD"}, resp: fresh, want: ReasonMethodNotGET},
		{name: "POST", req: &Request{Method: "POST"}, resp: fresh, want: ReasonMethodNotGET},
		{name: "get is another method", req: &Request{Method: "get"}, resp: fresh, want: ReasonMethodNotGET},

		{name: "§3.5: Authorization", req: auth, resp: fresh, want: ReasonAuthorization},
		{name: "§3.5: public", req: auth, resp: ok("Cache-Control: public, max-age=60"), want: ReasonStorable},
		{name: "§3.5: s-maxage", req: auth, resp: ok("Cache-Control: s-maxage=60"), want: ReasonStorable},
		{name: "§3.5: must-revalidate", req: auth, resp: ok("Cache-Control: max-age=60, must-revalidate"),
			want: ReasonStorable},
		{name: "§3.5: proxy-revalidate is not named there", req: auth,
			resp: ok("Cache-Control: max-age=60, proxy-revalidate"), want: ReasonAuthorization},
		{name: "§3.5: a malformed s-maxage", req: auth, resp: ok("Cache-Control: s-maxage=x"), want: ReasonAuthorization},
		{name: "§3.5: a malformed public", req: auth, resp: ok("Cache-Control: public; s-maxage=60"),
			want: ReasonAuthorization},
		{name: "§3.5: Vary does not help", req: auth, resp: ok("Cache-Control: max-age=60", "Vary: Authorization"),
			want: ReasonAuthorization},
		{name: "§3.5: public in a targeted field", req: auth, resp: ok("CDN-Cache-Control: public, max-age=60"),
			want: ReasonStorable},
		{name: "§3.5: public where a targeted field decides", req: auth, resp: ok("CDN-Cache-Control: max-age=60",
			"Cache-Control: public"), want: ReasonAuthorization},
		{name: "§3.5: IgnoreAll does not lift it", req: auth, resp: fresh, rules: Rules{Origin: OriginIgnoreAll},
			want: ReasonAuthorization},

		{name: "a cookie, the origin states a lifetime", rules: cookie, resp: fresh, want: ReasonStorable},
		{name: "a cookie, Expires", rules: cookie, resp: ok("Expires: " + at(60)), want: ReasonStorable},
		{name: "a cookie, public", rules: cookie, resp: ok("Cache-Control: public"), want: ReasonStorable},
		{name: "a cookie, nothing stated", rules: cookie, resp: ok(), want: ReasonRequestCookie},
		{name: "a cookie, a malformed lifetime", rules: cookie, resp: ok("Cache-Control: max-age=x",
			"Expires: "+at(60)), want: ReasonRequestCookie},
		{name: "a cookie, ignored", rules: Rules{CookiesOutsideKey: true, IgnoreCookies: true}, resp: ok(),
			want: ReasonStorable},
		{name: "a cookie, IgnoreAll", rules: Rules{CookiesOutsideKey: true, Origin: OriginIgnoreAll}, resp: ok(),
			want: ReasonRequestCookie},

		{name: "§5.2.1.5, honoured", req: get("Cache-Control: no-store"), rules: Rules{HonorRequestDirectives: true},
			resp: fresh, want: ReasonRequestNoStore},
		{name: "§5.2.1.5, ignored", req: get("Cache-Control: no-store"), resp: fresh, want: ReasonStorable},
	})
}

func TestMayStoreSetCookie(t *testing.T) {
	t.Parallel()
	const cc, cookie = "Cache-Control: public, max-age=60", "Set-Cookie: sid=1"
	runStoreCases(t, []storeCase{
		{name: "refused", resp: ok(cc, cookie), want: ReasonSetCookie},
		{name: "refused by IgnoreAll too", resp: ok(cc, cookie), rules: Rules{Origin: OriginIgnoreAll},
			want: ReasonSetCookie},
		{name: "stripped", resp: ok(cc, cookie), rules: Rules{StripSetCookie: true}, want: ReasonStorable},
		{name: "excluded by the origin", resp: ok(cc+`, no-cache="set-cookie"`, cookie), want: ReasonStorable},
		{name: "kept private by the origin", resp: ok(cc+`, private="Set-Cookie"`, cookie), want: ReasonStorable},
	})
}

// ttl.origin: IgnoreFreshness keeps what forbids, IgnoreAll does not.
func TestMayStoreOriginModes(t *testing.T) {
	t.Parallel()
	freshness, all := Rules{Origin: OriginIgnoreFreshness}, Rules{Origin: OriginIgnoreAll}
	for cc, want := range map[string]Reason{"no-store": ReasonNoStore, "private": ReasonPrivate,
		"no-cache": ReasonNoCacheNoValidator} {
		resp := ok("Cache-Control: " + cc)
		runStoreCases(t, []storeCase{
			{name: cc + ", IgnoreFreshness", resp: resp, rules: freshness, want: want},
			{name: cc + ", IgnoreAll", resp: resp, rules: all, want: ReasonStorable},
		})
	}
	v := MayStore(get(), ok("Cache-Control: no-cache", `ETag: "a"`), &all)
	if v.ValidateAlways || !v.Shareable {
		t.Errorf("IgnoreAll with no-cache: %+v", v)
	}
}

// The modes are called as ttl.origin of the API calls them.
func TestOriginModeNames(t *testing.T) {
	t.Parallel()
	wantEqual(t, "OriginHonor", string(OriginHonor), "Honor")
	wantEqual(t, "OriginIgnoreFreshness", string(OriginIgnoreFreshness), "IgnoreFreshness")
	wantEqual(t, "OriginIgnoreAll", string(OriginIgnoreAll), "IgnoreAll")
}

// The rest of the verdict, for responses that may be stored.
func TestMayStoreVerdict(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		req   *Request
		resp  *Response
		rules Rules
		want  StoreVerdict
	}{
		{"nothing stated", get(), ok(), Rules{Heuristic: true},
			StoreVerdict{Shareable: true, PolicyMayExtend: true, Heuristic: true}},
		{"heuristics off", get(), ok(), Rules{}, StoreVerdict{Shareable: true, PolicyMayExtend: true}},
		{"stated", get(), ok("Cache-Control: max-age=0"), Rules{},
			StoreVerdict{Shareable: true, PolicyMayExtend: true, Explicit: true}},
		{"public", get(), ok("Cache-Control: public"), Rules{},
			StoreVerdict{Shareable: true, PolicyMayExtend: true, Explicit: true}},
		{"no-cache", get(), ok("Cache-Control: no-cache", `ETag: "a"`), Rules{},
			StoreVerdict{PolicyMayExtend: true, ValidateAlways: true}},
		{"503", get(), response(503), Rules{}, StoreVerdict{Shareable: true}},
		{"503 with freshness", get(), response(503, "Cache-Control: max-age=1"), Rules{Heuristic: true},
			StoreVerdict{Shareable: true, Explicit: true, Heuristic: true}},
		{"Authorization", get("Authorization: x"), ok("Cache-Control: public"), Rules{Heuristic: true},
			StoreVerdict{Shareable: true, Explicit: true}},
		{"a cookie", get(), ok("Cache-Control: max-age=5"), Rules{Heuristic: true, CookiesOutsideKey: true},
			StoreVerdict{Shareable: true, Explicit: true}},
		{"a cookie, ignored", get(), ok(), Rules{CookiesOutsideKey: true, IgnoreCookies: true},
			StoreVerdict{Shareable: true, PolicyMayExtend: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.want.OK, tt.want.Reason = true, ReasonStorable
			got := MayStore(tt.req, tt.resp, &tt.rules)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(StoreVerdict{}, "Directives")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCredentialsForbidReuse(t *testing.T) {
	t.Parallel()
	auth, cookie := get("Authorization: x"), Rules{CookiesOutsideKey: true}
	for _, tt := range []struct {
		name   string
		req    *Request
		rules  Rules
		stored Fields
		want   Reason
	}{
		{"none", get(), Rules{}, fields(), ""},
		{"Authorization", auth, Rules{}, fields("Cache-Control: max-age=60"), ReasonAuthorization},
		{"Authorization, public", auth, Rules{}, fields("Cache-Control: public"), ""},
		{"a cookie, stored by the policy alone", get(), cookie, fields(), ReasonRequestCookie},
		{"a cookie, stored by the origin's word", get(), cookie, fields("Cache-Control: max-age=60"), ""},
		{"both: each must be allowed", auth, cookie, fields("Cache-Control: must-revalidate"), ReasonRequestCookie},
		{"a cookie in the key", get("Cookie: a=b"), Rules{}, fields(), ""},
	} {
		forbidden, reason := CredentialsForbidReuse(tt.req, tt.stored, &tt.rules)
		if reason != tt.want || forbidden != (tt.want != "") {
			t.Errorf("%s: %v %q, want %q", tt.name, forbidden, reason, tt.want)
		}
		wantEqual(t, tt.name+": CarriesCredentials", CarriesCredentials(tt.req, &tt.rules),
			tt.name != "none" && tt.name != "a cookie in the key")
	}
}
