package bench_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// curveCase is a graph of a number of tasks on ten workers, which take them in turn.
type curveCase struct {
	name     string
	messages bool // each worker has a memory of its own, all at one bus; else they share one
	graph    func(tasks int) *dag.Builder
	most     int // tasks
	simGrid  int // the most tasks that SimGrid takes in minutes
}

var curveCases = []curveCase{
	{"alone", false, layersOf, 10_000_000, 10_000_000},
	{"messages", true, layersOf, 1_000_000, 1_000_000},
	{"bus", true, stagesOf, 1_000_000, 10_000},
}

// layersOf is layers of 50 tasks, each of which reads what one to three of the layer before have written.
func layersOf(tasks int) *dag.Builder {
	const width = 50
	r := rand.New(rand.NewPCG(1, 2))
	b := dag.NewBuilder("layers")
	b.Grow(tasks, tasks)
	for i := range tasks {
		y := b.Buffer(dag.Buffer{Name: "y" + strconv.Itoa(i), Shape: []int{1000 + r.IntN(50_000)}, Type: dag.Float32})
		accesses := make([]dag.Access, 1, 4)
		accesses[0] = written(y)
		if first := i/width*width - width; first >= 0 {
			from := r.IntN(width)
			for k := range 1 + r.IntN(3) {
				accesses = append(accesses, read(dag.BufferID(first+(from+17*k)%width)))
			}
		}
		b.Task(dag.Task{Name: "t" + strconv.Itoa(i), Costs: curveCosts[r.IntN(len(curveCosts))], Accesses: accesses})
	}
	return b
}

// stagesOf is samples that pass through ten stages, each behind the sample before. Their messages crowd the bus.
func stagesOf(tasks int) *dag.Builder {
	const stages = 10
	b := dag.NewBuilder("stages")
	b.Grow(tasks, tasks)
	for i := range tasks {
		y := b.Buffer(dag.Buffer{Name: "y" + strconv.Itoa(i), Shape: []int{25_000}, Type: dag.Float32})
		task := dag.Task{Name: "t" + strconv.Itoa(i), Costs: curveCosts[9], Accesses: []dag.Access{written(y)}}
		if i%stages > 0 {
			task.Accesses = append(task.Accesses, read(y-1))
		}
		if i >= stages {
			task.After = []dag.TaskID{dag.TaskID(i - stages)}
		}
		b.Task(task)
	}
	return b
}

// curveCosts are 10 us, 20 us, … 1 ms on any device.
var curveCosts = func() (all [100][]dag.Cost) {
	for i := range all {
		all[i] = []dag.Cost{{Key: dag.AnyDevice, Ns: 10_000 * int64(i+1)}}
	}
	return all
}()

func written(b dag.BufferID) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b}, Mode: dag.Write}
}
func read(b dag.BufferID) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b}, Mode: dag.Read}
}

// BenchmarkCurve simulates the replay of a plan, from the graph to the schedule, beside SimGrid where that is installed. Seconds are those of processors.
func BenchmarkCurve(b *testing.B) {
	for _, c := range curveCases {
		for n := 1000; n <= c.most; n *= 10 {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				g, p := must.Get(c.graph(n).Build())(b), hostsOf(b, 10, c.messages, 0)
				plan := &schedule.Plan{Order: make([][]dag.TaskID, len(p.Workers))}
				for t := range g.Tasks {
					plan.Order[t%len(p.Workers)] = append(plan.Order[t%len(p.Workers)], dag.TaskID(t))
				}
				var d *schedule.Decision
				var s *schedule.Schedule
				debug.FreeOSMemory()
				must.Do(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
				resident, times := statusBytes(b, "VmRSS"), max(1, 100_000/n)
				var all, run time.Duration
				for b.Loop() {
					for range times {
						began := processorTime(b)
						d = decided(b, g, p, plan)
						between := processorTime(b)
						s = must.Get(simulate.Run(context.Background(), d, 0, 1, simulate.Options{}))(b)
						all, run = all+processorTime(b)-began, run+processorTime(b)-between
					}
				}
				seconds := all.Seconds() / float64(b.N*times)
				b.ReportMetric(1e6*seconds/float64(n), "us/task")
				b.ReportMetric(1e6*run.Seconds()/float64(b.N*times*n), "run-us/task")
				b.ReportMetric(float64(statusBytes(b, "VmHWM")-resident)/float64(n), "peak-B/task")
				if _, err := os.Stat("/usr/include/simgrid/s4u.hpp"); err != nil || n > c.simGrid {
					return
				}
				by := bySimGrid(b, buildSimGrid(b), d)
				b.ReportMetric(1e6*by.processor/float64(n), "simgrid-us/task")
				b.ReportMetric(float64(by.bytes)/float64(n), "simgrid-B/task")
				b.ReportMetric(by.processor/seconds, "times")
				b.ReportMetric(s.Makespan.Seconds()/by.makespan-1, "off")
			})
		}
	}
}

// decided is the decision of a plan of one graph.
func decided(tb testing.TB, g *dag.Graph, p *platform.Platform, plan *schedule.Plan) *schedule.Decision {
	priced := must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(tb)
	return must.Get(priced.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}}))(tb)
}

// processorTime is what the process has used of all processors.
func processorTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	must.Do(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// statusBytes is a number of bytes that Linux says of the process.
func statusBytes(tb testing.TB, name string) int64 {
	_, line, _ := strings.Cut(string(must.Get(os.ReadFile("/proc/self/status"))(tb)), name+":")
	return must.Get(strconv.ParseInt(strings.Fields(line)[0], 10, 64))(tb) << 10
}
