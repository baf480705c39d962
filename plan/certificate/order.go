package certificate

import (
	"iter"
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

func listed(tasks []int32) iter.Seq[int32] { return slices.Values(tasks) }

// edge is what one task needs of another; nil: it does not follow it.
func (m *Model) edge(from, to int32) *Edge {
	if from < 0 || int(from) >= len(m.Tasks) {
		return nil
	}
	if k := slices.Index(m.after[from], to); k >= 0 {
		return &m.Edges[m.firstEdge[from]+k]
	}
	return nil
}

// reach is the tasks that follow one, at once or through others.
func (m *Model) reach(t int32) set { return m.closure(m.reached, t, m.after) }

func (m *Model) closure(known map[int32]set, t int32, next [][]int32) set {
	if s, ok := known[t]; ok {
		return s
	}
	s := make(set, (len(m.Tasks)+63)/64)
	stack := []int32{t}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, u := range next[at] {
			if !s.has(u) {
				s.add(u)
				stack = append(stack, u)
			}
		}
	}
	known[t] = s
	return s
}

// following, preceding and between are the tasks after one, before one, and after one and before
// another.
func (m *Model) following(t int32) iter.Seq[int32] { return m.in(m.reach(t)) }

func (m *Model) preceding(t int32) iter.Seq[int32] { return m.in(m.closure(m.leading, t, m.before)) }

func (m *Model) between(from, to int32) iter.Seq[int32] {
	both := slices.Clone(m.reach(from))
	for i, word := range m.closure(m.leading, to, m.before) {
		both[i] &= word
	}
	return m.in(both)
}

func (m *Model) in(s set) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for t := range m.all {
			if s.has(t) && !yield(t) {
				return
			}
		}
	}
}

// isChain reports whether each of some tasks follows the one before it.
func (m *Model) isChain(tasks []int32) bool {
	for i, t := range tasks {
		if t < 0 || int(t) >= len(m.Tasks) || i > 0 && !m.reach(tasks[i-1]).has(t) {
			return false
		}
	}
	return len(tasks) > 0
}

// Precedes reports whether a task follows another, at once or through others.
func (m *Model) Precedes(from, to int32) bool { return m.reach(from).has(to) }
