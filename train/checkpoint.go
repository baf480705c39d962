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
	names   []string // of the storages
	current [][]byte // in the runner's memory
	kept    [][]byte
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
	c.find(t.Runner)
	for _, b := range c.current {
		c.kept = append(c.kept, slices.Clone(b))
	}
	return c
}

// find notes where a runner has the state.
func (c *checkpoint) find(r *execute.Runner) {
	c.current = c.current[:0]
	for _, name := range c.names {
		b := r.Bytes(name)
		if b == nil {
			panic(fmt.Sprintf("train: %q is carried from step to step and has no place in the host's memory", name))
		}
		c.current = append(c.current, b)
	}
}

// keep copies the state after a completed step.
func (c *checkpoint) keep() {
	for i, b := range c.current {
		copy(c.kept[i], b)
	}
}

// restore puts the state back that was kept last.
func (c *checkpoint) restore() {
	for i, b := range c.current {
		copy(b, c.kept[i])
	}
}
