package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirproxy/weir/extproc/store"
	"github.com/weirproxy/weir/extproc/store/storetest"
)

// list pages through the whole store.
func list(t *testing.T, m *Memory, limit int) (paths []string, longest int) {
	t.Helper()
	for after := ""; ; {
		page, next, err := m.Page(after, limit)
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, len(page))
		for _, e := range page {
			paths = append(paths, e.URI)
		}
		if next == "" {
			return paths, longest
		}
		after = next
	}
}

func TestPageListsEachEntryOnce(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 64 << 20})
	var want []string
	for i := range 2000 {
		e := storetest.Entry(fmt.Sprintf("/%04d", i), "x")
		mustPut(t, m, e, storetest.Epoch())
		want = append(want, e.URI)
	}
	for _, limit := range []int{1, 100, 5000} {
		got, longest := list(t, m, limit)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
		if longest > limit+200 {
			t.Errorf("a page of %d has %d entries", limit, longest)
		}
	}
	if _, _, err := m.Page("no cursor", 1); !errors.Is(err, ErrCursor) {
		t.Errorf("Page with a made-up cursor: %v", err)
	}
}

// TestPageAcrossTables: a listing goes on in a larger or smaller table where it
// stopped in the one before, also among keys that wrapped around its end.
func TestPageAcrossTables(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 64 << 20})
	var want []string
	put := func(e *store.Entry) {
		mustPut(t, m, e, storetest.Epoch())
		want = append(want, e.URI)
	}
	for i := range 30 {
		e := storetest.Entry(fmt.Sprintf("/wraps/%03d", i), "x")
		binary.LittleEndian.PutUint64(e.Key.Hash[:], ^uint64(0)-uint64(i)<<51)
		put(e)
	}
	for i := range 300 {
		put(storetest.Entry(fmt.Sprintf("/spread/%03d", i), "x"))
	}
	slices.Sort(want)
	tables := []*table{m.table.Load(), newTable(5000), newTable(700)}
	for i := range tables[0].slots {
		if n := tables[0].slots[i].Load(); n != nil {
			tables[1].set(n, 1)
			tables[2].set(n, 1)
		}
	}
	for limit := 1; limit < 12; limit++ {
		var got []string
		for after, i := "", limit; ; i++ {
			m.table.Store(tables[i%len(tables)])
			page, next, err := m.Page(after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				got = append(got, e.URI)
			}
			if next == "" {
				break
			}
			after = next
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
}

// TestPageWhileTheTableChanges: what is there throughout is listed exactly once,
// although the table grows, fills with gone slots and shrinks meanwhile.
func TestPageWhileTheTableChanges(t *testing.T) {
	t.Parallel()
	m := New(Options{Limit: 64 << 20})
	var want []string
	for i := range 500 {
		e := storetest.Entry(fmt.Sprintf("/stays/%03d", i), "x")
		mustPut(t, m, e, storetest.Epoch())
		want = append(want, e.URI)
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for round := range 4 {
			for i := range 3000 {
				mustPut(t, m, storetest.Entry(fmt.Sprintf("/goes/%d/%d", round, i), "x"), storetest.Epoch())
			}
			for i := range 3000 {
				key := storetest.Key(fmt.Sprintf("/goes/%d/%d", round, i))
				if err := m.Delete(t.Context(), &key); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 20 {
		got, _ := list(t, m, 10)
		got = slices.DeleteFunc(got, func(uri string) bool { return strings.Contains(uri, "/goes/") })
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	writing.Wait()
}
