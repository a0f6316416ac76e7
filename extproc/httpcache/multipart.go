package httpcache

import "encoding/hex"

// Multipart lays out a 206 with more than one range: multipart/byteranges
// (RFC 9110 §14.6, §15.3.7.2). For each range the caller sends PartHeader and
// then the bytes, at the end Trailer.
type Multipart struct {
	Ranges   []ByteRange
	Size     int64  // of the whole representation
	PartType string // the stored Content-Type; "" if there is none
	Boundary string // see MultipartBoundary
}

// MultipartBoundary makes a boundary of random bytes. They must not be known to
// who made the content, which could otherwise forge parts.
func MultipartBoundary(random [16]byte) string {
	return hex.EncodeToString(random[:])
}

// ContentType returns the Content-Type of the message. The stored one goes into
// each part, and the message has no Content-Range.
func (m *Multipart) ContentType() string {
	return "multipart/byteranges; boundary=" + m.Boundary
}

// PartHeader returns what stands before the bytes of range i.
func (m *Multipart) PartHeader(i int) []byte {
	dst := make([]byte, 0, len(m.Boundary)+len(m.PartType)+96)
	if i > 0 {
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "--"...)
	dst = append(dst, m.Boundary...)
	dst = append(dst, "\r\n"...)
	if m.PartType != "" {
		dst = append(dst, "Content-Type: "...)
		dst = append(dst, m.PartType...)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "Content-Range: "...)
	dst = AppendContentRange(dst, m.Ranges[i], m.Size)
	return append(dst, "\r\n\r\n"...)
}

// Trailer returns what stands after the bytes of the last range.
func (m *Multipart) Trailer() []byte {
	return []byte("\r\n--" + m.Boundary + "--\r\n")
}

// Length returns the Content-Length of the message.
func (m *Multipart) Length() int64 {
	n := int64(len(m.Trailer()))
	for i, r := range m.Ranges {
		n += int64(len(m.PartHeader(i))) + r.Length
	}
	return n
}
