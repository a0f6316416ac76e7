package fleet

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func shopEntry(birth uint64) Covered {
	return Covered{
		Birth: birth, URI: "https://example.com/a", Host: "example.com",
		Policy: "shop/catalog", Namespace: "shop", Tags: []string{"blue", "red"},
	}
}

func TestCheckByKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind             Kind
		namespace, value string
		covers           bool
	}{
		{ByURL, "shop", "https://example.com/a", true},
		{ByURL, "", "https://example.com/a", true},
		{ByURL, "other", "https://example.com/a", false},
		{ByURL, "shop", "https://example.com/b", false},
		{ByHost, "shop", "example.com", true},
		{ByHost, "", "example.com", true},
		{ByHost, "shop", "example.org", false},
		{ByTag, "shop", "red", true},
		{ByTag, "shop", "blue", true},
		{ByTag, "other", "red", false},
		{ByTag, "shop", "https://example.com/a", false},
		{ByPolicy, "shop", "shop/catalog", true},
		{ByPolicy, "shop", "shop/cart", false},
		{ByNamespace, "shop", "shop", true},
		{ByNamespace, "", "shop", true},
		{ByNamespace, "other", "other", false},
		{ByAll, "", "", true},
		{ByAll, "shop", "", true},
		{ByAll, "other", "", false},
	} {
		for _, mode := range []Mode{Hard, Soft} {
			t.Run(fmt.Sprint(c.kind, " ", c.namespace, " ", c.value, " ", mode), func(t *testing.T) {
				t.Parallel()
				s := NewStamps(0)
				before := s.Position()
				at := s.Add(c.kind, c.namespace, c.value, mode, time.Time{})
				want := Valid
				if c.covers {
					want = map[Mode]Verdict{Hard: Refused, Soft: SoftStale}[mode]
				}
				if got := s.Check(shopEntry(before)); got != want {
					t.Errorf("an entry born before: verdict %d, want %d", got, want)
				}
				if got := s.Check(shopEntry(at)); got != Valid || s.Position() != at {
					t.Errorf("an entry born after: verdict %d at position %d, want Valid at %d", got, s.Position(), at)
				}
			})
		}
	}
}

func TestSoftAndHardOnOneName(t *testing.T) {
	t.Parallel()
	s := NewStamps(0)
	s.Add(ByTag, "shop", "red", Hard, time.Time{})
	s.Add(ByTag, "shop", "red", Soft, time.Time{})
	for birth, want := range []Verdict{Refused, SoftStale, Valid} {
		if got := s.Check(shopEntry(uint64(birth))); got != want {
			t.Errorf("birth %d: verdict %d, want %d", birth, got, want)
		}
	}
}

// added is one invalidation of the model.
type added struct {
	kind             Kind
	namespace, value string
	mode             Mode
	at               uint64
}

func (a added) covers(c Covered) bool {
	if c.Birth >= a.at || a.namespace != "" && a.namespace != c.Namespace {
		return false
	}
	switch a.kind {
	case ByURL:
		return a.value == c.URI
	case ByHost:
		return a.value == c.Host
	case ByPolicy:
		return a.value == c.Policy
	case ByNamespace:
		return a.value == c.Namespace
	case ByAll:
		return true
	case ByTag:
		return slices.Contains(c.Tags, a.value)
	}
	return false
}

// drawName draws from few names, some of them equal across kinds.
func drawName(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label)
}

func drawCovered(t *rapid.T, position uint64) Covered {
	return Covered{
		Birth: rapid.Uint64Range(0, position).Draw(t, "birth"),
		URI:   drawName(t, "uri"), Host: drawName(t, "host"), Policy: drawName(t, "policy"),
		Namespace: drawName(t, "namespace"),
		Tags:      rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3).Draw(t, "tags"),
	}
}

// TestStampsModel compares Check with a plain list of all invalidations. With a
// small bound the stamps may say more than the list does, but only of entries
// born before what was folded; they never say less.
func TestStampsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "limit")
		s := NewStamps(limit)
		var all []added
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				a := added{
					kind:      Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind")),
					mode:      Mode(rapid.IntRange(0, 1).Draw(t, "mode")),
					namespace: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "in"),
				}
				if a.kind != ByAll {
					a.value = drawName(t, "value")
				}
				before := s.Position()
				a.at = s.Add(a.kind, a.namespace, a.value, a.mode, time.Time{})
				if a.at <= before || s.Position() != a.at {
					t.Fatalf("Add returned %d between positions %d and %d", a.at, before, s.Position())
				}
				all = append(all, a)
			},
			"check": func(t *rapid.T) {
				c := drawCovered(t, s.Position())
				want := Valid
				for _, a := range all {
					if a.covers(c) {
						want = max(want, map[Mode]Verdict{Hard: Refused, Soft: SoftStale}[a.mode])
					}
				}
				floor := max(s.floor[Hard].Load(), s.floor[Soft].Load())
				got := s.Check(c)
				if got < want || got > want && c.Birth >= floor {
					t.Fatalf("verdict %d, want %d for %+v (floor %d)", got, want, c, floor)
				}
			},
			"": func(t *rapid.T) {
				if n := s.Stats().Stamps; n > limit || n != len(s.byName) {
					t.Fatalf("%d stamps in the list, %d by name, limit %d", n, len(s.byName), limit)
				}
			},
		})
	})
}

// TestNothingOldIsValidOnceAddReturned races fetches with invalidations: once
// Add has returned, no entry whose fetch began before it is Valid.
func TestNothingOldIsValidOnceAddReturned(t *testing.T) {
	t.Parallel()
	s := NewStamps(8)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			uri := fmt.Sprintf("https://example.com/%d", w)
			for range 2000 {
				old := Covered{Birth: s.Position(), URI: uri, Host: "example.com"}
				s.Add(ByURL, "", uri, Hard, time.Time{})
				if v := s.Check(old); v != Refused {
					t.Errorf("an entry born at %d has verdict %d after its URI was stamped", old.Birth, v)
				}
			}
		})
	}
	wg.Wait()
}

func TestCheckAllocatesNothing(t *testing.T) {
	s := NewStamps(0)
	for i := range 100 {
		s.Add(ByURL, "", fmt.Sprintf("https://example.com/%d", i), Hard, time.Time{})
	}
	s.Add(ByTag, "shop", "green", Hard, time.Time{})
	for _, birth := range []uint64{0, s.Position()} {
		c := shopEntry(birth)
		if n := testing.AllocsPerRun(100, func() { s.Check(c) }); n != 0 {
			t.Errorf("Check at birth %d allocates %v times", birth, n)
		}
	}
}

func TestNamesParseBack(t *testing.T) {
	t.Parallel()
	for k := range kinds {
		if got, ok := ParseKind(k.String()); !ok || got != k {
			t.Errorf("ParseKind(%q) = %v, %v", k, got, ok)
		}
	}
	for _, m := range []Mode{Hard, Soft} {
		if got, ok := ParseMode(m.String()); !ok || got != m {
			t.Errorf("ParseMode(%q) = %v, %v", m, got, ok)
		}
	}
	if _, ok := ParseKind("url"); ok {
		t.Error(`ParseKind takes "url"`)
	}
	if _, ok := ParseMode(""); ok {
		t.Error(`ParseMode takes ""`)
	}
}

func BenchmarkCheck(b *testing.B) {
	s := NewStamps(0)
	for i := range 10_000 {
		s.Add(ByURL, "", fmt.Sprintf("https://example.com/%d", i), Hard, time.Time{})
	}
	for _, c := range []struct {
		name  string
		birth uint64
	}{{"NothingNew", s.Position()}, {"OthersNew", 0}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			e := shopEntry(c.birth)
			for b.Loop() {
				s.Check(e)
			}
		})
	}
}

// TestNameStampedAgainIsNotTheOldest: the bound folds the name that was stamped
// longest ago.
func TestNameStampedAgainIsNotTheOldest(t *testing.T) {
	t.Parallel()
	s := NewStamps(2)
	for _, tag := range []string{"a", "b", "a", "c"} { // folds b, stamped at 2
		s.Add(ByTag, "shop", tag, Hard, time.Time{})
	}
	if v := s.Check(shopEntry(2)); v != Valid {
		t.Errorf("an entry that nothing names, born at the folded stamp: verdict %d, want Valid", v)
	}
	if v := s.Check(shopEntry(1)); v != Refused {
		t.Errorf("an entry born before the folded stamp: verdict %d, want Refused", v)
	}
	if got := s.Stats(); got.Folded != 1 || got.Stamps != 2 || got.Position != 4 {
		t.Errorf("stats are %+v", got)
	}
}
