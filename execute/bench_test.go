package execute

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"dahl/dag"
	"dahl/execute/host"
	"dahl/schedule"
)

// BenchmarkHandOff is the time from a worker's publishing of a count until the other
// one, on a core of its own, goes on: half of a round trip.
func BenchmarkHandOff(b *testing.B) {
	cpus := host.CPUs()
	if len(cpus) < 2 || runtime.GOMAXPROCS(0) < 2 {
		b.Skip("one core")
	}
	team := newTeam(2, spinLimit)
	var done sync.WaitGroup
	for self := range 2 {
		done.Go(func() {
			runtime.LockOSThread() // not unlocked: the thread ends with its CPU
			if err := host.Pin(cpus[self]); err != nil {
				b.Error(err)
			}
			for round := range int64(b.N) {
				team.await(self, 1-self, round+int64(self))
				team.publish(self, round+1)
			}
		})
	}
	done.Wait()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/hand-off")
}

// BenchmarkRun is a run of one step of one task: waking the workers, and their end.
func BenchmarkRun(b *testing.B) {
	builder := dag.NewBuilder("point")
	builder.Task(dag.Task{Name: "t"})
	g, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	p, err := Detect()
	if err != nil {
		b.Fatal(err)
	}
	r, err := newOn(&dag.Program{Name: "point", Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}, how{Platform: p, Policy: "heft"})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for b.Loop() {
		if _, err := r.Run(context.Background(), 0, 1, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDevice is what issuing, waiting for and counting a task takes on an emulated
// device: a chain of points that alternates between a lane of launches and the host, and
// one on the device alone.
func BenchmarkDevice(b *testing.B) {
	for _, c := range []struct {
		name  string
		every int // task on the host
	}{{"alone", 1 << 30}, {"to and fro", 2}} {
		b.Run(c.name, func(b *testing.B) {
			const tasks = 100
			builder := dag.NewBuilder("chain")
			plan := &schedule.Plan{Order: make([][]dag.TaskID, 2)}
			for i := range tasks {
				t := dag.Task{Name: strconv.Itoa(i)}
				if i > 0 {
					t.After = []dag.TaskID{dag.TaskID(i - 1)}
				}
				w := 1
				if i%c.every == c.every-1 {
					w = 0
				}
				plan.Order[w] = append(plan.Order[w], builder.Task(t))
			}
			g, err := builder.Build()
			if err != nil {
				b.Fatal(err)
			}
			r, err := newOn(&dag.Program{Name: "chain", Graphs: []*dag.Graph{g}}, how{Platform: node(b, 1, 1), Plans: []*schedule.Plan{plan}})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			b.ResetTimer()
			if _, err := r.Run(context.Background(), 0, b.N, false); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tasks, "ns/task")
		})
	}
}
