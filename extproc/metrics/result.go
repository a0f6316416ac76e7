package metrics

// FillResult says how one fetch that weir followed in the hope of storing it
// ended: a leader's own request or a refill.
type FillResult int

// The results of a fill.
const (
	FillStored FillResult = iota
	FillNotModified
	FillUncacheable
	FillTooLarge
	FillIncomplete
	FillFailed
	FillRedundant
	numFillResults
)

// String returns the value of the label result.
func (r FillResult) String() string { return fillValues()[r].name }

func fillValues() []value {
	return []value{
		FillStored:      {"stored", "Whole, and stored."},
		FillNotModified: {"not_modified", "304: the stored copy was freshened."},
		FillUncacheable: {"uncacheable", "The answer may not be stored."},
		FillTooLarge:    {"too_large", "The body is larger than `storage.maxObjectSize`."},
		FillIncomplete:  {"incomplete", "The body broke off, or the client that carried it went away."},
		FillFailed:      {"failed", "No usable answer: the origin failed, or Envoy answered in its place."},
		FillRedundant:   {"redundant", "Another fetch of the same key was storing its answer already, or took over."},
	}
}

// RefillResult says how one detached fetch ended.
type RefillResult int

// The results of a refill.
const (
	RefillStored RefillResult = iota
	RefillNotModified
	RefillUncacheable
	RefillFailed
	RefillDropped
	numRefillResults
)

// String returns the value of the label result.
func (r RefillResult) String() string { return refillValues()[r].name }

func refillValues() []value {
	return []value{
		RefillStored:      {"stored", "The answer was stored."},
		RefillNotModified: {"not_modified", "304: the stored copy was freshened."},
		RefillUncacheable: {"uncacheable", "The answer may not be stored (redirect, 401, 403 and the like included)."},
		RefillFailed:      {"failed", "Envoy could not be reached, the origin failed, or the refill ran out of time."},
		RefillDropped:     {"dropped", "Not sent: the limit of running refills or the queue was full."},
	}
}

// EvictReason says why an entry left the memory store.
type EvictReason int

// The reasons of an eviction.
const (
	EvictCapacity EvictReason = iota
	EvictExpired
	EvictReplaced
	EvictVariants
	EvictDeleted
	numEvictReasons
)

// String returns the value of the label reason.
func (r EvictReason) String() string { return evictValues()[r].name }

func evictValues() []value {
	return []value{
		EvictCapacity: {"capacity", "The store was full (`--memory-limit`)."},
		EvictExpired:  {"expired", "Past its last window."},
		EvictReplaced: {"replaced", "A newer answer took its place."},
		EvictVariants: {"variants", "More variants than `storage.maxVariants`."},
		EvictDeleted:  {"deleted", "Invalidated, or removed by a rule of HTTP."},
	}
}

// reloadResult is the result of reading a file again.
type reloadResult int

const (
	reloadSuccess reloadResult = iota
	reloadFailure
	numReloadResults
)

func (r reloadResult) String() string { return reloadValues()[r].name }

func reloadValues() []value {
	return []value{
		reloadSuccess: {"success", "The new content is in use."},
		reloadFailure: {"failure", "The new content is not usable; what was in use before stays."},
	}
}
