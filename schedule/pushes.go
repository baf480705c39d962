package schedule

import (
	"slices"

	"dahl/dag"
)

// pushes lists, for a plan, the atoms that move as soon as they are written.
type pushes struct {
	byWriter [][]pushTo // by task; the last entry is for contents from before the first step
}

// pushTo is atoms that a reader of this step or of the next one will need.
type pushTo struct {
	reader   dag.TaskID
	nextStep bool
	atoms    []int32
}

// newPushes finds the readers of every value, in the order in which each writer
// should serve them: this step before the next, then by position in the plan,
// then by name.
func newPushes(g *dag.Graph, position []int32) *pushes {
	n := len(g.Tasks)
	p := &pushes{byWriter: make([][]pushTo, n+1)}
	last := make([]int32, g.NumAtoms())
	for a := range last {
		last[a] = int32(n)
	}
	for _, next := range []bool{false, true} {
		for t := range n {
			for i, a := range g.Tasks[t].Accesses {
				for _, atom := range g.Atoms(dag.TaskID(t), i) {
					// The second pass adds only values that the previous step left.
					if writer := last[atom]; a.Mode.Reads() && writer >= 0 && (!next || int(writer) < n) {
						p.add(last[atom], dag.TaskID(t), next, atom)
					}
				}
			}
			for i, a := range g.Tasks[t].Accesses {
				if !a.Mode.Writes() {
					continue
				}
				for _, atom := range g.Atoms(dag.TaskID(t), i) {
					last[atom] = int32(t)
					if next {
						last[atom] = -1 // written in this very step: the first pass has seen it
					}
				}
			}
		}
	}
	for _, list := range p.byWriter {
		slices.SortStableFunc(list, func(a, b pushTo) int {
			return comparePush(g, position, &a, &b)
		})
	}
	return p
}

func comparePush(g *dag.Graph, position []int32, a, b *pushTo) int {
	if a.nextStep != b.nextStep {
		if a.nextStep {
			return 1
		}
		return -1
	}
	if d := position[a.reader] - position[b.reader]; d != 0 {
		return int(d)
	}
	return int(g.Rank(a.reader) - g.Rank(b.reader))
}

func (p *pushes) add(writer int32, reader dag.TaskID, next bool, atom int32) {
	list := p.byWriter[writer]
	if k := len(list) - 1; k >= 0 && list[k].reader == reader && list[k].nextStep == next {
		list[k].atoms = append(list[k].atoms, atom)
		return
	}
	p.byWriter[writer] = append(list, pushTo{reader, next, []int32{atom}})
}
