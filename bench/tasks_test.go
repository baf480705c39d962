// Package bench_test measures what a task costs beside its kernel.
package bench_test

import (
	"strconv"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/execute/hardware"
	"dahl/plan"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// taskShapes is the table of graphs of empty tasks; bench/starpu/main.c has the same.
var taskShapes = []struct {
	name string
	add  func(b *dag.Builder, tasks int)
}{
	{"independent", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, 0) }},
	{"chain", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, 1) }},
	{"buffers", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, 1000) }},
	{"cholesky", addCholesky},
}

// addScalars adds buffers of one element.
func addScalars(b *dag.Builder, n int) []dag.BufferID {
	ids := make([]dag.BufferID, n)
	for i := range ids {
		ids[i] = b.Buffer(dag.Buffer{Name: "x" + strconv.Itoa(i), Shape: []int{1}, Type: dag.Float32})
	}
	return ids
}

// addRoundRobin adds tasks that read and write one of the buffers each, in turn; no
// buffers: tasks without data.
func addRoundRobin(b *dag.Builder, tasks, buffers int) {
	b.Grow(tasks, 0)
	x := addScalars(b, buffers)
	for t := range tasks {
		task := dag.Task{Name: "t" + strconv.Itoa(t)}
		if buffers > 0 {
			task.Accesses = []dag.Access{{Region: dag.Region{Buffer: x[t%buffers]}, Mode: dag.ReadWrite}}
		}
		b.Task(task)
	}
}

// addCholesky adds the tasks of a tiled Cholesky factorisation, right-looking, each
// tile a buffer: of n by n tiles, n the least for which there are enough tasks,
// n(n+1)(n+2)/6.
func addCholesky(b *dag.Builder, tasks int) {
	n := 1
	for n*(n+1)*(n+2)/6 < tasks {
		n++
	}
	b.Grow(n*(n+1)*(n+2)/6, 0)
	x := addScalars(b, n*(n+1)/2)
	tile := func(i, j int) dag.BufferID { return x[i*(i+1)/2+j] }
	count := 0
	add := func(changed dag.BufferID, read ...dag.BufferID) {
		accesses := make([]dag.Access, 1, 3)
		accesses[0] = dag.Access{Region: dag.Region{Buffer: changed}, Mode: dag.ReadWrite}
		for _, r := range read {
			accesses = append(accesses, dag.Access{Region: dag.Region{Buffer: r}, Mode: dag.Read})
		}
		b.Task(dag.Task{Name: "t" + strconv.Itoa(count), Accesses: accesses})
		count++
	}
	for k := range n {
		add(tile(k, k)) // potrf
		for i := k + 1; i < n; i++ {
			add(tile(i, k), tile(k, k)) // trsm
		}
		for i := k + 1; i < n; i++ {
			add(tile(i, i), tile(i, k)) // syrk
			for j := k + 1; j < i; j++ {
				add(tile(i, j), tile(i, k), tile(j, k)) // gemm
			}
		}
	}
}

// compile builds the program of one graph and compiles it for two cores.
func compile(b *testing.B, shape int, name string) (r *execute.Runner, tasks int) {
	b.Helper()
	builder := dag.NewBuilder(taskShapes[shape].name)
	taskShapes[shape].add(builder, 100_000)
	g, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	p, err := hardware.Detect()
	if err == nil {
		p, err = p.WithCores(2)
	}
	if err != nil {
		b.Fatal(err)
	}
	info, err := policy.ByName(name)
	if err != nil {
		b.Fatal(err)
	}
	d, err := plan.Decide(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}, p, hardware.Target{ThisMachine: true}, schedule.Choice{Policy: info})
	if err == nil {
		r, err = execute.New(d, execute.Options{})
	}
	if err != nil {
		b.Fatal(err)
	}
	return r, g.NumTasks()
}

// eachShape runs a benchmark of every graph under every policy.
func eachShape(b *testing.B, run func(b *testing.B, shape int, policy string)) {
	for i := range taskShapes {
		for _, policy := range []string{"eager", "dmda", "heft"} {
			b.Run(taskShapes[i].name+"/"+policy, func(b *testing.B) { run(b, i, policy) })
		}
	}
}

// BenchmarkTasksOnce is everything from nothing to the schedule: it builds the graph, plans, lays out memory, compiles,
// starts the workers and runs one recorded step.
func BenchmarkTasksOnce(b *testing.B) {
	eachShape(b, func(b *testing.B, shape int, policy string) {
		tasks := 0
		for b.Loop() {
			var r *execute.Runner
			r, tasks = compile(b, shape, policy)
			_, err := r.Run(b.Context(), 0, 1, true)
			if r.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tasks), "ns/task")
	})
}

// BenchmarkTasksSteady runs steps of the compiled graph.
func BenchmarkTasksSteady(b *testing.B) {
	eachShape(b, func(b *testing.B, shape int, policy string) {
		r, tasks := compile(b, shape, policy)
		defer r.Close()
		b.ResetTimer()
		if _, err := r.Run(b.Context(), 0, b.N, false); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tasks), "ns/task")
	})
}
