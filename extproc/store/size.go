package store

import (
	"unsafe"

	"github.com/weirproxy/weir/extproc/httpcache"
)

const (
	bodySize   = int64(unsafe.Sizeof(Body{}))
	entrySize  = int64(unsafe.Sizeof(Entry{}))
	fieldSize  = int64(unsafe.Sizeof(httpcache.Field{}))
	stringSize = int64(unsafe.Sizeof(""))
	sliceSize  = int64(unsafe.Sizeof([]byte(nil)))
)

// Size returns the bytes of memory that the entry occupies: its structs, its
// text, headers, wire bytes and body, as the allocator rounds them. It is exact
// for what Packed returns and a lower bound for others, whose strings may hold
// on to larger buffers.
func (e *Entry) Size() int64 {
	n := allocSize(entrySize) + allocSize(e.textLen())
	n += allocSize(int64(len(e.Header)) * fieldSize)
	n += allocSize(int64(len(e.Vary.Names)+len(e.VaryValues)+len(e.Tags)) * stringSize)
	n += allocSize(int64(len(e.Wire)))
	switch {
	case e.Body == nil:
	case e.Body.within(e.Wire):
		n += bodySize
	default:
		n += e.Body.size()
	}
	return n
}

// allocSize returns what the Go allocator hands out for n bytes, to within a few
// per cent: eight size classes for each power of two up to 32 KiB, whole pages
// above.
func allocSize(n int64) int64 {
	const page = 8 << 10
	switch {
	case n <= 0:
		return 0
	case n <= 128:
		return (n + 15) &^ 15
	case n > 32<<10:
		return (n + page - 1) &^ (page - 1)
	}
	step := int64(16)
	for step<<4 < n {
		step <<= 1
	}
	return (n + step - 1) &^ (step - 1)
}
