package nn

import (
	"unique"

	"dahl/dag"
	"dahl/kernels"
)

// describe gives every task of an expanded graph its shape key and work, since the expansion of
// reductions has added tasks and changed modes. Equal keys and equal labels share one string
// each, so that a big graph stays small.
func describe(g *dag.Graph) {
	buffer := func(id dag.BufferID) dag.Buffer { return g.Buffers[id] }
	for i := range g.Tasks {
		t := &g.Tasks[i]
		s := kernels.SpecOf(t, buffer)
		t.Shape = unique.Make(s.Key()).Value()
		var err error
		if t.Flops, t.MovedBytes, err = kernels.Work(s); err != nil {
			panic("nn: the expansion of a reduction added a task without an operation: " + err.Error())
		}
	}
}
