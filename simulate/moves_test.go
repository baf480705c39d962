package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
)

// moves writes transfers and evictions in the order of their times, as
// "x fetch 0-50" and "x leaves 120".
func moves(p *schedule.Problem, s *schedule.Schedule) string {
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	for _, e := range s.Evictions {
		lines = append(lines, line{e.At, fmt.Sprintf("%s leaves %d", p.Graph.Buffers[e.Buffer].Name, e.At)})
	}
	for _, t := range s.Transfers {
		lines = append(lines, line{t.Start, fmt.Sprintf("%s %s %d-%d", p.Graph.Buffers[t.Buffer].Name, t.Reason, t.Start, t.End)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	var all []string
	for _, l := range lines {
		all = append(all, l.text)
	}
	return strings.Join(all, ", ")
}

// onGPU is a graph of tasks of 10 ns on the gpu that run in order of their names. Each
// is given as its operands: a name in capitals is one that it reads and writes, and all
// are of 40 bytes and at home in ram.
func onGPU(t *testing.T, tasks ...string) *dag.Graph {
	b := dag.NewBuilder("on the gpu")
	buffers := map[string]dag.BufferID{}
	for i, operands := range tasks {
		task := dag.Task{Name: string(rune('a' + i)), Costs: []dag.Cost{{Key: "gpu", Ns: 10}}}
		for _, r := range operands {
			name, mode := strings.ToLower(string(r)), dag.Read
			if string(r) != name {
				mode = dag.ReadWrite
			}
			if _, ok := buffers[name]; !ok {
				buffers[name] = b.Buffer(dag.Buffer{Name: name, Shape: []int{40}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
			}
			task.Accesses = append(task.Accesses, whole(buffers[name], mode))
		}
		b.Task(task)
	}
	g := must.Get(b.Build())(t)
	return g
}

// runPlan does so with a plan.
func runPlan(t *testing.T, p *schedule.Problem, plan *schedule.Plan) *schedule.Schedule {
	t.Helper()
	s, err := run(p, how{plan: plan})
	if err == nil {
		err = audit.Check(s, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func runChecked(t *testing.T, p *schedule.Problem, policy policy.Online) *schedule.Schedule {
	t.Helper()
	s := must.Get(run(p, how{policy: policy}))(t)
	must.Do(t, audit.Check(s, p))
	return s
}
