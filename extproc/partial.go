package extproc

import (
	"crypto/rand"
	"iter"
	"strconv"

	"github.com/weirproxy/weir/extproc/httpcache"
	"github.com/weirproxy/weir/extproc/store"
)

// partial is what a Range request gets from a stored whole: 206, or 416 (RFC 9110
// §14.2, §15.3.7, §15.5.17).
type partial struct {
	status int
	size   int64 // of the whole
	ranges []httpcache.ByteRange
	multi  *httpcache.Multipart // for more than one range
}

// selectRange decides about the Range of a request; nil: the whole is answered.
func selectRange(req httpcache.Fields, e *store.Entry) *partial {
	value, ok := req.Joined("range")
	if !ok || !httpcache.RangeApplies(req, e.Header) {
		return nil
	}
	p := &partial{status: 206, size: e.Body.Len()}
	var outcome httpcache.RangeOutcome
	p.ranges, outcome = httpcache.ParseRange(value, p.size)
	switch {
	case outcome == httpcache.RangeIgnored:
		return nil
	case outcome == httpcache.RangeUnsatisfiable:
		p.status, p.ranges = 416, nil
	case len(p.ranges) > 1:
		var random [16]byte
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		p.multi = &httpcache.Multipart{
			Ranges: p.ranges, Size: p.size, PartType: e.Header.Get("content-type"),
			Boundary: httpcache.MultipartBoundary(random),
		}
	}
	return p
}

// header turns the fields of the whole into those of the part.
func (p *partial) header(h httpcache.Fields) httpcache.Fields {
	out := make(httpcache.Fields, 0, len(h)+2)
	for _, f := range h {
		if f.Name == "content-length" || f.Name == "content-range" || f.Name == "content-type" && p.multi != nil {
			continue
		}
		out = append(out, f)
	}
	var length int64
	switch {
	case p.multi != nil:
		length = p.multi.Length()
		out = append(out, httpcache.Field{Name: "content-type", Value: p.multi.ContentType()})
	case len(p.ranges) == 1:
		length = p.ranges[0].Length
		value := httpcache.AppendContentRange(nil, p.ranges[0], p.size)
		out = append(out, httpcache.Field{Name: "content-range", Value: string(value)})
	default:
		value := httpcache.AppendUnsatisfiedRange(nil, p.size)
		out = append(out, httpcache.Field{Name: "content-range", Value: string(value)})
	}
	return append(out, httpcache.Field{Name: "content-length", Value: strconv.FormatInt(length, 10)})
}

// body yields the bytes of the part, without copying those of the whole.
func (p *partial) body(b *store.Body) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i, r := range p.ranges {
			if p.multi != nil && !yield(p.multi.PartHeader(i)) {
				return
			}
			for chunk := range b.Bytes(r.Start, r.Length) {
				if !yield(chunk) {
					return
				}
			}
		}
		if p.multi != nil {
			yield(p.multi.Trailer())
		}
	}
}
