package cachepolicy

import "slices"

// pageSize is how many bindings stand in a page.
const pageSize = 256

// slots are the bindings in force of the rules of routes, by the slot of each rule;
// nil where no policy is in force. Immutable, in pages: a changed copy shares with it
// all pages but those that changed. So a policy over many routes that changes leaves
// all that finds a rule as it is.
type slots struct{ pages [][]*Binding }

func (s *slots) at(slot int32) *Binding { return s.pages[slot/pageSize][slot%pageSize] }

// slotsEdit is slots while they are changed, and knows which are free.
type slotsEdit struct {
	slots
	owned []bool  // pages that are this edit's own
	free  []int32 // slots of rules that are gone
	next  int32   // the first slot that never was in use
}

// edit begins a change; nothing of the slots so far is touched by it.
func (e *slotsEdit) edit() {
	e.pages = slices.Clone(e.pages)
	e.owned = make([]bool, len(e.pages))
}

// take returns a free slot, which is empty.
func (e *slotsEdit) take() int32 {
	if n := len(e.free); n > 0 {
		slot := e.free[n-1]
		e.free = e.free[:n-1]
		return slot
	}
	slot := e.next
	e.next++
	if int(slot/pageSize) == len(e.pages) {
		e.pages, e.owned = append(e.pages, make([]*Binding, pageSize)), append(e.owned, true)
	}
	return slot
}

// put sets what is in force in a slot.
func (e *slotsEdit) put(slot int32, b *Binding) {
	page := slot / pageSize
	if !e.owned[page] {
		e.pages[page], e.owned[page] = slices.Clone(e.pages[page]), true
	}
	e.pages[page][slot%pageSize] = b
}

// release empties a slot and makes it free.
func (e *slotsEdit) release(slot int32) {
	e.put(slot, nil)
	e.free = append(e.free, slot)
}
