package layout

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
)

// TestLowestPlaces: a storage lies as low as one that is compared with each larger storage by itself would.
func TestLowestPlaces(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 31))
		g := randomLoop(t, r)
		lives, extents := placedLives(t, g, randomOrder(r, g))
		first := make([]int, len(extents)) // in the order of placing
		for k := range first {
			first[k] = k
		}
		var in []dag.BufferID
		for i := range g.Buffers {
			if g.Buffers[i].Role == dag.Activation {
				in = append(in, dag.BufferID(i))
			}
		}
		slices.SortFunc(first, func(a, b int) int {
			x, y := &g.Buffers[in[a]], &g.Buffers[in[b]]
			return cmp.Or(cmp.Compare(extents[b].bytes, extents[a].bytes), cmp.Compare(y.Bytes(), x.Bytes()), cmp.Compare(x.Name, y.Name))
		})
		for i, k := range first {
			placed := slices.SortedStableFunc(slices.Values(first[:i]), func(a, b int) int { return cmp.Compare(extents[a].offset, extents[b].offset) })
			at := int64(0)
			for _, other := range placed {
				if e := extents[other]; at+extents[k].bytes > e.offset && e.end() > at && !lives.ordered(k, other) {
					at = e.end()
				}
			}
			if at != extents[k].offset {
				t.Fatalf("seed %d: %s lies at %d, and could at %d", seed, g.Buffers[in[k]].Name, extents[k].offset, at)
			}
		}
	}
}

// pipeline is the first of some stages: micro-batches go forward and, as many as there are stages later, backward. Each leaves 12 results to its backward pass,
// and has 40 others that the next task reads.
func pipeline(t testing.TB, stages, micros int) (*dag.Graph, [][]dag.TaskID) {
	b := dag.NewBuilder("pipeline")
	data := b.Buffer(dag.Buffer{Name: "data", Shape: []int{10}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	var forward, backward [][]dag.TaskID
	for m := range micros {
		last := data
		var kept []dag.BufferID
		var tasks [2][]dag.TaskID
		for i := range 52 {
			next := b.Buffer(dag.Buffer{Name: fmt.Sprintf("m%d.x%d", m, i), Shape: []int{1024 * (1 + i%7)}, Type: dag.Uint8})
			task := dag.Task{Name: fmt.Sprintf("m%d.t%d", m, i), Accesses: []dag.Access{access(last, dag.Read), access(next, dag.Write)}}
			pass := 0
			if i >= 26 {
				pass = 1
			}
			if i < 24 && i%2 == 1 {
				kept = append(kept, next)
			}
			if n := len(kept); pass == 1 && i%2 == 0 && n > 0 {
				task.Accesses, kept = append(task.Accesses, access(kept[n-1], dag.Read)), kept[:n-1]
			}
			tasks[pass] = append(tasks[pass], b.Task(task))
			last = next
		}
		forward, backward = append(forward, tasks[0]), append(backward, tasks[1])
	}
	var list []dag.TaskID
	for m := range micros + stages {
		if m < micros {
			list = append(list, forward[m]...)
		}
		if m >= stages {
			list = append(list, backward[m-stages]...)
		}
	}
	return must.Get(b.Build())(t), [][]dag.TaskID{list}
}

// BenchmarkPipeline places the storages of a stage whose micro-batches repeat.
func BenchmarkPipeline(b *testing.B) {
	for _, micros := range []int{64, 256, 512} {
		g, order := pipeline(b, 64, micros)
		b.Run(fmt.Sprint(micros), func(b *testing.B) {
			for b.Loop() {
				l := must.Get(layOutByPlan(g, order))(b)
				b.ReportMetric(float64(l.ArenaBytes[StepArena]), "bytes")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*micros*52), "ns/storage")
		})
	}
}

// BenchmarkUnlike places storages of which hardly two are of a size.
func BenchmarkUnlike(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 5))
	build := dag.NewBuilder("unlike")
	order := make([][]dag.TaskID, 10)
	const tasks, width = 4000, 50
	for i := range tasks {
		y := build.Buffer(dag.Buffer{Name: fmt.Sprint("y", i), Shape: []int{4000 + r.IntN(200_000)}, Type: dag.Uint8})
		task := dag.Task{Name: fmt.Sprint("t", i), Accesses: []dag.Access{access(y, dag.Write)}}
		if i >= width {
			first := i/width*width - width
			task.Accesses = append(task.Accesses, access(dag.BufferID(first+r.IntN(width/2)), dag.Read), access(dag.BufferID(first+width/2+r.IntN(width/2)), dag.Read))
		}
		order[i%10] = append(order[i%10], build.Task(task))
	}
	g := must.Get(build.Build())(b)
	for b.Loop() {
		must.Get(layOutByPlan(g, order))(b)
	}
}
