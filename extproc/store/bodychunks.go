package store

import "slices"

// fill copies a prefix of p behind the last byte and returns its length, > 0.
// The caller holds mu.
func (b *Body) fill(p []byte) int {
	g, last := b.grow, len(b.chunks)-1
	var n int
	switch {
	case last < 0 || cap(b.chunks[last]) == len(b.chunks[last]):
		buf := make([]byte, 0, b.bufferSize(len(p)))
		n = min(cap(buf), len(p))
		g.buffer = len(b.chunks)
		b.chunks = append(b.chunks, append(buf, p[:n]...))
	case g.first+last >= g.seen: // nobody has seen the last chunk: it may grow
		c := b.chunks[last]
		n = min(cap(c)-len(c), len(p))
		b.chunks[last] = append(c, p[:n]...)
	default: // a reader has: go on behind it, in the same buffer
		c := b.chunks[last]
		n = min(cap(c)-len(c), len(p))
		b.chunks[last] = slices.Clip(c)
		b.chunks = append(b.chunks, append(c[len(c):], p[:n]...))
	}
	g.held += int64(n)
	b.length.Add(int64(n))
	return n
}

// bufferSize returns how much to allocate when n > 0 bytes are to be copied:
// what the Content-Length still promises, or else as much again as there is, so
// that a body of unknown length takes few buffers and wastes less than half of
// the last, which settle gives back.
func (b *Body) bufferSize(n int) int {
	length := b.Len()
	if rest := b.grow.known - length; rest >= int64(n) {
		return int(min(rest, ChunkSize))
	}
	return int(min(max(int64(n), length), ChunkSize))
}

// slide drops the chunks that lie before the window of a trimmed body. The
// caller holds mu.
func (b *Body) slide() {
	g := b.grow
	if !g.trimmed {
		return
	}
	drop := 0
	for drop < len(b.chunks) && g.held-int64(len(b.chunks[drop])) >= g.window {
		g.held -= int64(len(b.chunks[drop]))
		drop++
	}
	kept := copy(b.chunks, b.chunks[drop:])
	clear(b.chunks[kept:])
	b.chunks = b.chunks[:kept]
	if cap(b.chunks) > len(b.one) {
		b.one[0] = nil // a copy of the first chunk, made before the table outgrew it
	}
	g.first += drop
	g.buffer = max(g.buffer-drop, 0)
}

// settle gives back what the last buffer has to spare, and puts a small body
// into one buffer. The caller holds mu.
func (b *Body) settle() {
	last := len(b.chunks) - 1
	if last < 0 {
		return
	}
	spare := cap(b.chunks[last]) > len(b.chunks[last])
	switch {
	case b.grow.held <= ChunkSize && (last > 0 || spare):
		b.repack(0)
	case spare:
		b.repack(b.grow.buffer)
	}
}

// repack moves the chunks from index from on into one buffer of the exact size.
// Boundaries that a reader has seen stay; the rest becomes one chunk. Together
// the chunks must not exceed ChunkSize.
func (b *Body) repack(from int) {
	size := 0
	for _, c := range b.chunks[from:] {
		size += len(c)
	}
	buf := make([]byte, 0, size)
	moved := make([][]byte, 0, len(b.chunks)-from)
	start := 0
	for i, c := range b.chunks[from:] {
		buf = append(buf, c...)
		if at := from + i; b.grow.first+at < b.grow.seen || at == len(b.chunks)-1 {
			moved = append(moved, buf[start:len(buf):len(buf)])
			start = len(buf)
		}
	}
	if from == 0 && len(moved) == 1 {
		b.one[0] = moved[0]
		b.chunks = b.one[:1:1]
		return
	}
	b.chunks = append(b.chunks[:from:from], moved...)
	b.one[0] = nil
}

// size returns the bytes that a whole body occupies: struct, table and buffers.
func (b *Body) size() int64 {
	n := bodySize
	if cap(b.chunks) > 1 {
		n += allocSize(int64(cap(b.chunks)) * sliceSize)
	}
	if b.Len() <= ChunkSize {
		return n + allocSize(b.Len())
	}
	for _, c := range b.chunks {
		n += int64(len(c))
	}
	return n
}

// within reports whether the body is the last part of wire, in the same memory.
func (b *Body) within(wire []byte) bool {
	if !b.Whole() || len(b.chunks) != 1 || len(wire) < len(b.chunks[0]) {
		return false
	}
	c := b.chunks[0]
	return len(c) > 0 && &wire[len(wire)-len(c)] == &c[0]
}
