package place

import (
	"dahl/dag"
	"dahl/schedule/ready"
)

// residents is the storages in the memory at an item of a walk.
type residents struct {
	*spill
	is    []bool  // by storage
	next  []int32 // by storage: its next visit
	live  int64   // bytes
	queue ready.Heap[residence]
}

// residence is a storage in the memory, and the next item with a use of it.
type residence struct {
	again   int32
	storage dag.BufferID
}

// Before puts the storage first that is used again last; of several the first of the graph.
func (r residence) Before(o residence) bool {
	return r.again > o.again || r.again == o.again && r.storage < o.storage
}

// walk drops storages along one step. It reports whether it found storages that have to come back in every step.
func (s *spill) walk() (found bool, err error) {
	r := &residents{spill: s, is: make([]bool, len(s.visits)), next: make([]int32, len(s.visits))}
	for _, b := range s.used {
		clear(s.dropped[b])
		if s.stays(b) {
			r.enter(b)
			r.wait(b)
		}
	}
	for i, here := range s.touched {
		for _, b := range here {
			r.enter(b)
		}
		for r.live > s.limit {
			victim, ok := r.farthest(int32(i))
			if !ok {
				return false, s.tooLarge(i, r.live)
			}
			r.drop(victim)
			if s.kept(victim) && !s.streams[victim] {
				s.streams[victim], found = true, true
			}
		}
		for _, b := range here {
			k := r.next[b]
			r.next[b]++
			if last := int(k) == len(s.visits[b])-1; !s.stays(b) && (s.needs[b][k] == 0 || last) {
				r.drop(b)
			} else {
				r.wait(b)
			}
		}
	}
	return found, nil
}

// enter takes room for a storage that has none.
func (r *residents) enter(b dag.BufferID) {
	if !r.is[b] {
		r.is[b] = true
		r.live += r.bytes[b]
	}
}

// drop frees the room of a storage after its latest visit.
func (r *residents) drop(b dag.BufferID) {
	r.is[b] = false
	r.live -= r.bytes[b]
	if k := r.next[b]; k > 0 {
		r.dropped[b][k-1] = true
	}
}

// wait queues a storage that may leave before its next visit.
func (r *residents) wait(b dag.BufferID) {
	if r.homes[b] == r.host && r.g.Versions(b) <= 1 {
		r.queue.Push(residence{r.again(b), b})
	}
}

// again is the item that uses a storage next, in this step or in the next one.
func (r *residents) again(b dag.BufferID) int32 {
	visits := r.visits[b]
	if k := int(r.next[b]); k < len(visits) {
		return visits[k].item
	}
	return int32(len(r.items)) + visits[0].item
}

// farthest is the storage that is used again last, after the present item. The queue still lists
// storages that left or were used since.
func (r *residents) farthest(item int32) (victim dag.BufferID, ok bool) {
	for len(r.queue) > 0 && r.queue[0].again > item {
		first := r.queue.Pop()
		if b := first.storage; r.is[b] && r.again(b) == first.again {
			return b, true
		}
	}
	return 0, false
}
