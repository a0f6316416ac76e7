package httpcache

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"testing"
)

// RFC 9110 §14.6: another implementation reads back what was asked for.
func TestMultipart(t *testing.T) {
	t.Parallel()
	body := []byte("0123456789ABCDEF")
	for _, partType := range []string{"text/plain; charset=utf-8", ""} {
		ranges, _ := ParseRange("bytes=0-3, -2, 8-9", int64(len(body)))
		m := Multipart{Ranges: ranges, Size: int64(len(body)), PartType: partType,
			Boundary: MultipartBoundary([16]byte{1, 0xfe})}
		message := assemble(&m, body)
		wantEqual(t, "Length", m.Length(), int64(len(message)))

		mediaType, params, err := mime.ParseMediaType(m.ContentType())
		if err != nil || mediaType != "multipart/byteranges" {
			t.Fatalf("Content-Type %q: %q, %v", m.ContentType(), mediaType, err)
		}
		r := multipart.NewReader(bytes.NewReader(message), params["boundary"])
		for _, want := range []struct{ content, contentRange string }{
			{"0123", "bytes 0-3/16"}, {"EF", "bytes 14-15/16"}, {"89", "bytes 8-9/16"},
		} {
			part, err := r.NextRawPart()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(part)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "content", string(content), want.content)
			wantEqual(t, "Content-Range", part.Header.Get("Content-Range"), want.contentRange)
			wantEqual(t, "Content-Type", part.Header.Get("Content-Type"), partType)
		}
		if _, err := r.NextRawPart(); err != io.EOF {
			t.Errorf("after the last part: %v, want EOF", err)
		}
	}
}

// assemble does what a caller does: headers, slices of the body, trailer.
func assemble(m *Multipart, body []byte) []byte {
	var message []byte
	for i, r := range m.Ranges {
		message = append(message, m.PartHeader(i)...)
		message = append(message, body[r.Start:r.Start+r.Length]...)
	}
	return append(message, m.Trailer()...)
}
