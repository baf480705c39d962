package layout

import (
	"errors"
	"fmt"

	"dahl/dag"
)

// Check verifies a layout against the definition: whenever two storages of
// the step arena share a byte, every use of one comes before every use of the
// other, in each step and into the next, by the graph and the layout's reuse
// edges alone. Storages of the other arenas, and those that keep their contents
// from step to step or exist several times, share nothing. It walks two steps from every task, so it is
// for tests and small graphs.
func (l *Layout) Check(g *dag.Graph) error {
	if len(l.Arenas) != len(g.Buffers) || len(l.Offsets) != len(g.Buffers) {
		return errors.New("the layout is for another number of buffers")
	}
	reach := reachTwoSteps(g, l)
	users := make([][]int, len(g.Buffers))
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			s := g.Storage(a.Buffer)
			users[s] = append(users[s], t)
		}
	}
	written := g.WrittenStorages()
	end := func(b dag.BufferID) int64 { // of the last version
		bytes := g.Buffers[b].Bytes()
		return l.Offset(b) + int64(g.Versions(b)-1)*((bytes+Alignment-1)/Alignment*Alignment) + bytes
	}
	for x := range dag.BufferID(len(g.Buffers)) {
		bx := &g.Buffers[x]
		if l.Offset(x) == Elsewhere {
			continue
		}
		if l.Offset(x) < 0 || l.Offset(x)%Alignment != 0 || end(x) > l.ArenaBytes[l.Arena(x)] {
			return fmt.Errorf("buffer %q at %d does not lie in its arena of %d bytes", bx.Name, l.Offset(x), l.ArenaBytes[l.Arena(x)])
		}
		if owner := g.Storage(x); l.Offset(x) != l.Offset(owner) || l.Arena(x) != l.Arena(owner) {
			return fmt.Errorf("view %q lies apart from its storage", bx.Name)
		}
		for y := range x {
			by := &g.Buffers[y]
			if bx.ViewOf != dag.None || by.ViewOf != dag.None || l.Arena(x) != l.Arena(y) || l.Offset(y) == Elsewhere ||
				l.Offset(x) >= end(y) || l.Offset(y) >= end(x) {
				continue
			}
			keep := func(b dag.BufferID) bool {
				return g.Carried(b) || !written[b] && len(users[b]) > 0 || g.Versions(b) > 1
			}
			if l.Arena(x) != StepArena || keep(x) || keep(y) {
				return fmt.Errorf("buffers %q and %q share bytes, and one of them keeps its contents", bx.Name, by.Name)
			}
			if !separated(reach, users[x], users[y], len(g.Tasks)) && !separated(reach, users[y], users[x], len(g.Tasks)) {
				return fmt.Errorf("buffers %q and %q share bytes and may be in use at once", bx.Name, by.Name)
			}
		}
	}
	return nil
}

// separated reports whether each use of one storage reaches each use of the other in
// the same step, and those reach each use of the first in the next step.
func separated(reach [][]bool, first, second []int, n int) bool {
	for _, a := range first {
		for _, b := range second {
			if !reach[a][b] || !reach[b][n+a] {
				return false
			}
		}
	}
	return true
}

// reachTwoSteps says for each task of a step which tasks of it and of the next
// (at n more) come after it.
func reachTwoSteps(g *dag.Graph, l *Layout) [][]bool {
	n := len(g.Tasks)
	next := make([][]int, 2*n)
	add := func(from, to int) { next[from] = append(next[from], to) }
	for t := range n {
		id := dag.TaskID(t)
		for _, s := range g.Succs(id) {
			add(t, int(s))
			add(n+t, n+int(s))
		}
		for _, s := range g.CarriedSuccs(id) {
			add(t, n+int(s))
		}
		for _, s := range g.ReuseSuccs(id, 1) {
			add(t, n+int(s))
		}
	}
	for _, e := range l.Reuse {
		add(int(e.From), int(e.To))
		add(n+int(e.From), n+int(e.To))
	}
	for _, e := range l.ReuseNext {
		add(int(e.From), n+int(e.To))
	}
	reach := make([][]bool, n)
	for t := range n {
		reach[t] = make([]bool, 2*n)
		stack := []int{t}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, to := range next[at] {
				if !reach[t][to] {
					reach[t][to] = true
					stack = append(stack, to)
				}
			}
		}
	}
	return reach
}
