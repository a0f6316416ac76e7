package flight

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// marks remembers for a short time which IDs had an answer that nobody may
// share, so that the next burst does not queue for it. Bounded: the least
// recently used mark goes first.
type marks struct {
	max  int
	size atomic.Int64 // lets a group without marks skip the lock

	mu   sync.Mutex
	byID map[ID]*list.Element
	lru  *list.List // of mark; the front was used last
}

type mark struct {
	id      ID
	expires time.Time
}

func newMarks(limit int) marks {
	return marks{max: limit, byID: make(map[ID]*list.Element), lru: list.New()}
}

// set marks id until expires.
func (m *marks) set(id ID, expires time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[id]; ok {
		e.Value = mark{id, expires}
		m.lru.MoveToFront(e)
		return
	}
	m.byID[id] = m.lru.PushFront(mark{id, expires})
	m.size.Add(1)
	if m.lru.Len() > m.max {
		m.remove(m.lru.Back())
	}
}

// standing reports whether id is marked at now.
func (m *marks) standing(id ID, now time.Time) bool {
	if m.size.Load() == 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[id]
	if !ok {
		return false
	}
	if !now.Before(e.Value.(mark).expires) {
		m.remove(e)
		return false
	}
	m.lru.MoveToFront(e)
	return true
}

// clear takes the mark of id away.
func (m *marks) clear(id ID) {
	if m.size.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[id]; ok {
		m.remove(e)
	}
}

func (m *marks) len() int { return int(m.size.Load()) }

func (m *marks) remove(e *list.Element) {
	delete(m.byID, m.lru.Remove(e).(mark).id)
	m.size.Add(-1)
}
