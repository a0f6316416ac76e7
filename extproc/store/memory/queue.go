package memory

// queue is a FIFO of nodes that knows its bytes. The zero value is empty.
type queue struct {
	head, tail *node // the newest, the oldest
	bytes      int64
}

func (q *queue) push(n *node) {
	n.in, n.prev, n.next = q, nil, q.head
	if q.head != nil {
		q.head.prev = n
	} else {
		q.tail = n
	}
	q.head = n
	q.bytes += n.size
}

func (q *queue) remove(n *node) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		q.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		q.tail = n.prev
	}
	q.bytes -= n.size
	n.in, n.prev, n.next = nil, nil, nil
}
