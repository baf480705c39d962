package calibrate

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/execute/hardware"
	"dahl/kernels"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// machine is a platform of a number of cores and one memory without a limit.
func machine(t testing.TB, cores int) *platform.Platform { return node(t, cores, 0) }

var node = testmachine.Executable

// layers is a chain of a dense layer, a ReLU and a sum, for batches of 7 and of 3 samples.
func layers(t testing.TB) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("layers")
	for _, batch := range []int{7, 3} {
		buffer := func(name string, dt dag.DType, mode dag.Mode, shape ...int) dag.Access {
			role := map[dag.Mode]dag.Role{dag.Read: dag.Parameter, dag.Write: dag.Activation}[mode]
			return dag.Access{Region: dag.Region{Buffer: b.Buffer(dag.Buffer{Name: fmt.Sprint(name, batch), Type: dt, Role: role, Shape: shape})}, Mode: mode}
		}
		as := func(a dag.Access, mode dag.Mode) dag.Access { a.Mode = mode; return a }
		add := func(op string, accesses ...dag.Access) {
			kernels.Add(b, dag.Task{Name: fmt.Sprint(op, batch), Op: op, Type: dag.Float32, Accesses: accesses})
		}
		h, y := buffer("h", dag.Float32, dag.Write, batch, 5), buffer("y", dag.Float32, dag.Write, batch, 5)
		add("dense", h, buffer("x", dag.Float32, dag.Read, batch, 11), buffer("w", dag.Float32, dag.Read, 5, 11), buffer("b", dag.Float32, dag.Read, 5))
		add("relu", y, buffer("mask", dag.Uint8, dag.Write, batch, 5), as(h, dag.Read))
		add("add", as(h, dag.ReadWrite), as(y, dag.Read))
	}
	return must.Get(b.Build())(t)
}

// runner executes the layers with the reference kernels, all on one worker if that is given.
func runner(t testing.TB, p *platform.Platform, worker ...int) *execute.Runner {
	t.Helper()
	g := layers(t)
	prog := &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}
	priced := must.Get(schedule.Price(prog, must.Get(execute.Runnable(p))(t), hardware.Target{Variant: "ref", ThisMachine: true}))(t)
	choice := schedule.Choice{Policy: must.Get(policy.ByName("eager"))(t)}
	for _, w := range worker {
		plan := &schedule.Plan{Order: make([][]dag.TaskID, len(p.Workers))}
		for i := range g.Tasks {
			plan.Order[w] = append(plan.Order[w], dag.TaskID(i))
		}
		choice.Plans = []*schedule.Plan{plan}
	}
	r := must.Get(execute.New(must.Get(priced.Decide(choice))(t), execute.Options{}))(t)
	t.Cleanup(r.Close)
	return r
}
