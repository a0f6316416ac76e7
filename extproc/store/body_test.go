package store

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// tail reads the body from its first chunk to its end, as a follower does.
func tail(b *Body) ([]byte, BodyState) {
	var got []byte
	for i := 0; ; {
		chunk, state, changed := b.Next(i)
		switch {
		case chunk != nil:
			got = append(got, chunk...)
			i++
		case state == BodyOpen:
			<-changed
		default:
			return got, state
		}
	}
}

func mustAppend(t *testing.T, b *Body, p string) {
	t.Helper()
	if err := b.Append([]byte(p)); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

func TestBodyTailersSeeEachAppend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBody(-1)
		var got []string
		go func() {
			for i := 0; ; {
				chunk, state, changed := b.Next(i)
				switch {
				case chunk != nil:
					got = append(got, string(chunk))
					i++
				case state == BodyOpen:
					<-changed
				default:
					return
				}
			}
		}()
		want := []string{"one", "two", "three"}
		for _, p := range want {
			mustAppend(t, b, p)
			synctest.Wait()
		}
		b.End()
		synctest.Wait()
		if !slices.Equal(got, want) {
			t.Errorf("tailer got %q, want %q", got, want)
		}
	})
}

func TestBodyGathersWhatNobodyHasSeen(t *testing.T) {
	t.Parallel()
	b := NewBody(-1)
	for range 1000 {
		mustAppend(t, b, "0123456789")
	}
	b.End()
	chunk, _, _ := b.Next(0)
	if len(chunk) != 10_000 || cap(chunk) != 10_000 {
		t.Errorf("first chunk has len %d, cap %d; want all 10000 bytes in one exact chunk", len(chunk), cap(chunk))
	}
	if _, state, _ := b.Next(1); state != BodyWhole {
		t.Errorf("after the last chunk: state %d, want BodyWhole", state)
	}
}

func TestBodyKeepsBoundariesThatAReaderHasSeen(t *testing.T) {
	t.Parallel()
	b := NewBody(8)
	mustAppend(t, b, "ab")
	if c, _, _ := b.Next(0); string(c) != "ab" {
		t.Fatalf("chunk 0 = %q", c)
	}
	mustAppend(t, b, "cd")
	mustAppend(t, b, "ef")
	mustAppend(t, b, "gh")
	b.End()
	if c, _, _ := b.Next(1); string(c) != "cdefgh" {
		t.Errorf("chunk 1 = %q, want all that came after the seen chunk", c)
	}
}

func TestBodyLengthMustMatchContentLength(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{"short": {"abc"}, "long": {"abcdef"}, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBody(5)
			for _, p := range parts {
				mustAppend(t, b, p)
			}
			b.End()
			if b.Whole() || !errors.Is(b.Err(), ErrLength) {
				t.Errorf("Whole %v, Err %v; want a body broken by ErrLength", b.Whole(), b.Err())
			}
		})
	}
}

func TestBodyBreakReachesReadersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBody(-1)
		mustAppend(t, b, "abc")
		var state BodyState
		go func() { _, state = tail(b) }()
		synctest.Wait()
		cause := errors.New("leader's client left")
		b.Break(cause)
		b.End()
		synctest.Wait()
		if state != BodyBroken || !errors.Is(b.Err(), cause) || b.Whole() {
			t.Errorf("state %d, Err %v, Whole %v", state, b.Err(), b.Whole())
		}
		if err := b.Append([]byte("x")); !errors.Is(err, ErrClosed) {
			t.Errorf("Append after Break = %v, want ErrClosed", err)
		}
	})
}

func TestBodyBytes(t *testing.T) {
	t.Parallel()
	content := []byte(strings.Repeat("0123456789abcdef", 10_000)) // 160,000 bytes: three chunks
	b := NewBody(int64(len(content)))
	if err := b.Append(content); err != nil {
		t.Fatal(err)
	}
	if got := collect(b, 0, 10); got != nil {
		t.Errorf("an open body gave %d bytes", len(got))
	}
	b.End()
	for _, c := range []struct{ off, n int64 }{
		{0, 0}, {0, 1}, {0, 160_000}, {65_530, 12}, {65_536, 65_536},
		{159_999, 50}, {160_000, 1}, {0, 1 << 62}, {-1, 5},
	} {
		var want []byte
		if c.off >= 0 && c.off < 160_000 {
			want = content[c.off:min(160_000, c.off+c.n)]
		}
		if got := collect(b, c.off, c.n); !bytes.Equal(got, want) {
			t.Errorf("Bytes(%d, %d) gave %d bytes, want %d", c.off, c.n, len(got), len(want))
		}
	}
}

func collect(b *Body, off, n int64) (out []byte) {
	for part := range b.Bytes(off, n) {
		out = append(out, part...)
	}
	return out
}

// TestBodyWindow: a trimmed body holds no more than its window and one chunk; a
// reader that keeps up sees all, one that lags is told so.
func TestBodyWindow(t *testing.T) {
	t.Parallel()
	const window, piece = 256 << 10, 16 << 10
	b := NewBody(-1)
	var seen int64
	next := 0
	for i := range 1000 {
		if i == 10 {
			b.Trim(window)
		}
		if err := b.Append(make([]byte, piece)); err != nil {
			t.Fatal(err)
		}
		for c, _, _ := b.Next(next); c != nil; c, _, _ = b.Next(next) {
			seen += int64(len(c))
			next++
		}
		if held := b.grow.held; held > max(window+ChunkSize, 10*piece) {
			t.Fatalf("after %d appends the body holds %d bytes", i+1, held)
		}
	}
	if _, state, _ := b.Next(0); state != BodyLagged {
		t.Errorf("a reader at chunk 0 gets state %d, want BodyLagged", state)
	}
	b.End()
	if _, state, _ := b.Next(next); seen != 1000*piece || state != BodyWhole {
		t.Errorf("the reader that kept up saw %d bytes and state %d", seen, state)
	}
	if b.Whole() {
		t.Error("a trimmed body must not be whole: it would be stored")
	}
	if _, state, _ := b.Next(0); state != BodyLagged {
		t.Errorf("after the end, a reader at chunk 0 gets state %d, want BodyLagged", state)
	}
}

// TestBodyModel drives a body and a plain byte slice with the same random
// appends, reads, trims and ends, and compares what readers see.
func TestBodyModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{20, 3000, 200_000}).Draw(t, "size")
		var content []byte
		known := int64(-1)
		if rapid.Bool().Draw(t, "lengthKnown") {
			known = int64(rapid.IntRange(0, 4*size).Draw(t, "known"))
		}
		b := NewBody(known)
		readers := make([]struct {
			next int
			got  []byte
		}, 3)
		read := func(t *rapid.T) {
			r := &readers[rapid.IntRange(0, 2).Draw(t, "reader")]
			if c, _, _ := b.Next(r.next); c != nil {
				r.got = append(r.got, c...)
				r.next++
			}
			if !bytes.HasPrefix(content, r.got) {
				t.Fatalf("a reader saw bytes that were not appended in this order")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				mark := []byte{byte(len(content)), byte(len(content) >> 8)}
				p := bytes.Repeat(mark, rapid.IntRange(0, size/2).Draw(t, "n"))
				content = append(content, p...)
				if err := b.Append(p); err != nil {
					t.Fatal(err)
				}
			},
			"read": read,
		})
		b.End()
		if known >= 0 && known != int64(len(content)) {
			if !errors.Is(b.Err(), ErrLength) {
				t.Fatalf("%d of %d bytes, Err %v", len(content), known, b.Err())
			}
			return
		}
		for i := range readers {
			for c, _, _ := b.Next(readers[i].next); c != nil; c, _, _ = b.Next(readers[i].next) {
				readers[i].got = append(readers[i].got, c...)
				readers[i].next++
			}
			if !bytes.Equal(readers[i].got, content) {
				t.Fatalf("reader %d saw %d of %d bytes", i, len(readers[i].got), len(content))
			}
		}
		if got := collect(b, 0, b.Len()); !bytes.Equal(got, content) {
			t.Fatalf("Bytes gave %d of %d bytes", len(got), len(content))
		}
	})
}

// BenchmarkBodyTailers is the cost of one append of 16 KiB to a body that many
// readers tail, until the last of them has it.
func BenchmarkBodyTailers(b *testing.B) {
	for _, readers := range []int{0, 1, 250, 5000} {
		b.Run(strconv.Itoa(readers), func(b *testing.B) {
			body := NewBody(-1)
			var wg, seen sync.WaitGroup
			for range readers {
				wg.Go(func() {
					for i := 0; ; {
						chunk, state, changed := body.Next(i)
						switch {
						case chunk != nil:
							i++
							seen.Done()
						case state == BodyOpen:
							<-changed
						default:
							return
						}
					}
				})
			}
			p := make([]byte, 16<<10)
			b.ReportAllocs()
			for b.Loop() {
				seen.Add(readers)
				if err := body.Append(p); err != nil {
					b.Fatal(err)
				}
				seen.Wait()
				if body.Len() == 1024*int64(len(p)) {
					body.Trim(int64(len(p)))
				}
			}
			body.End()
			wg.Wait()
		})
	}
}
