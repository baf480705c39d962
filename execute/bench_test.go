package execute

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"dahl/dag"
)

// BenchmarkHandOff is the time from a worker's publishing of a count until the other
// one, on a core of its own, goes on: half of a round trip.
func BenchmarkHandOff(b *testing.B) {
	cpus := workerCPUs()
	if len(cpus) < 2 || runtime.GOMAXPROCS(0) < 2 {
		b.Skip("one core")
	}
	team := newTeam(2, spinLimit)
	var done sync.WaitGroup
	for self := range 2 {
		done.Go(func() {
			runtime.LockOSThread() // not unlocked: the thread ends with its CPU
			if err := pinThread(cpus[self]); err != nil {
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
	r, err := New(&dag.Program{Name: "point", Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}, Options{Platform: p, Policy: "heft"})
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
