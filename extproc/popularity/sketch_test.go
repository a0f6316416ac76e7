package popularity

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func keyOf(n uint64) Key {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return sha256.Sum256(b[:])
}

// seeded returns a Sketch whose draws are the same in every run.
func seeded(o Options) *Sketch {
	r := rand.New(rand.NewPCG(1, 2))
	o.Rand = r.Uint64
	return New(o, start())
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= want*tolerance }

// steady reads a key at a rate from a time on, and returns the time after.
func steady(s *Sketch, key Key, rate float64, from time.Time, for_ time.Duration) time.Time {
	for i := range int(rate * for_.Seconds()) {
		s.Touch(&key, from.Add(time.Duration(float64(i)/rate*1e9)))
	}
	return from.Add(for_)
}

// TestRate: the rate of a key read steadily, once a Sketch is in balance and
// while it is young.
func TestRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.5, 5, 50, 500} {
		for _, age := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
			s, key := seeded(Options{}), keyOf(1)
			now := steady(s, key, rate, start(), age)
			if got := s.Rate(&key, now); !near(got, rate, 0.2) {
				t.Errorf("%v/s for %v: rate %v", rate, age, got)
			}
		}
	}
}

// TestSamplingIsFair: over many keys read as often, the mean of what sampling
// makes of them is right to a percent.
func TestSamplingIsFair(t *testing.T) {
	t.Parallel()
	s, sum := seeded(Options{HalfLife: time.Hour}), 0.0
	const keys, reads = 100, 5000
	for k := range uint64(keys) {
		key := keyOf(k)
		for range reads {
			s.Touch(&key, start())
		}
		slots := s.slots(&key)
		sum += float64(s.least(&slots, 0)) / one
	}
	if mean := sum / keys; !near(mean, reads, 0.02) {
		t.Errorf("%d reads count as %.0f on the mean", reads, mean)
	}
}

func TestDecay(t *testing.T) {
	t.Parallel()
	s, key := seeded(Options{}), keyOf(1)
	now := steady(s, key, 10, start(), time.Hour)
	before := s.Rate(&key, now)
	for halvings := range 12 {
		want := before / float64(uint64(1)<<halvings)
		if got := s.Rate(&key, now.Add(time.Duration(halvings)*time.Minute)); !near(got, want, 0.03) {
			t.Errorf("after %d half-lives %v, want %v", halvings, got, want)
		}
	}
	if got := s.Rate(&key, now.Add(48*time.Hour)); got != 0 {
		t.Errorf("after two days %v, want 0", got)
	}
	if got := s.Rate(&key, start().Add(-time.Hour)); got < 0 || math.IsInf(got, 0) || math.IsNaN(got) {
		t.Errorf("by a clock that is behind: %v", got)
	}
}

// TestCellKeepsTime: a count written by who is ahead is not halved for who is
// behind, and the clock of the cells may wrap around.
func TestCellKeepsTime(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		written, read uint64
		value, want   uint64
	}{
		{"at once", 7, 7, 1000, 1000},
		{"one half-life", 0, ticksPerHalfLife, 1000, 500},
		{"half of one", 0, ticksPerHalfLife / 2, 1000, 707},
		{"written ahead", 9, 7, 1000, 1000},
		{"over the wrap", tickMask - 7, 8, 1000, 500},
		{"long ago", 0, tickMask / 2, maxValue, 0},
		{"full", 0, ticksPerHalfLife, maxValue + 5, maxValue / 2},
	}
	for _, tt := range tests {
		if got := newCell(tt.value, tt.written).value(tt.read); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// zipf reads 50,000 keys by Zipf's law, 2,000 reads a second for a minute and a half,
// and describes what it is asked to. It returns how often each was read.
func zipf(s *Sketch, exponent float64) (exact map[uint64]int, now time.Time) {
	r := rand.New(rand.NewPCG(3, 4))
	z := rand.NewZipf(r, exponent, 1, 50_000)
	exact, now = make(map[uint64]int), start()
	for range 180_000 {
		n := z.Uint64()
		exact[n]++
		key := keyOf(n)
		if s.Touch(&key, now) {
			s.Describe(&key, Description{URI: strconv.FormatUint(n, 10)}, now)
		}
		now = now.Add(500 * time.Microsecond)
	}
	return exact, now
}

// mostRead returns the numbers of the n keys read most.
func mostRead(exact map[uint64]int, n int) []uint64 {
	keys := make([]uint64, 0, len(exact))
	for k := range exact {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b uint64) int { return exact[b] - exact[a] })
	return keys[:n]
}

// TestZipf holds the sketch against exact counts: who is hot, and how hot.
func TestZipf(t *testing.T) {
	t.Parallel()
	for _, exponent := range []float64{1.05, 1.3, 2} {
		s := seeded(Options{HalfLife: 10 * time.Minute, Keys: 200})
		exact, now := zipf(s, exponent)
		top := mostRead(exact, 100)
		found := make(map[string]bool)
		for _, h := range s.Top(120, now) {
			found[h.URI] = true
		}
		missed, worst, seconds := 0, 0.0, now.Sub(start()).Seconds()
		for _, n := range top {
			if !found[strconv.FormatUint(n, 10)] {
				missed++
			}
			key := keyOf(n)
			want := float64(exact[n]) / seconds
			worst = max(worst, math.Abs(s.Rate(&key, now)-want)/want)
		}
		t.Logf("exponent %v: %d keys, %d of 100 missed, worst error %.1f %%", exponent, len(exact), missed, 100*worst)
		if missed > 2 || worst > 0.25 {
			t.Errorf("exponent %v: %d of the 100 hottest missed, worst error of their rates %.0f %%",
				exponent, missed, 100*worst)
		}
	}
}

// TestColdKeysStayCold: what a key that is hardly read seems to be read at is
// bounded by the rate of all divided by the width.
func TestColdKeysStayCold(t *testing.T) {
	t.Parallel()
	s := seeded(Options{Width: 1 << 12})
	_, now := zipf(s, 1.05)
	worst, sum := 0.0, 0.0
	const keys = 10_000
	for n := range uint64(keys) {
		key := keyOf(1<<40 + n) // never read
		rate := s.Rate(&key, now)
		worst, sum = max(worst, rate), sum+rate
	}
	bound := 2000.0 / (1 << 12)
	t.Logf("never read: on the mean %.4f/s, at worst %.3f/s; all keys by the width %.3f/s", sum/keys, worst, bound)
	if sum/keys > bound || worst > 10*bound {
		t.Errorf("mean %v, worst %v, want about %v at most", sum/keys, worst, bound)
	}
}

func TestHitPathDoesNotAllocate(t *testing.T) {
	s, now := New(Options{}, start()), start()
	key := keyOf(7)
	for range 100_000 {
		if s.Touch(&key, now) {
			s.Describe(&key, Description{URI: "hot"}, now)
		}
	}
	cold := uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		s.Touch(&key, now)
		s.Rate(&key, now)
		k := keyOf(cold)
		cold++
		s.Touch(&k, now)
	}); n != 0 {
		t.Errorf("%v allocations a read, want 0", n)
	}
}

// TestConcurrent: many read and ask at a time; nothing is counted twice and
// little is lost.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := New(Options{HalfLife: time.Hour, Keys: 10}, start())
	const readers, reads = 8, 5000
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			for i := range reads {
				key := keyOf(uint64(i % 50))
				if s.Touch(&key, start()) {
					s.Describe(&key, Description{URI: strconv.Itoa(i % 50)}, start())
				}
				if i%1000 == r {
					s.Top(5, start())
				}
			}
		})
	}
	wg.Wait()
	for n := range uint64(50) {
		key := keyOf(n)
		slots := s.slots(&key)
		if got := float64(s.least(&slots, 0)) / one; !near(got, readers*reads/50, 0.3) {
			t.Errorf("key %d: %v reads, want about %d", n, got, readers*reads/50)
		}
	}
	if n := s.Len(); n > 20 {
		t.Errorf("%d names, want 20 at most", n)
	}
}

func BenchmarkTouch(b *testing.B) {
	now := start()
	b.Run("hot", func(b *testing.B) {
		s, key := New(Options{}, now), keyOf(1)
		for range 100_000 {
			s.Touch(&key, now)
		}
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				s.Touch(&key, now)
			}
		})
	})
	b.Run("zipf", func(b *testing.B) {
		s := New(Options{}, now)
		z := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.1, 1, 10_000)
		keys := make([]Key, 1<<16)
		for i := range keys {
			keys[i] = keyOf(z.Uint64())
		}
		for i := 0; b.Loop(); i++ {
			s.Touch(&keys[i&(1<<16-1)], now)
		}
	})
	b.Run("cold", func(b *testing.B) {
		s := New(Options{}, now)
		keys := make([]Key, 1<<16)
		for i := range keys {
			keys[i] = keyOf(uint64(i))
		}
		for i := 0; b.Loop(); i++ {
			s.Touch(&keys[i&(1<<16-1)], now.Add(time.Duration(i)*time.Microsecond))
		}
	})
	b.Run("rate", func(b *testing.B) {
		s, key := New(Options{}, now), keyOf(1)
		for b.Loop() {
			s.Rate(&key, now)
		}
	})
}
