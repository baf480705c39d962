package simulate

import (
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule/policy"
)

// plannedOn is the worker on which HEFT plans a task.
func plannedOn(t *testing.T, pl *platform.Platform, g *dag.Graph, task string) string {
	t.Helper()
	p := problem(t, g, pl, 1)
	plan := must.Get(policy.HEFT.Plan(p))(t)
	runPlan(t, p, plan)
	for w, list := range plan.Order {
		for _, id := range list {
			if g.Tasks[id].Name == task {
				return pl.Workers[w].Name
			}
		}
	}
	return ""
}

// TestHEFTWaitsForEngines: x of 200 bytes comes to the first unit of a gpu for a, from 0 to
// 210. b could run on the gpu, too, for 10 ns. It reads
//
//   - x itself, which is there at 210, when the first unit begins with a
//   - y of 40 bytes, with one engine behind x at 260; with two or any number at 50, when the
//     first unit is still idle
//
// and goes to the cpu unless that ends later.
func TestHEFTWaitsForEngines(t *testing.T) {
	for _, c := range []struct {
		reads   string
		engines int
		ends    int64
		on      string
	}{{"x", 1, 220, "gpu.1"}, {"x", 0, 220, "gpu.1"}, {"y", 1, 270, "gpu.1"}, {"y", 2, 60, "gpu.0"}, {"y", 0, 60, "gpu.0"}} {
		for cpu, want := range map[int64]string{c.ends: "cpu", c.ends + 1: c.on} {
			pl := twoMemories(t)
			pl.Devices[1].Count, pl.Devices[1].CopyEnginesIn = 2, c.engines
			must.Do(t, pl.Complete())
			g := readers(t, map[string]int{"x": 200, "y": 40}, nil, reader{"a", []string{"x"}, map[string]int64{"gpu": 1000}},
				reader{"b", []string{c.reads}, map[string]int64{"cpu": cpu, "gpu": 10}})
			if got := plannedOn(t, pl, g, "b"); got != want {
				t.Errorf("%d engines, b reads %s and takes %d on the cpu: on %s, want %s", c.engines, c.reads, cpu, got, want)
			}
		}
	}
}

// reader is a task that reads buffers of the host's memory, with its costs by device.
type reader struct {
	name  string
	reads []string
	ns    map[string]int64
}

// readers builds tasks that are ready at the start, over buffers of so many bytes; the home
// of one is the host's memory if it has no other.
func readers(t *testing.T, bytes map[string]int, homes map[string]string, tasks ...reader) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("readers")
	buffers := map[string]dag.BufferID{}
	for _, task := range tasks {
		var accesses []dag.Access
		for _, name := range task.reads {
			if _, ok := buffers[name]; !ok {
				home := "host"
				if homes[name] != "" {
					home = homes[name]
				}
				buffers[name] = b.Buffer(dag.Buffer{Name: name, Shape: []int{bytes[name]}, Type: dag.Uint8, Role: dag.Input, Home: home})
			}
			accesses = append(accesses, whole(buffers[name], dag.Read))
		}
		var costs []dag.Cost
		for _, device := range []string{"cpu", "gpu", "g1", "g2"} {
			if ns, ok := task.ns[device]; ok {
				costs = append(costs, dag.Cost{Key: device, Ns: ns})
			}
		}
		b.Task(dag.Task{Name: task.name, Costs: costs, Accesses: accesses})
	}
	g := must.Get(b.Build())(t)
	return g
}
