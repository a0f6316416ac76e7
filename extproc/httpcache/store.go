package httpcache

// StoreVerdict is the answer to the question whether a response may be stored.
type StoreVerdict struct {
	// OK says that nothing forbids it. Whether it is worth storing is a matter
	// of its lifetime, which is not decided here.
	OK     bool
	Reason Reason
	// Directives are those of the response.
	Directives Directives
	// ValidateAlways says that the stored response serves no request without
	// validation (no-cache).
	ValidateAlways bool
	// Shareable says that nothing forbids giving this very answer to the requests
	// that came for it while it was fetched, even if it is stale on arrival
	// (max-age=0). Where Explicit is false it is to be given to them only if the
	// policy gives it a lifetime: nobody has marked it as cacheable else.
	Shareable bool
	// Explicit says that the origin itself marks the response as cacheable, by a
	// lifetime or by public.
	Explicit bool
	// PolicyMayExtend says that ttl.default and ttl.min of a policy may apply:
	// the status is heuristically cacheable, and the request carried no
	// credentials outside the key.
	PolicyMayExtend bool
	// Heuristic says that HeuristicLifetime may apply: the policy allows it, and
	// the request carried no credentials outside the key.
	Heuristic bool
}

// storeInput is what the rules of MayStore look at.
type storeInput struct {
	req  *Request
	resp *Response
	r    *Rules
	d    Directives
}

// MayStore decides whether the response to a request may be stored (RFC 9111
// §3). It knows prohibitions only; the lifetime is a matter of the policy. The
// first rule that forbids storing gives the Reason.
func MayStore(req *Request, resp *Response, r *Rules) StoreVerdict {
	in := storeInput{req: req, resp: resp, r: r, d: ResponseDirectives(resp.Header)}
	v := StoreVerdict{Directives: in.d, Reason: ReasonStorable}
	for _, rule := range [...]func(*storeInput) Reason{
		methodForbidsStoring, statusForbidsStoring, contentRangeForbidsStoring,
		noStoreForbidsStoring, privateForbidsStoring, credentialsForbidStoring, requestForbidsStoring,
		setCookieForbidsStoring, varyForbidsStoring, noCacheForbidsStoring, contentTypeForbidsStoring,
	} {
		if reason := rule(&in); reason != "" {
			v.Reason = reason
			return v
		}
	}
	if in.d.NoStore && !r.ignoreAll() {
		v.Reason = ReasonMustUnderstand
	}
	anonymous := !carriesAuthorization(req) && !carriesCookie(r)
	v.OK = true
	v.ValidateAlways = in.d.NoCache && !r.ignoreAll()
	v.Shareable = !v.ValidateAlways
	v.Explicit = explicit(resp.Header, &in.d)
	v.PolicyMayExtend = anonymous && HeuristicallyCacheable(resp.Status)
	v.Heuristic = anonymous && r.Heuristic
	return v
}

// methodForbidsStoring: the method must be understood (RFC 9111 §3). HEAD never
// fills what GET is answered from.
func methodForbidsStoring(in *storeInput) Reason {
	if in.req.Method != "GET" {
		return ReasonMethodNotGET
	}
	return ""
}

// statusForbidsStoring: the status must be final, and understood where
// must-understand asks for it (RFC 9111 §3, §5.2.2.3).
func statusForbidsStoring(in *storeInput) Reason {
	if reason := statusForbids(in.resp.Status); reason != "" {
		return reason
	}
	if in.d.MustUnderstand && !understood(in.resp.Status) && !in.r.ignoreAll() {
		return ReasonStatusNotUnderstood
	}
	return ""
}

// contentRangeForbidsStoring: Content-Range has no meaning but with 206 and 416
// (RFC 9110 §14.4), so nonsense in it is stored like any field. A range of bytes
// that parses shows a part that is given out as the whole.
func contentRangeForbidsStoring(in *storeInput) Reason {
	if isContentRange(in.resp.Header.Get("content-range")) {
		return ReasonPartial
	}
	return ""
}

// noStoreForbidsStoring: no-store (RFC 9111 §5.2.2.5) counts unless
// must-understand stands beside it and the status is understood (§5.2.2.3).
func noStoreForbidsStoring(in *storeInput) Reason {
	if in.d.NoStore && !in.d.MustUnderstand && !in.r.ignoreAll() {
		return ReasonNoStore
	}
	return ""
}

// privateForbidsStoring: this cache is shared (RFC 9111 §5.2.2.7).
func privateForbidsStoring(in *storeInput) Reason {
	if in.d.Private && !in.r.ignoreAll() {
		return ReasonPrivate
	}
	return ""
}

// credentialsForbidStoring: see credentialsForbid.
func credentialsForbidStoring(in *storeInput) Reason {
	return credentialsForbid(in.req, in.resp.Header, &in.d, in.r)
}

// requestForbidsStoring: no-store of the request (RFC 9111 §5.2.1.5).
func requestForbidsStoring(in *storeInput) Reason {
	if in.r.HonorRequestDirectives && ParseDirectives(in.req.Header).NoStore {
		return ReasonRequestNoStore
	}
	return ""
}

// setCookieForbidsStoring: RFC 9111 §7.3 leaves it to the cache; here a cookie is
// for one client. An origin that excludes the field itself
// (no-cache="set-cookie") has taken care of it.
func setCookieForbidsStoring(in *storeInput) Reason {
	if in.resp.Header.Has("set-cookie") && !in.r.StripSetCookie && !in.d.excludes("set-cookie") {
		return ReasonSetCookie
	}
	return ""
}

// varyForbidsStoring: what no other request can match is not stored (RFC 9111
// §4.1).
func varyForbidsStoring(in *storeInput) Reason {
	if ParseVary(in.resp.Header).Any {
		return ReasonVaryAny
	}
	return ""
}

// noCacheForbidsStoring: a response that must always be validated (RFC 9111
// §5.2.2.4) and cannot be is of no use.
func noCacheForbidsStoring(in *storeInput) Reason {
	if in.d.NoCache && !in.r.ignoreAll() && len(Validators(in.resp.Header)) == 0 {
		return ReasonNoCacheNoValidator
	}
	return ""
}

// contentTypeForbidsStoring: answers without an end are never whole.
func contentTypeForbidsStoring(in *storeInput) Reason {
	switch mediaType(in.resp.Header.Get("content-type")) {
	case "text/event-stream", "multipart/x-mixed-replace":
		return ReasonEventStream
	}
	return ""
}
