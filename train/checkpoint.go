package train

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/execute"
)

// checkpoint is a copy of what a training carries from step to step, in memory of its own:
// a run that fails leaves that of the runner half done.
type checkpoint struct {
	names []string // of the storages
	kept  [][]byte
}

// newCheckpoint keeps the state that the training is in.
func newCheckpoint(t *Trainer) *checkpoint {
	c := &checkpoint{}
	for _, g := range t.Workload.Program.Graphs {
		for i := range g.Buffers {
			if b := &g.Buffers[i]; (b.Role == dag.Parameter || b.Role == dag.State) && b.ViewOf == dag.None && !slices.Contains(c.names, b.Name) {
				c.names = append(c.names, b.Name)
			}
		}
	}
	c.kept = make([][]byte, len(c.names))
	c.keep(t.Runner)
	return c
}

// keep copies the state after a completed step.
func (c *checkpoint) keep(r *execute.Runner) {
	for i, name := range c.names {
		c.kept[i] = append(c.kept[i][:0], c.current(r, name)...)
	}
}

// restore gives a runner the state that was kept last.
func (c *checkpoint) restore(r *execute.Runner) {
	for i, name := range c.names {
		copy(c.current(r, name), c.kept[i])
	}
}

// current is where a runner has a part of the state.
func (c *checkpoint) current(r *execute.Runner, name string) []byte {
	b := r.Bytes(name)
	if b == nil {
		panic(fmt.Sprintf("train: %q is carried from step to step and has no place in the host's memory", name))
	}
	return b
}
