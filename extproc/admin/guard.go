package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// guard refuses requests that a browser was tricked into, and those without the
// token.
//
// A page in a browser on this machine can reach a loopback port. By DNS
// rebinding it even becomes same-origin, under its own name: so a listener on
// loopback answers to loopback names only. A cross-origin request, of whatever
// method, is refused: pprof costs CPU on a GET.
func (h *handler) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case h.o.Loopback && !loopbackHost(r.Host):
			writeError(w, &Error{Status: http.StatusForbidden, Message: "host " + r.Host + " is not this machine",
				Hint: "ask for localhost or 127.0.0.1"})
		case crossOrigin(r):
			writeError(w, &Error{Status: http.StatusForbidden, Message: "cross-origin request",
				Hint: "the admin API is not for web pages"})
		case !h.authorized(r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
			writeError(w, &Error{Status: http.StatusUnauthorized, Message: "no valid token",
				Hint: "send Authorization: Bearer with the content of --admin-token-file"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func loopbackHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// crossOrigin reports whether a browser says that another origin's page asks.
func crossOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}

// authorized compares digests, so that the time it takes says nothing about the
// token, its length included.
func (h *handler) authorized(r *http.Request) bool {
	if h.o.Token == nil {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	want, got := sha256.Sum256([]byte(h.o.Token())), sha256.Sum256([]byte(given))
	return given != "" && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}
