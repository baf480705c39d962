package improve

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/schedule"
)

// Three cores write 8 B each in 1, 2 and 3 ns, which take 5 + 8 = 13 ns over the bus of 1 B/ns, one after the other. The GPU reads the third in 10 ns, then the
// first and then the second. All cores wait for the 4 B that it writes last, which come back in 5 + 4 = 9 ns. The engine takes the first at 1 ns. At 14 it takes the third: what
// follows its reader takes 39 ns, and what follows the reader of the second 19. So the GPU begins at 27 and ends at 57; the second is there at 40. The next
// step begins at 66. If the engine took what has been ready longest, the GPU would begin at 40, and the next step at 79.
func TestOrderOfCopies(t *testing.T) {
	p := coresAndGPU(3)
	b := dag.NewBuilder("urgent")
	from := &schedule.Plan{Order: make([][]dag.TaskID, 4)}
	var written []dag.BufferID
	state := b.Buffer(dag.Buffer{Name: "state", Shape: []int{1}, Type: dag.Float32, Role: dag.State, ViewOf: dag.None})
	for i, name := range []string{"a", "b", "c"} {
		written = append(written, b.Buffer(dag.Buffer{Name: name, Shape: []int{2}, Type: dag.Float32, ViewOf: dag.None}))
		from.Order[i] = append(from.Order[i], b.Task(dag.Task{Name: "write." + name, Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: int64(i + 1)}},
			Accesses: []dag.Access{{Region: dag.Region{Buffer: state}, Mode: dag.Read}, {Region: dag.Region{Buffer: written[i]}, Mode: dag.Write}}}))
	}
	for _, i := range []int{2, 0, 1} {
		reads := []dag.Access{{Region: dag.Region{Buffer: written[i]}, Mode: dag.Read}}
		if i == 1 {
			reads = append(reads, dag.Access{Region: dag.Region{Buffer: state}, Mode: dag.Write})
		}
		from.Order[3] = append(from.Order[3], b.Task(dag.Task{Name: fmt.Sprint("read.", i), Op: "op", Costs: []dag.Cost{{Key: "gpu", Ns: 10}}, Accesses: reads}))
	}
	s := newTestSearch(t, price(t, b, p), from, Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}})
	if is := must.Get(s.judge(from, steadySteps))(t); is.Time != 66 {
		t.Errorf("the simulator says %v", is.Time)
	}
	if span, _ := s.evaluator.worth(s.start); span != 66 {
		t.Errorf("the estimate is %v ns", span)
	}
}
