package kernels_test

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/must"
)

// TestExpandedTasksAreKernelCalls: dag.Expand changes modes and adds merge tasks
// without knowing kernels. Each of its tasks must be one that Add would have made:
// valid, and with the same shape key, flops and bytes.
func TestExpandedTasksAreKernelCalls(t *testing.T) {
	b := dag.NewBuilder("expand")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{7, 11, 13, 3}, Type: dag.Float32})
	dy := b.Buffer(dag.Buffer{Name: "dy", Shape: []int{7, 9, 11, 5}, Type: dag.Float32})
	dw := b.Buffer(dag.Buffer{Name: "dw", Shape: []int{3, 3, 3, 5}, Type: dag.Float32, Accumulators: 3})
	db := b.Buffer(dag.Buffer{Name: "db", Shape: []int{5}, Type: dag.Float32, Accumulators: 2})
	for n := range 7 {
		sample := dag.Range{Lo: n, Hi: n + 1}
		for _, f := range []dag.Range{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 5}} {
			kernels.Add(b, dag.Task{
				Name: fmt.Sprintf("dw[%d,%d]", n, f.Lo), Op: "conv2d.nhwc.dw", Type: dag.Float32,
				Params: kerneltest.ConvParams(0, 1),
				Accesses: []dag.Access{
					{Region: dag.Region{Buffer: dw, Box: dag.Box{{Lo: 0, Hi: 3}, {Lo: 0, Hi: 3}, {Lo: 0, Hi: 3}, f}}, Mode: dag.Reduce},
					{Region: dag.Region{Buffer: dy, Box: dag.Box{sample, {Lo: 0, Hi: 9}, {Lo: 0, Hi: 11}, f}}, Mode: dag.Read},
					{Region: dag.Region{Buffer: x, Box: dag.Box{sample, {Lo: 0, Hi: 11}, {Lo: 0, Hi: 13}, {Lo: 0, Hi: 3}}}, Mode: dag.Read},
					{Region: dag.Region{Buffer: db, Box: dag.Box{f}}, Mode: dag.Reduce},
				},
			})
		}
	}
	g := must.Get(b.Build())(t)
	g = must.Get(dag.Expand(g))(t)
	// 14 contributors, and for each of two tiles two merges of dw and one of db.
	if g.NumTasks() != 14+2*3 {
		t.Errorf("%d tasks", g.NumTasks())
	}
	for i := range g.Tasks {
		task := &g.Tasks[i]
		s := calls.SpecOf(task, func(id dag.BufferID) dag.Buffer { return g.Buffers[id] })
		if err := kernels.Validate(s); err != nil {
			t.Fatalf("task %q: %v", task.Name, err)
		}
		k, _ := kernels.KernelByName(task.Op)
		flops, bytes := k.Work(s)
		if task.Shape != s.Key() || task.Flops != flops || task.MovedBytes != bytes {
			t.Errorf("task %q: key %q, %g flops, %d bytes; the kernel says %q, %g, %d",
				task.Name, task.Shape, task.Flops, task.MovedBytes, s.Key(), flops, bytes)
		}
	}
}
