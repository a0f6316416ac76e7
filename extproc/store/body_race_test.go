package store

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// race lets 32 readers tail a body while write writes to it, and returns
// what each reader saw and how it ended.
func race(write func(b *Body)) (got [32][]byte, states [32]BodyState) {
	b := NewBody(-1)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], states[i] = tail(b) })
	}
	write(b)
	wg.Wait()
	return got, states
}

func appendAll(t *testing.T, b *Body, content []byte) {
	t.Helper()
	for len(content) > 0 {
		n := min(len(content), 1000)
		if err := b.Append(content[:n]); err != nil {
			t.Errorf("Append: %v", err)
		}
		content = content[n:]
	}
}

// TestBodyRace: whatever the writer does meanwhile, a reader sees a prefix of the
// content, all of it if it is told that the body is whole.
func TestBodyRace(t *testing.T) {
	t.Parallel()
	content := []byte(strings.Repeat("stampede", 40_000))
	half := len(content) / 2
	for _, c := range []struct {
		name  string
		write func(b *Body)
		ends  []BodyState
	}{
		{"end", func(b *Body) { appendAll(t, b, content); b.End() }, []BodyState{BodyWhole}},
		{"break", func(b *Body) {
			appendAll(t, b, content)
			b.Break(errors.New("broken"))
		}, []BodyState{BodyBroken}},
		{"trim", func(b *Body) {
			appendAll(t, b, content[:half])
			b.Trim(100 << 10)
			appendAll(t, b, content[half:])
			b.End()
		}, []BodyState{BodyWhole, BodyLagged}},
		{"trim to nothing", func(b *Body) {
			b.Trim(0)
			appendAll(t, b, content)
			b.End()
		}, []BodyState{BodyWhole, BodyLagged}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, states := race(c.write)
			for i, state := range states {
				if !bytes.HasPrefix(content, got[i]) {
					t.Errorf("reader %d saw bytes that were not written in this order", i)
				}
				if state == BodyWhole && len(got[i]) != len(content) {
					t.Errorf("reader %d saw %d of %d bytes as the whole", i, len(got[i]), len(content))
				}
				if !slices.Contains(c.ends, state) {
					t.Errorf("reader %d ended in state %d, want one of %v", i, state, c.ends)
				}
			}
		})
	}
}
