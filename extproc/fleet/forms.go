package fleet

import "slices"

// Forms says how entries may know a URL that is invalidated: f returns each form,
// by the key rules of this replica's policies in the namespace (empty: all), some
// of which leave query parameters out. A stamp names a URL as it was invalidated,
// wherever that was, and holds for all its forms here: those in which it is known
// now and, since Forms is called again before anything is stored or read by other
// rules, those to come. f must be safe for concurrent use, and not use s.
func (s *Stamps) Forms(f func(namespace, uri string) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forms = f
	var stated []stamp // put changes the order
	for e := s.order.Front(); e != nil; e = e.Next() {
		if st := e.Value.(*stamp); st.kind == ByURL && st.stated {
			stated = append(stated, *st)
		}
	}
	for i := range stated {
		for mode, at := range stated[i].at {
			s.putForms(stated[i].name, stated[i].value, Mode(mode), at)
		}
	}
}

// Probe returns stamps of their own with the same forms of URLs, to try out what an
// invalidation names.
func (s *Stamps) Probe() *Stamps {
	s.mu.RLock()
	defer s.mu.RUnlock()
	probe := NewStamps(maxProbed)
	probe.forms = s.forms
	return probe
}

// maxProbed bounds the stamps of a Probe: one invalidation, in all forms. Over that
// it names more than there is, never less.
const maxProbed = 1 << 12

// spellOut adds to URLs that are too long to be told in full the forms in which this
// replica knows them: the others cannot make theirs of a digest.
func (s *Stamps) spellOut(list []Invalidation) []Invalidation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := list
	for i := range list {
		if list[i].Kind != ByURL || len(list[i].Value) <= maxName || s.forms == nil {
			continue
		}
		for _, form := range s.forms(list[i].Namespace, list[i].Value) {
			other := list[i]
			other.Value = form
			out = append(slices.Clip(out), other)
		}
	}
	return out
}

// put stamps what was invalidated, in all forms. The caller holds mu.
func (s *Stamps) put(kind Kind, namespace, value string, mode Mode, at uint64) {
	n := nameOf(kind, namespace, value)
	s.putOne(n, mode, at).stated = true
	s.putForms(n, value, mode, at)
}

// putForms stamps the other forms of a URL. The caller holds mu.
func (s *Stamps) putForms(n name, url string, mode Mode, at uint64) {
	if n.kind != ByURL || s.forms == nil || at == 0 {
		return
	}
	for _, form := range s.forms(n.namespace, url) {
		if form != url {
			s.putOne(nameOf(ByURL, n.namespace, form), mode, at)
		}
	}
}
