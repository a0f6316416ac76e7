package redis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/httpcache"
)

// Errors of decode.
var (
	errFormat    = errors.New("unknown format")
	errMalformed = errors.New("malformed head")
)

// decode reads a head in a format of this release or the one before. It
// allocates no more than in proportion to data, and never panics.
func decode(format byte, data []byte) (*head, error) {
	r := reader{rest: data}
	var h *head
	switch format {
	case format1:
		h = r.head1()
	case format2:
		h = r.head2()
	default:
		return nil, fmt.Errorf("%w %d", errFormat, format)
	}
	e := &h.entry
	switch {
	case r.failed || len(r.rest) > 0:
		return nil, errMalformed
	case h.length < 0 || h.length > cachepolicy.MaxObjectSize,
		e.Status < 100 || e.Status > 999,
		len(e.Vary.Names) != len(e.VaryValues):
		return nil, errMalformed
	}
	return h, nil
}

func (r *reader) head2() *head {
	h := &head{}
	e := &h.entry
	e.Shared.Token, e.Shared.Body = r.uint(), r.uint()
	h.length, h.received = int64(r.uint()), int64(r.uint())
	for _, d := range [...]*time.Duration{&e.InitialAge, &e.Lifetime, &e.WhileRevalidate, &e.IfError, &e.Cost} {
		*d = time.Duration(r.int())
	}
	r.tail(h)
	return h
}

// head1 reads the format before: no cost, no body of an older token, durations
// and the time of arrival in milliseconds.
func (r *reader) head1() *head {
	h := &head{}
	e := &h.entry
	e.Shared.Token = r.uint()
	e.Shared.Body = e.Shared.Token
	h.length, h.received = int64(r.uint()), int64(r.uint())*1000
	for _, d := range [...]*time.Duration{&e.InitialAge, &e.Lifetime, &e.WhileRevalidate, &e.IfError} {
		*d = time.Duration(r.int()) * time.Millisecond
	}
	r.tail(h)
	return h
}

// tail reads what both formats have in common.
func (r *reader) tail(h *head) {
	e := &h.entry
	flags := r.uint()
	e.ValidateAlways = flags&flagValidateAlways != 0
	e.Negative = flags&flagNegative != 0
	e.Unreachable = flags&flagUnreachable != 0
	e.Status = int(min(r.uint(), 1<<16))
	e.Birth = r.uint()
	e.Key.Canonical, e.URI, e.Policy = r.string(), r.string(), r.string()
	e.Vary.Names, e.VaryValues = r.strings(maxVary), r.strings(maxVary)
	e.Tags = r.strings(maxTags)
	e.Header = r.fields()
}

// reader takes values from the front of rest. After the first failure it returns
// zero values.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) fail() {
	r.rest, r.failed = nil, true
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) string() string {
	n := r.uint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

// count reads the length of a list of at most limit elements, each of which has
// at least size bytes.
func (r *reader) count(limit, size int) int {
	n := r.uint()
	if n > uint64(limit) || n > uint64(len(r.rest)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) strings(limit int) []string {
	n := r.count(limit, 1)
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.string()
	}
	return list
}

func (r *reader) fields() httpcache.Fields {
	n := r.count(maxFields, 2)
	if n == 0 {
		return nil
	}
	list := make(httpcache.Fields, n)
	for i := range list {
		list[i].Name = r.string()
		list[i].Value = r.string()
	}
	return list
}
