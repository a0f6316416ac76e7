package httpcache

// credentialsForbid gives the reason why a response, fetched or stored, may not
// be shared with a request that carries credentials outside the key, or "".
//
// Authorization asks for public, s-maxage or must-revalidate (RFC 9111 §3.5). A
// cookie outside the key asks for public or a lifetime of the origin's own: what
// only a policy makes cacheable is not for who may be logged in.
func credentialsForbid(req *Request, header Fields, d *Directives, r *Rules) Reason {
	if carriesAuthorization(req) && !d.Public && !d.SMaxAge.Valid && !d.MustRevalidate {
		return ReasonAuthorization
	}
	if carriesCookie(r) && !explicit(header, d) {
		return ReasonRequestCookie
	}
	return ""
}

func carriesAuthorization(req *Request) bool { return req.Header.Has("authorization") }

func carriesCookie(r *Rules) bool { return r.CookiesOutsideKey && !r.IgnoreCookies }

// CarriesCredentials reports whether a request carries credentials that are not
// part of the key: Authorization, or a cookie that the policy neither names nor
// ignores. Such a request is not to be coalesced with others before the answer
// is known.
func CarriesCredentials(req *Request, r *Rules) bool {
	return carriesCookie(r) || carriesAuthorization(req)
}

// CredentialsForbidReuse reports whether a stored response may not serve a
// request because of the credentials it carries (RFC 9111 §3.5; see Reasons). A
// request without credentials costs one pass over its fields.
func CredentialsForbidReuse(req *Request, stored Fields, r *Rules) (forbidden bool, reason Reason) {
	if !CarriesCredentials(req, r) {
		return false, ""
	}
	d := ResponseDirectives(stored)
	reason = credentialsForbid(req, stored, &d, r)
	return reason != "", reason
}
