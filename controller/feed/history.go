package feed

import (
	"container/list"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// maxTombstones bounds the removed resources that are remembered. A subscriber that
// is behind more of them says anew what it has.
const maxTombstones = 10_000

// history is the resources in the order of their last change, so that what a
// subscriber lacks is the tail behind its position: the work is in proportion to the
// change, not to what there is.
type history struct {
	byName map[string]*record
	order  *list.List // of *record, the oldest change first
	head   uint64     // position of the newest change
	// horizon is the newest position of a removal that was forgotten.
	horizon    uint64
	tombstones int
}

// record is a resource at its last change.
type record struct {
	name, version string
	wire          *discoveryv3.Resource // nil: removed
	at            uint64
	place         *list.Element
}

func newHistory() *history { return &history{byName: map[string]*record{}, order: list.New()} }

// put notes a new version of a resource.
func (h *history) put(name, version string, wire *discoveryv3.Resource) {
	r := h.touch(name)
	r.version, r.wire = version, wire
}

// remove notes that a resource is gone.
func (h *history) remove(name string) {
	r := h.touch(name)
	r.version, r.wire = "", nil
	h.tombstones++
	for e := h.order.Front(); h.tombstones > maxTombstones; {
		old, next := e.Value.(*record), e.Next()
		if old.wire == nil {
			h.order.Remove(e)
			delete(h.byName, old.name)
			h.horizon = old.at
			h.tombstones--
		}
		e = next
	}
}

// touch moves a resource to the newest position.
func (h *history) touch(name string) *record {
	h.head++
	r, ok := h.byName[name]
	switch {
	case !ok:
		r = &record{name: name}
		r.place = h.order.PushBack(r)
		h.byName[name] = r
	default:
		if r.wire == nil {
			h.tombstones--
		}
		h.order.MoveToBack(r.place)
	}
	r.at = h.head
	return r
}

// version returns the current version of a resource; empty: there is none.
func (h *history) version(name string) string {
	if r, ok := h.byName[name]; ok {
		return r.version
	}
	return ""
}

// after returns the first record behind a position, or nil.
func (h *history) after(position uint64) *list.Element {
	var first *list.Element
	for e := h.order.Back(); e != nil && e.Value.(*record).at > position; e = e.Prev() {
		first = e
	}
	return first
}
