// Package storetest is the suite that every store.Store must pass, after
// perkeep's pkg/blobserver/storagetest.
package storetest

import (
	"testing"

	"github.com/weirproxy/weir/extproc/store"
)

// New makes an empty store that may hold at least [Room] bytes and at most
// [MaxRoom], and arranges for its end in t.Cleanup.
type New func(t *testing.T) store.Store

// What a store under test may hold, in bytes.
const (
	Room    = 4 << 20
	MaxRoom = 32 << 20
)

// Run runs the suite against fresh stores.
func Run(t *testing.T, newStore New) {
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"Miss", testMiss},
		{"PutThenGet", testPutThenGet},
		{"Replace", testReplace},
		{"LateFillDoesNotReplace", testLateFill},
		{"WholeOrNothing", testWholeOrNothing},
		{"TooLarge", testTooLarge},
		{"StoredFieldsDoNotChange", testStoredFieldsDoNotChange},
		{"HashCollision", testHashCollision},
		{"Expiry", testExpiry},
		{"ExpiredOnArrival", testExpiredOnArrival},
		{"Delete", testDelete},
		{"Variants", testVariants},
		{"DefaultVariant", testDefaultVariant},
		{"VaryMiss", testVaryMiss},
		{"VaryStarMatchesNothing", testVaryStar},
		{"VariantCap", testVariantCap},
		{"Update", testUpdate},
		{"UpdateDeletes", testUpdateDeletes},
		{"UpdateOfNothing", testUpdateOfNothing},
		{"Concurrency", testConcurrency},
		{"ConcurrentUpdatesAreNotLost", testConcurrentUpdates},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, newStore(t))
		})
	}
	t.Run("Model", func(t *testing.T) {
		t.Parallel()
		testModel(t, newStore)
	})
}
