package httpcache

import (
	"strconv"
	"strings"
	"time"
)

// InitialAge returns the age that a response had when it was received:
// corrected_initial_age of RFC 9111 §4.2.3, between 0 and 2³¹ s.
//
// It is the Age field plus the time the response took, counted from when its
// request was sent. That needs no clock but our own, so a skewed or missing Date
// neither shortens nor stretches a life. Only if Via names an HTTP/1.0 hop, which
// may be a cache that writes no Age, does the Date count too (apparent_age).
func InitialAge(resp *Response, requestTime, responseTime time.Time) time.Duration {
	delay := max(0, responseTime.Sub(requestTime))
	age := ageValue(resp.Header) + min(delay, maxDelta)
	if crossedHTTP10(resp.Header) {
		if date, _, ok := fieldDate(resp.Header, "date", responseTime); ok {
			age = max(age, responseTime.Sub(date))
		}
	}
	return min(age, maxDelta)
}

// ageValue returns the value of the Age field, or 0. Of a list the first member
// counts, and what is no non-negative integer is ignored (RFC 9111 §5.1). A
// parameter, which the field does not have, does not hide the number before it:
// that errs towards stale.
func ageValue(f Fields) time.Duration {
	first, _ := cutMember(f.Get("age"))
	first, _, _ = strings.Cut(first, ";")
	age, _ := parseDelta(trimOWS(first))
	return age
}

// crossedHTTP10 reports whether a hop that spoke HTTP/1.0 is named in Via
// (RFC 9110 §7.6.3).
func crossedHTTP10(f Fields) bool {
	for i := range f {
		if f[i].Name != "via" {
			continue
		}
		for list := f[i].Value; list != ""; {
			var hop string
			hop, list = cutMember(list)
			protocol, _, _ := strings.Cut(hop, " ")
			if protocol == "1.0" || strings.EqualFold(protocol, "HTTP/1.0") {
				return true
			}
		}
	}
	return false
}

// AppendAge appends the value of an Age field: whole seconds, rounded down,
// between 0 and 2³¹ (RFC 9111 §5.1).
func AppendAge(dst []byte, age time.Duration) []byte {
	return strconv.AppendInt(dst, int64(min(max(age, 0), maxDelta)/time.Second), 10)
}
