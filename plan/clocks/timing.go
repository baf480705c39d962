package clocks

import (
	"math"
	"slices"

	"dahl/schedule/ready"
)

// timing is when the tasks of a graph start, as one step follows the other after a period.
type timing struct {
	*Graph
	order  []int32   // of the tasks: each after its predecessors of the same step
	after  [][]int32 // by task: the waits for it
	takes  []int64   // by task
	start  []int64   // by task, so that no wait is too short
	period int64
	cause  []int32 // by task: the wait that its start follows from; -1 means none
	anchor int32   // a task on waits that take as long as the shortest period at the fastest clocks
	raised []int64 // by task: by how much a change lets it start later
	spare  []int64 // by task, see room
	tail   []int64
	queue  ready.Heap[raise]
}

func newTiming(g *Graph) (*timing, error) {
	order, err := g.sorted()
	n := len(g.Tasks)
	m := &timing{Graph: g, order: order, after: make([][]int32, n), takes: make([]int64, n), start: make([]int64, n), cause: make([]int32, n), raised: make([]int64, n)}
	for i, w := range g.Waits {
		m.after[w.From] = append(m.after[w.From], int32(i))
	}
	return m, err
}

// until is how long a task waits for another one at least, from start to start.
func (m *timing) until(w *Wait) int64 { return m.takes[w.From] + w.Delay - int64(w.Back)*m.period }

// shortest finds the shortest period for what the tasks take. Waits that lead from a task to the same one some steps later take no
// longer than these steps. As long as some do, they give the next period to try.
func (m *timing) shortest() int64 {
	m.period = 0
	for {
		task, late := m.relax()
		if !late {
			return m.period
		}
		takes, steps := int64(0), int64(0)
		for t := task; steps == 0 || t != task; {
			w := &m.Waits[m.cause[t]]
			takes, steps = takes+m.takes[w.From]+w.Delay, steps+int64(w.Back)
			if t = w.From; w.Back > 0 {
				m.anchor = w.To
			}
		}
		m.period = (takes + steps - 1) / steps
	}
}

// relax finds when tasks start at the earliest. If waits lead from a task back to it in more time than there is, it returns that
// task.
func (m *timing) relax() (task int32, late bool) {
	clear(m.start)
	for t := range m.cause {
		m.cause[t] = -1
	}
	for again := true; again; {
		again = false
		for _, t := range m.order {
			for _, i := range m.after[t] {
				w := &m.Waits[i]
				if at := m.start[t] + m.until(w); at > m.start[w.To] {
					m.start[w.To], m.cause[w.To] = at, i
					again = again || w.Back > 0
				}
			}
		}
		if task := m.round(); again && task >= 0 {
			return task, true
		}
	}
	return 0, false
}

// round finds a task whose start follows from itself; -1 means there is none.
func (m *timing) round() int32 {
	seen := make([]int32, len(m.start)) // by task: the walk that came by, from 1 on
	for begin := range m.order {
		t := int32(begin)
		for seen[t] == 0 {
			seen[t] = int32(begin) + 1
			if m.cause[t] < 0 {
				break
			}
			if t = m.Waits[m.cause[t]].From; seen[t] == int32(begin)+1 {
				return t
			}
		}
	}
	return -1
}

// raise is a task that a change lets start later.
type raise struct {
	task int32
	by   int64
}

// Before puts the longest first.
func (a raise) Before(b raise) bool { return a.by > b.by || a.by == b.by && a.task < b.task }

// set lets a task take another time, and starts tasks later that wait for it. It reports whether the period allows that; if
// not, nothing has changed.
//
// Before, no wait was too short. So waits are too long for the period only if they lead back to the task. What starts later by
// most is final first, as in Dijkstra's algorithm: a wait passes on no more than its task has been delayed.
func (m *timing) set(t int32, takes int64) bool {
	before := m.takes[t]
	m.takes[t] = takes
	if takes <= before {
		return true
	}
	var raised []int32
	m.queue = m.queue[:0]
	m.passOn(t, 0)
	ok := true
	for len(m.queue) > 0 && ok {
		top := m.queue.Pop()
		if m.raised[top.task] > 0 {
			continue
		}
		m.raised[top.task] = top.by
		raised = append(raised, top.task)
		ok = top.task != t
		m.passOn(top.task, top.by)
	}
	for _, r := range raised {
		if ok {
			m.start[r] += m.raised[r]
		}
		m.raised[r] = 0
	}
	if !ok {
		m.takes[t] = before
	}
	return ok
}

// passOn queues the successors of a task with a later start.
func (m *timing) passOn(t int32, by int64) {
	for _, i := range m.after[t] {
		w := &m.Waits[i]
		if late := m.start[t] + by + m.until(w) - m.start[w.To]; late > 0 && m.raised[w.To] == 0 {
			m.queue.Push(raise{w.To, late})
		}
	}
}

// never is before any start.
const never = math.MinInt64 / 4

// room finds how much longer each task may take, as far as waits from the anchor to the task and back say: all of them where the
// anchor is the task at which a step begins.
func (m *timing) room() []int64 {
	n := len(m.start)
	if m.spare == nil {
		m.spare, m.tail = make([]int64, n), make([]int64, n)
	}
	for t := range n {
		m.spare[t], m.tail[t] = never, never
	}
	m.spare[m.anchor], m.tail[m.anchor] = 0, 0
	for again := true; again; {
		again = false
		for _, t := range m.order {
			if m.spare[t] <= never {
				continue
			}
			for _, i := range m.after[t] {
				w := &m.Waits[i]
				if at := m.spare[t] + m.until(w); at > m.spare[w.To] {
					m.spare[w.To] = at
					again = again || w.Back > 0
				}
			}
		}
	}
	for again := true; again; {
		again = false
		for _, t := range slices.Backward(m.order) {
			for _, i := range m.after[t] {
				w := &m.Waits[i]
				if m.tail[w.To] <= never {
					continue
				}
				if at := m.tail[w.To] + m.until(w); at > m.tail[t] {
					m.tail[t] = at
					again = again || w.Back > 0
				}
			}
		}
	}
	round := int64(never)
	for _, i := range m.after[m.anchor] {
		w := &m.Waits[i]
		round = max(round, m.until(w)+m.tail[w.To])
	}
	for t := range n {
		m.spare[t] = -m.spare[t] - m.tail[t]
	}
	m.spare[m.anchor] = -round
	return m.spare
}
