package simulate

import (
	"testing"

	"dahl/dag"
	"dahl/schedule"
)

// workerOf is where a task of step 0 ran.
func workerOf(p *schedule.Problem, s *schedule.Schedule, name string) string {
	for _, span := range s.Spans {
		if span.Step == 0 && p.Graph.Tasks[span.Task].Name == name {
			return p.Platform.Workers[span.Worker].Name
		}
	}
	return ""
}

// TestDMDAWaitsForTheEngine: the gpu has one engine in, and fetches x of 200 bytes for a, from 1, when o has written it on the
// cpu, to 211. At 5 p has written y of 40 bytes and c becomes ready, which reads y. That comes to the gpu behind x, from 211 to
// 261. There c would run until 271, and on the cpu from 5 on for 265, 266 or 267: ties go to the cpu.
func TestDMDAWaitsForTheEngine(t *testing.T) {
	for takes, want := range map[int64]string{265: "cpu", 266: "cpu", 267: "gpu"} {
		b := dag.NewBuilder("behind another copy")
		x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{200}, Type: dag.Uint8, Role: dag.Activation})
		y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{40}, Type: dag.Uint8, Role: dag.Activation})
		gpu := dag.Cost{Key: "gpu", Ns: 10}
		b.Task(dag.Task{Name: "o", Costs: []dag.Cost{{Key: "cpu", Ns: 1}}, Accesses: []dag.Access{whole(x, dag.Write)}})
		b.Task(dag.Task{Name: "p", Costs: []dag.Cost{{Key: "cpu", Ns: 4}}, Accesses: []dag.Access{whole(y, dag.Write)}})
		b.Task(dag.Task{Name: "a", Costs: []dag.Cost{gpu}, Accesses: []dag.Access{whole(x, dag.Read)}})
		b.Task(dag.Task{Name: "c", Costs: []dag.Cost{gpu, {Key: "cpu", Ns: takes}}, Accesses: []dag.Access{whole(y, dag.Read)}})
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		pl := twoMemories(t)
		pl.Devices[1].CopyEnginesIn = 1
		p := problem(t, g, pl, 1)
		s := runChecked(t, p, dynamic(t, "dmda"))
		if got := workerOf(p, s, "c"); got != want {
			t.Errorf("%d ns on the cpu: on %s, want %s", takes, got, want)
		}
		if want == "gpu" && s.Makespan != 271 {
			t.Errorf("makespan %d, want 271", s.Makespan)
		}
	}
}
