package store

import (
	"math"
	"testing"
)

// TestAllocSize compares with what append gets from the allocator.
func TestAllocSize(t *testing.T) {
	t.Parallel()
	for n := 1; n < 200_000; n += 1 + n/50 {
		given := float64(cap(append([]byte(nil), make([]byte, n)...)))
		got := float64(allocSize(int64(n)))
		if off := math.Abs(got-given) / given; n > 24 && off > 0.13 || int(got) < n {
			t.Errorf("allocSize(%d) = %v, the allocator gives %v", n, got, given)
		}
	}
	if got := allocSize(0); got != 0 {
		t.Errorf("allocSize(0) = %d", got)
	}
}

// TestBodySizeIsNearItsLength: however a body comes, once whole it occupies
// little more than its bytes.
func TestBodySizeIsNearItsLength(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		known         int64
		length, piece int
		readers       bool
		ratio         float64
	}{
		{"1 KiB at once", 1 << 10, 1 << 10, 1 << 10, false, 1.1},
		{"1 KiB of unknown length", -1, 1 << 10, 100, false, 1.1},
		{"1 MiB, length known", 1 << 20, 1 << 20, 16 << 10, false, 1.01},
		{"1 MiB, length known, read as it comes", 1 << 20, 1 << 20, 16 << 10, true, 1.01},
		{"1 MiB of unknown length", -1, 1 << 20, 16 << 10, false, 1.02},
		{"1 MiB in odd pieces", -1, 1 << 20, 999, false, 1.02},
		{"1 MiB in odd pieces, read as they come", -1, 1 << 20, 999, true, 1.06},
		{"a false promise of more", -1, 70_000, 70_000, false, 1.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := NewBody(c.known)
			next := 0
			for left := c.length; left > 0; left -= c.piece {
				mustAppend(t, b, string(make([]byte, min(left, c.piece))))
				for c.readers {
					chunk, _, _ := b.Next(next)
					if chunk == nil {
						break
					}
					next++
				}
			}
			b.End()
			if ratio := float64(b.size()) / float64(c.length); ratio > c.ratio {
				t.Errorf("%d bytes occupy %.3f times as many", c.length, ratio)
			}
			for _, chunk := range b.chunks {
				if len(chunk) > ChunkSize {
					t.Errorf("a chunk has %d bytes", len(chunk))
				}
			}
			if c.length <= ChunkSize && !c.readers && len(b.chunks) != 1 {
				t.Errorf("a small body lies in %d slices", len(b.chunks))
			}
		})
	}
}
