package simulate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
)

// runPolicy runs one policy of the table.
func runPolicy(t *testing.T, p *schedule.Problem, info schedule.Policy) *schedule.Schedule {
	t.Helper()
	s, err := run(p, byPolicy(t, p, info))
	if err != nil {
		t.Fatalf("%s: %v", info.Doc().Name, err)
	}
	return s
}

func byPolicy(t *testing.T, p *schedule.Problem, info schedule.Policy) how {
	t.Helper()
	if online, ok := info.(policy.Online); ok {
		return how{policy: online}
	}
	plan := must.Get(info.Plan(p))(t)
	return how{plan: plan}
}

// byName writes a schedule with names in place of indices, so that graphs built
// in different orders can be compared.
func byName(p *schedule.Problem, s *schedule.Schedule) string {
	var b strings.Builder
	for _, span := range s.Spans {
		fmt.Fprintln(&b, p.Graph.Tasks[span.Task].Name, span.Step, span.Worker, span.Ready, span.Start, span.End)
	}
	for _, tr := range s.Transfers {
		fmt.Fprintln(&b, p.Graph.Buffers[tr.Buffer].Name, tr.Atoms, tr.From, tr.To, p.Graph.Tasks[tr.For].Name, tr.Step, tr.Start, tr.End)
	}
	fmt.Fprintln(&b, s.Memory, s.PeakBytes, s.Makespan, s.FirstStep, s.Period)
	return b.String()
}

// TestPolicies holds every policy of the table to the same promises on random
// graphs and platforms: the schedule stands up to Check, is no shorter than the
// lower bound, comes out the same twice, and does not depend on the order in
// which independent tasks were added. In one memory there are several copies of some buffers.
func TestPolicies(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		pl := randomPlatform(t, r)
		if seed%2 == 1 {
			vary(t, pl, r)
		}
		tasks := randomGraph(r, pl)
		if len(pl.Memories) == 1 {
			tasks = tasks.inCopies(seed)
		}
		if seed%3 == 0 { // then the memory of every task is known beforehand
			for i := range tasks.tasks {
				task := &tasks.tasks[i]
				k := r.IntN(len(task.Costs))
				task.Costs, task.Placement = task.Costs[k:k+1], nil
			}
		}
		g := tasks.build(t, inOrder(len(tasks.tasks)))
		p := problem(t, g, pl, 1+int(seed%24))
		shuffled := problem(t, tasks.build(t, otherOrder(r, g)), pl, p.Steps)
		for _, info := range policy.All() {
			s := runPolicy(t, p, info)
			if err := audit.Check(s, p); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, info.Doc().Name, err)
			}
			if bound := lowerBound(t, p); s.Makespan < bound {
				t.Fatalf("seed %d, %s: makespan %v is below the bound %v", seed, info.Doc().Name, s.Makespan, bound)
			}
			first := byName(p, s)
			if again := byName(p, runPolicy(t, p, info)); again != first {
				t.Fatalf("seed %d, %s: a second run differs", seed, info.Doc().Name)
			}
			if other := byName(shuffled, runPolicy(t, shuffled, info)); other != first {
				t.Fatalf("seed %d, %s: built in another order it differs:\n%s\n%s", seed, info.Doc().Name, first, other)
			}
		}
	}
}
