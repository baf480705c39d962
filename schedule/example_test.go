package schedule_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/platform"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// priced is a program of three tasks on a machine that ships with dahl: two cores and a GPU.
func priced() *schedule.Priced {
	g, err := dag.ReadJSON(strings.NewReader(`{"format": "dahl-graph 1", "buffers": [{"name": "x", "bytes": 4}], "tasks": [
		{"name": "make", "writes": ["x"], "ns": {"cpu": 70000}},
		{"name": "use", "reads": ["x"], "ns": {"cpu": 50000, "gpu": 900000}},
		{"name": "other", "ns": {"cpu": 110000}}]}`), "graph.json")
	if err != nil {
		panic(err)
	}
	p, err := platforms.Load("emulated")
	if err != nil {
		panic(err)
	}
	prog := &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}
	// The graph says what its tasks take. A network's kernels are offered by hardware.Target.
	c, err := schedule.Price(prog, p, schedule.Unbound)
	if err != nil {
		panic(err)
	}
	return c
}

// What a task takes is known for every device that can run it.
func ExamplePrice() {
	c := priced()
	for t, task := range c.Program.Graphs[0].Tasks {
		for d, device := range c.Platform.Devices {
			if cost, ok := c.Costs(0).Of(dag.TaskID(t), platform.DeviceID(d)); ok {
				fmt.Println(task.Name, "on", device.Name, cost.Duration)
			}
		}
	}
	// Output:
	// make on cpu 70µs
	// use on cpu 50µs
	// use on gpu 900µs
	// other on cpu 110µs
}

// HEFT gives the longer chain to one core and the other task to the second.
func ExamplePriced_Decide() {
	d, err := priced().Decide(schedule.Choice{Policy: policy.HEFT})
	if err != nil {
		fmt.Println(err)
		return
	}
	for w, tasks := range d.Graphs[0].Plan.Order {
		for _, t := range tasks {
			fmt.Println(d.Priced.Platform.Workers[w].Name, "runs", d.Priced.Program.Graphs[0].Tasks[t].Name)
		}
	}
	// Output:
	// cpu.0 runs make
	// cpu.0 runs use
	// cpu.1 runs other
}

// lastFit gives every task to the last worker that can run it.
type lastFit struct {
	given map[platform.WorkerID][]dag.Instance
}

func (l *lastFit) Ready(v *policy.View, i dag.Instance) platform.WorkerID {
	workers := v.Workers(i.Task)
	w := workers[len(workers)-1]
	l.given[w] = append(l.given[w], i)
	return w
}

func (l *lastFit) Next(_ *policy.View, w platform.WorkerID) (dag.Instance, bool) {
	if len(l.given[w]) == 0 {
		return dag.Instance{}, false
	}
	i := l.given[w][0]
	l.given[w] = slices.Delete(l.given[w], 0, 1)
	return i, true
}

// A policy of one's own is a value like those of the table, in the simulator and in the
// executor. Where tasks run in several memories its decisions are taken beforehand.
func Example_policyOfYourOwn() {
	own := policy.NewOnline(schedule.Doc{Name: "last"}, func(*schedule.Problem) policy.Scheduler {
		return &lastFit{given: map[platform.WorkerID][]dag.Instance{}}
	})
	d, err := priced().Decide(schedule.Choice{Policy: own})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := simulate.Run(context.Background(), d, 0, 1, simulate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, span := range s.Spans {
		fmt.Println(d.Priced.Platform.Workers[span.Worker].Name, "ran", d.Priced.Program.Graphs[0].Tasks[span.Task].Name)
	}
	// Output:
	// cpu.1 ran make
	// cpu.1 ran other
	// gpu ran use
}
