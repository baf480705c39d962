package certificate

import (
	"iter"
	"math/bits"
	"slices"
)

// set is a set of tasks.
type set []uint64

func (s set) has(t int32) bool { return s[t/64]&(1<<(t%64)) != 0 }
func (s set) add(t int32)      { s[t/64] |= 1 << (t % 64) }

// all are all tasks.
func (m *Model) all(yield func(int32) bool) {
	for t := range int32(len(m.Tasks)) {
		if !yield(t) {
			return
		}
	}
}

// edge returns the edge between two tasks some steps apart; nil means it does not follow it.
func (m *Model) edge(from, to, back int32) *Edge {
	if from < 0 || int(from) >= len(m.Tasks) {
		return nil
	}
	for _, i := range m.edgesFrom[from] {
		if e := &m.Edges[i]; e.To == to && e.Back == back {
			return e
		}
	}
	return nil
}

// reachKey names the direct and indirect successors of a task, a number of steps later; against the edges, its predecessors, a
// number of steps earlier.
type reachKey struct {
	task    int32
	steps   int
	against bool
}

func (m *Model) reach(k reachKey) set {
	at := 2 * k.steps
	if k.against {
		at++
	}
	known := &m.reached[at*len(m.Tasks)+int(k.task)]
	if *known != nil {
		return *known
	}
	next := &m.after
	if k.against {
		next = &m.before
	}
	s := make(set, (len(m.Tasks)+63)/64)
	var stack []int32
	meet := func(tasks []int32) {
		for _, u := range tasks {
			if !s.has(u) {
				s.add(u)
				stack = append(stack, u)
			}
		}
	}
	if k.steps == 0 {
		meet(next[0][k.task])
	} else { // over one edge into the other step, from the task itself or any that it reaches in its own
		meet(next[1][k.task])
		for u := range m.in(m.reach(reachKey{k.task, 0, k.against})) {
			meet(next[1][u])
		}
	}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		meet(next[0][at])
	}
	*known = s
	return s
}

// After lists the successors of a task, a number of steps later.
func (m *Model) After(t int32, steps int) iter.Seq[int32] {
	return m.in(m.reach(reachKey{t, steps, false}))
}

// Between lists the tasks between two others that are some steps apart, once for each step.
func (m *Model) Between(from, to int32, back int) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for step := 0; step <= back; step++ {
			both := slices.Clone(m.reach(reachKey{from, step, false}))
			for i, word := range m.reach(reachKey{to, back - step, true}) {
				both[i] &= word
			}
			for t := range m.in(both) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

func (m *Model) in(s set) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(int32(64*i + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// Precedes reports whether a task, some steps later, is a direct or indirect successor of another.
func (m *Model) Precedes(from, to int32, back int) bool {
	return m.reach(reachKey{from, back, false}).has(to)
}

// Sums adds up a number that each task has over sets of tasks.
type Sums struct {
	m      *Model
	ofByte [][256]float64 // by byte of a set and what it is: the sum over its tasks
}

// Sums prepares sums of a number that each task has.
func (m *Model) Sums(of []float64) *Sums {
	s := &Sums{m, make([][256]float64, 8*((len(of)+63)/64))}
	for i := range s.ofByte {
		for b := 1; b < 256; b++ {
			if t := 8*i + bits.TrailingZeros8(uint8(b)); t < len(of) {
				s.ofByte[i][b] = s.ofByte[i][b&(b-1)] + of[t]
			}
		}
	}
	return s
}

func (s *Sums) over(tasks, and set) (sum float64) {
	for i, word := range tasks {
		if and != nil {
			word &= and[i]
		}
		for k := 8 * i; word != 0; k, word = k+1, word>>8 {
			sum += s.ofByte[k][byte(word)]
		}
	}
	return sum
}

// After is the sum over the direct and indirect successors of a task, a number of steps later.
func (s *Sums) After(t int32, steps int) float64 {
	return s.over(s.m.reach(reachKey{t, steps, false}), nil)
}

// Before is the sum over the direct and indirect predecessors of a task, a number of steps earlier.
func (s *Sums) Before(t int32, steps int) float64 {
	return s.over(s.m.reach(reachKey{t, steps, true}), nil)
}

// Between is the sum over the tasks of [Model.Between].
func (s *Sums) Between(from, to int32, back int) (sum float64) {
	for step := 0; step <= back; step++ {
		sum += s.over(s.m.reach(reachKey{from, step, false}), s.m.reach(reachKey{to, back - step, true}))
	}
	return sum
}
