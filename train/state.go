package train

import (
	"fmt"

	"dahl/dag"
	"dahl/execute"
	"dahl/nn/npz"
)

// stateOf lists the storages that a program carries from step to step, parameters and optimiser
// state, without their contents.
func stateOf(p *dag.Program) (state []npz.Array) {
	listed := map[string]bool{}
	for _, g := range p.Graphs {
		for i := range g.Buffers {
			b := &g.Buffers[i]
			carried := (b.Role == dag.Parameter || b.Role == dag.State) && b.ViewOf == dag.None
			if carried && !listed[b.Name] {
				listed[b.Name] = true
				state = append(state, npz.Array{Name: b.Name, Type: b.Type, Shape: b.Shape})
			}
		}
	}
	return state
}

// stateIn is where a runner has a part of the state.
func stateIn(r *execute.Runner, name string) []byte {
	b := r.Bytes(name)
	if b == nil {
		panic(fmt.Sprintf("train: %q is carried from step to step and has no place in the host's memory", name))
	}
	return b
}

// stateCopy is a copy of the state of a training in memory of its own: a failed run
// leaves the state in the runner half done.
type stateCopy []npz.Array

// newStateCopy keeps the state that the training is in.
func newStateCopy(t *Trainer) stateCopy {
	c := stateCopy(stateOf(t.Workload.Program))
	c.keep(t.Runner)
	return c
}

// keep copies the state after a completed step.
func (c stateCopy) keep(r *execute.Runner) {
	for i := range c {
		c[i].Data = append(c[i].Data[:0], stateIn(r, c[i].Name)...)
	}
}

// restore gives a runner the state that was kept last.
func (c stateCopy) restore(r *execute.Runner) {
	for i := range c {
		copy(stateIn(r, c[i].Name), c[i].Data)
	}
}
