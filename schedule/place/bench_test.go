package place

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/must"
)

// BenchmarkPlace splits 64 layers of 32 tiles, each of which reads three neighbours of the
// layer before, between the host and a gpu by tiles.
func BenchmarkPlace(b *testing.B) {
	p := hostAndGPU(b, 0)
	build := dag.NewBuilder("layers")
	const layers, tiles, rows = 64, 32, 7
	plan := &Input{Order: make([][]dag.TaskID, len(p.Workers))}
	var last dag.BufferID = dag.None
	for l := range layers {
		y := build.Buffer(dag.Buffer{Name: fmt.Sprint("y", l), Shape: []int{tiles * rows, 11}, Type: dag.Float32})
		for i := range tiles {
			part := func(buf dag.BufferID, lo, hi int) dag.Region {
				return dag.Region{Buffer: buf, Box: dag.Box{{Lo: max(0, lo) * rows, Hi: min(tiles, hi) * rows}, {Lo: 0, Hi: 11}}}
			}
			task := dag.Task{Name: fmt.Sprintf("t%d.%d", l, i), Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: 1000}},
				Accesses: []dag.Access{{Region: part(y, i, i+1), Mode: dag.Write}}}
			if last != dag.None {
				task.Accesses = append(task.Accesses, dag.Access{Region: part(last, i-1, i+2), Mode: dag.Read})
			}
			w := min(2, i/8)
			plan.Order[w] = append(plan.Order[w], build.Task(task))
		}
		last = y
	}
	g := must.Get(build.Build())(b)
	for b.Loop() {
		if _, err := placeAll(&dag.Program{Graphs: []*dag.Graph{g}}, p, []*Input{plan}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
