package httpcache

import (
	"strconv"
	"strings"
	"time"
)

// maxRanges bounds the ranges that one request may ask for.
const maxRanges = 16

// ByteRange is a range of bytes inside a representation: Start is the first,
// Length their number, at least 1.
type ByteRange struct {
	Start, Length int64
}

// RangeOutcome says how to answer a request with Range.
type RangeOutcome int

// The outcomes of ParseRange.
const (
	RangeIgnored       RangeOutcome = iota // answer as if there were no Range
	RangePartial                           // 206 with the ranges
	RangeUnsatisfiable                     // 416, with AppendUnsatisfiedRange
)

// ParseRange reads a Range field for a representation of size bytes (RFC 9110
// §14.1.2, §14.2). All ranges lie inside it, in the order asked for; those that
// are not satisfiable are left out.
//
// A server may ignore Range. This one does where the unit is not bytes, the value
// does not parse, the representation is empty, or the request asks for more than
// it would get by asking for the whole (§14.2, §17.15): more than 16 ranges, more
// than two that overlap, or more bytes in all than there are.
func ParseRange(value string, size int64) (ranges []ByteRange, outcome RangeOutcome) {
	unit, set, ok := strings.Cut(trimOWS(value), "=")
	if !ok || !strings.EqualFold(unit, "bytes") || size <= 0 {
		return nil, RangeIgnored
	}
	specs := 0
	for set != "" {
		var spec string
		spec, set = cutMember(set)
		if spec == "" {
			continue
		}
		specs++
		r, satisfiable, ok := parseRangeSpec(spec, size)
		if !ok || specs > maxRanges {
			return nil, RangeIgnored
		}
		if satisfiable {
			ranges = append(ranges, r)
		}
	}
	switch {
	case specs == 0 || excessive(ranges, size):
		return nil, RangeIgnored
	case len(ranges) == 0:
		return nil, RangeUnsatisfiable
	}
	return ranges, RangePartial
}

// parseRangeSpec parses int-range or suffix-range (RFC 9110 §14.1.1).
func parseRangeSpec(spec string, size int64) (r ByteRange, satisfiable, ok bool) {
	first, last, ok := strings.Cut(spec, "-")
	if !ok {
		return r, false, false
	}
	if first == "" {
		n, ok := parsePosition(last)
		n = min(n, size)
		return ByteRange{size - n, n}, n > 0, ok
	}
	start, ok := parsePosition(first)
	if !ok {
		return r, false, false
	}
	end := size - 1
	if last != "" {
		if end, ok = parsePosition(last); !ok || end < start {
			return r, false, false
		}
		end = min(end, size-1)
	}
	if start >= size {
		return r, false, true
	}
	return ByteRange{start, end - start + 1}, true, true
}

// maxPosition stands for all positions beyond it. Ten times as much is still an
// int64.
const maxPosition = 1 << 59

// parsePosition parses a string of digits; what is too large counts as
// maxPosition.
func parsePosition(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), maxPosition)
	}
	return n, true
}

// excessive reports whether ranges ask for more bytes than there are, or whether
// more than two of them overlap.
func excessive(ranges []ByteRange, size int64) bool {
	var sum int64
	overlapping := 0
	for i, a := range ranges {
		sum += a.Length // at most 16 × size; size is a body in memory
		for j, b := range ranges {
			if i != j && a.Start < b.Start+b.Length && b.Start < a.Start+a.Length {
				overlapping++
				break
			}
		}
	}
	return sum > size || overlapping > 2
}

// rangeDateMargin is how much older than Date a Last-Modified must be to be a
// strong validator (RFC 9110 §8.8.2.2): enough to make clocks out of step
// unlikely to matter.
const rangeDateMargin = 60 * time.Second

// RangeApplies evaluates If-Range against a stored response (RFC 9110 §13.1.5):
// false means to ignore Range and to send the whole. An entity tag must be the
// same by strong comparison; a date must be exactly a Last-Modified that is
// strong.
func RangeApplies(req Fields, stored Fields) bool {
	value, ok := req.Joined("if-range")
	if !ok {
		return true
	}
	value = trimOWS(value)
	if strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "W/") {
		mine := stored.Get("etag")
		return mine != "" && strongMatch(parseETag(value), parseETag(mine))
	}
	date, _, ok := fieldDate(stored, "date", time.Time{})
	if !ok {
		return false
	}
	asked, ok := parseDate(value, date)
	if !ok {
		return false
	}
	modified, _, ok := fieldDate(stored, "last-modified", date)
	return ok && modified.Equal(asked) && date.Sub(modified) >= rangeDateMargin
}

// AppendContentRange appends the value of Content-Range for one range of a
// representation of size bytes (RFC 9110 §14.4).
func AppendContentRange(dst []byte, r ByteRange, size int64) []byte {
	dst = append(dst, "bytes "...)
	dst = strconv.AppendInt(dst, r.Start, 10)
	dst = append(dst, '-')
	dst = strconv.AppendInt(dst, r.Start+r.Length-1, 10)
	dst = append(dst, '/')
	return strconv.AppendInt(dst, size, 10)
}

// AppendUnsatisfiedRange appends the value of Content-Range for a 416 (RFC 9110
// §14.4, §15.5.17).
func AppendUnsatisfiedRange(dst []byte, size int64) []byte {
	dst = append(dst, "bytes */"...)
	return strconv.AppendInt(dst, size, 10)
}

// isContentRange reports whether a Content-Range names a range of bytes (RFC
// 9110 §14.4).
func isContentRange(value string) bool {
	unit, rest, ok := strings.Cut(trimOWS(value), " ")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return false
	}
	span, size, ok := strings.Cut(trimOWS(rest), "/")
	if _, digits := parsePosition(size); !ok || size != "*" && !digits {
		return false
	}
	first, last, _ := strings.Cut(span, "-")
	_, okFirst := parsePosition(first)
	_, okLast := parsePosition(last)
	return span == "*" || okFirst && okLast
}
