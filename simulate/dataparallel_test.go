package simulate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// layers is two layers over a batch of four samples, a sample per task: a[i] writes sample i of x, b[i] reads it and
// writes that of y. Then u[i] reads all of y and writes row i of a parameter of four rows, of 4 KB each.
func layers(t *testing.T, layer, update []dag.Cost, placed string) *dag.Graph {
	b := dag.NewBuilder("layers")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{4, 10}, Type: dag.Float32})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{4, 10}, Type: dag.Float32})
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{4, 1000}, Type: dag.Float32, Role: dag.Parameter, Home: "host"})
	row := func(of dag.BufferID, i, columns int, m dag.Mode) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: of, Box: dag.Box{{Lo: i, Hi: i + 1}, {Lo: 0, Hi: columns}}}, Mode: m}
	}
	task := func(name string, costs []dag.Cost, accesses ...dag.Access) {
		task := dag.Task{Name: name, Costs: costs, Accesses: accesses}
		if name == placed {
			task.Placement = &dag.Placement{Device: "cpu"}
		}
		b.Task(task)
	}
	for i := range 4 {
		task(fmt.Sprint("a", i), layer, row(x, i, 10, dag.Write))
	}
	for i := range 4 {
		task(fmt.Sprint("b", i), layer, row(x, i, 10, dag.Read), row(y, i, 10, dag.Write))
	}
	for i := range 4 {
		task(fmt.Sprint("u", i), update, whole(y, dag.Read), row(w, i, 1000, dag.Write))
	}
	g := must.Get(b.Build())(t)
	return g
}

// TestDataParallel: with both devices equally fast each has half of the batch, though all of a takes less time, 4 · 100 ns, than one copy
// to the gpu, 10 ns and 40 B at 1 B/ns, and back after it. Where the gpu takes a third of the cpu's time, it has three
// quarters of the batch, all but the first sample. A device that cannot run the layers has none, and a task that has to be on the cpu
// is there. Rows of weights are no samples: updates are where they end first, on the cpu.
func TestDataParallel(t *testing.T) {
	both := func(cpu, gpu int64) []dag.Cost { return []dag.Cost{{Key: "cpu", Ns: cpu}, {Key: "gpu", Ns: gpu}} }
	for name, c := range map[string]struct {
		layer  []dag.Cost
		placed string
		onGPU  string
	}{
		"equal":          {both(100, 100), "", "a2 a3 b2 b3"},
		"a fast gpu":     {both(300, 100), "", "a1 a2 a3 b1 b2 b3"},
		"a slow gpu":     {both(100, 300), "", "a3 b3"},
		"a far slower":   {both(100, 900), "", ""},
		"gpu only":       {both(0, 100)[1:], "", "a0 a1 a2 a3 b0 b1 b2 b3"},
		"placed on cpu":  {both(100, 100), "b3", "a2 a3 b2"},
		"no time at all": {both(0, 0), "", "a2 a3 b2 b3"},
	} {
		g := layers(t, c.layer, both(10, 5000), c.placed)
		p := problem(t, g, twoMemories(t), 1)
		plan := must.Get(policy.DataParallel.Plan(p))(t)
		runPlan(t, p, plan)
		on := map[dag.TaskID]int{}
		for w, list := range plan.Order {
			for _, id := range list {
				on[id] = w
			}
		}
		got := ""
		for id := range g.Tasks {
			if on[dag.TaskID(id)] == 1 {
				got += " " + g.Tasks[id].Name
			}
		}
		if want := c.onGPU; want != "" && got != " "+want || want == "" && got != "" {
			t.Errorf("%s: on the gpu:%s; want %s", name, got, want)
		}
	}
}

// TestDataParallelAlongOutputs: two layers cut along the second dimension of what they write, in four parts of three of its twelve columns,
// read all of what is before them. On two equally fast devices the parts whose middles, 1.5, 4.5, 7.5 and 10.5 of 12, lie in the second half
// are on the second device, also where HEFT would leave all on the first, whose memory has what they read: four tasks of 100 ns end
// before one that waits for 480 B at 1 B/ns.
func TestDataParallelAlongOutputs(t *testing.T) {
	b := dag.NewBuilder("columns")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{10, 12}, Type: dag.Float32, Role: dag.Input, Home: "host"})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{10, 12}, Type: dag.Float32})
	for i := range 4 {
		part := dag.Box{{Lo: 0, Hi: 10}, {Lo: 3 * i, Hi: 3*i + 3}}
		b.Task(dag.Task{Name: fmt.Sprint("y", i), Costs: []dag.Cost{{Key: "cpu", Ns: 100}, {Key: "gpu", Ns: 100}},
			Accesses: []dag.Access{{Region: dag.Region{Buffer: y, Box: part}, Mode: dag.Write}, whole(x, dag.Read)}})
	}
	g := must.Get(b.Build())(t)
	p := problem(t, g, twoMemories(t), 1)
	for _, c := range []struct {
		by    schedule.Policy
		onGPU int
	}{{policy.HEFT, 0}, {policy.DataParallel, 2}} {
		plan := must.Get(c.by.Plan(p))(t)
		if got := plan.Order[1]; len(got) != c.onGPU || c.onGPU == 2 && (min(got[0], got[1]) != 2 || max(got[0], got[1]) != 3) {
			t.Errorf("%s: tasks %v on the gpu", plan.Policy, got)
		}
	}
}

// TestDataParallelOfOneMemory: where all workers share a memory the plan is HEFT's.
func TestDataParallelOfOneMemory(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		pl := oneMemory(t, 3)
		tasks := randomGraph(r, pl)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 1)
		heft := must.Get(policy.HEFT.Plan(p))(t)
		plan := must.Get(policy.DataParallel.Plan(p))(t)
		if !reflect.DeepEqual(plan.Order, heft.Order) {
			t.Errorf("seed %d: tasks %v, HEFT has %v", seed, plan.Order, heft.Order)
		}
	}
}
