package dag

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"dahl/must"
)

// BenchmarkBuildMillion builds 500 layers of 2000 tasks. A layer writes a matrix of
// 4000×3000 (samples × features) in tiles of 8 samples × 750 features, or of 10 × 600 in
// every other layer, and reads the same samples of the layer before, all
// features, and a slice of the weights: regions overlap without matching. It
// reports the time for one task and the bytes that the graph keeps for it, names
// and accesses included.
func BenchmarkBuildMillion(b *testing.B) {
	var g *Graph
	var before, after runtime.MemStats
	for b.Loop() {
		g = nil
		runtime.GC()
		runtime.ReadMemStats(&before)
		g = buildLayers(b, 500)
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.StartTimer()
	}
	tasks, edges := float64(g.NumTasks()), 0
	for t := range g.Tasks {
		edges += len(g.Preds(TaskID(t)))
	}
	b.ReportMetric(tasks, "tasks")
	b.ReportMetric(float64(edges)/tasks, "edges/task")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/tasks, "bytes/task")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tasks, "ns/task")
}

// buildLayers makes layers of 500×4 or 400×5 tasks.
func buildLayers(b testing.TB, layers int) *Graph {
	const rows, cols = 4000, 3000
	builder := NewBuilder("layers")
	matrix := func(l int) BufferID {
		return builder.Buffer(Buffer{Name: fmt.Sprintf("y%d", l), Shape: []int{rows, cols}, Type: Float32})
	}
	params := Params{{"stride", 1}}
	x := matrix(0)
	for l := 1; l <= layers; l++ {
		y := matrix(l)
		w := builder.Buffer(Buffer{Name: fmt.Sprintf("w%d", l), Shape: []int{cols, cols}, Type: Float32, Role: Parameter})
		labels := Labels{Layer: fmt.Sprintf("layer%d", l), Phase: "forward"}
		rowTile, colTile := 8, 750
		if l%2 == 1 {
			rowTile, colTile = 10, 600
		}
		prefix := labels.Layer + ".forward["
		for _, r := range tiles(rows, rowTile) {
			name := prefix + strconv.Itoa(r.Lo) + ":" + strconv.Itoa(r.Hi) + ","
			band := Box{r, {0, cols}}
			for _, c := range tiles(cols, colTile) {
				builder.Task(Task{
					Name: name + strconv.Itoa(c.Lo) + ":" + strconv.Itoa(c.Hi) + "]",
					Op:   "dense", Type: Float32, Shape: "8x750;8x3000;750x3000",
					Params: params, Labels: labels, Flops: 1e6, MovedBytes: 1e5,
					Accesses: []Access{{Region{y, Box{r, c}}, Write}, {Region{x, band}, Read}, {Region{w, Box{c, {0, cols}}}, Read}},
				})
			}
		}
		x = y
	}
	return must.Get(builder.Build())(b)
}
