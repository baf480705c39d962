package audit

import (
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/schedule"
	"dahl/schedule/place"
)

// Follows verifies that every worker ran its list of the plan, period after period. [FollowsTransfers] does so for
// transfers. p is the problem of schedule and plan.
func Follows(s *schedule.Schedule, p *schedule.Problem, plan *schedule.Plan) error {
	ran := make([][]dag.Instance, len(p.Platform.Workers))
	for _, span := range s.Spans {
		ran[span.Worker] = append(ran[span.Worker], dag.Instance{Task: span.Task, Step: span.Step})
	}
	for w, list := range plan.Order {
		want := planned(list, s.Steps, plan.Lags)
		for i, is := range ran[w] {
			if i == len(want) {
				return fmt.Errorf("worker %q ran task %q, and the plan gives it none", p.Platform.Workers[w].Name, p.Graph.Tasks[is.Task].Name)
			}
			if want := want[i]; is != want {
				return fmt.Errorf("worker %q ran task %q of step %d where the plan has %q of step %d", p.Platform.Workers[w].Name,
					p.Graph.Tasks[is.Task].Name, is.Step, p.Graph.Tasks[want.Task].Name, want.Step)
			}
		}
		if n := len(list) * s.Steps; len(ran[w]) != n {
			return fmt.Errorf("worker %q ran %d tasks, the plan has %d", p.Platform.Workers[w].Name, len(ran[w]), n)
		}
	}
	return nil
}

// planned lists what a worker or an engine runs in some steps: in each period its list, without instances beyond the steps. Lags of nil mean that a
// period is a step.
func planned(list []dag.TaskID, steps int, lags []int32) (all []dag.Instance) {
	for period := range int32(steps) + slices.Max(append([]int32{0}, lags...)) {
		for _, t := range list {
			step := period
			if lags != nil {
				step -= lags[t]
			}
			if step >= 0 && int(step) < steps {
				all = append(all, dag.Instance{Task: t, Step: step})
			}
		}
	}
	return all
}

// FollowsTransfers verifies that a schedule of the origin has exactly the transfers of a placed graph: the moves
// before the first step, the transfers of each engine in the order of its list in every step, and the transfers
// without an engine.
func FollowsTransfers(s *schedule.Schedule, placed *place.Program, graph int) error {
	pg := placed.Graphs[graph]
	made := map[schedule.TransferKey][]*schedule.Transfer{} // by start
	for i := range s.Transfers {
		t := &s.Transfers[i]
		made[t.Key()] = append(made[t.Key()], t)
	}
	for _, m := range pg.Enter {
		if t := schedule.TransferOf(m, 0, schedule.Interval{}); !m.Anywhere && take(made, t.Key(), 0) == nil {
			return fmt.Errorf("before the first step %s do not move from memory %q to %q, as the plan has it", sized(pg, m), placed.Platform.Memories[m.From].Name, placed.Platform.Memories[m.To].Name)
		}
	}
	for l := len(placed.Platform.Workers); l < len(placed.Lanes); l++ {
		if err := takeAll(made, pg, placed.Lanes[l].Name, pg.Order[l], s.Steps); err != nil {
			return err
		}
	}
	if err := takeAll(made, pg, "", pg.Unlaned(), s.Steps); err != nil {
		return err
	}
	for _, left := range made {
		for _, t := range left {
			return fmt.Errorf("%d bytes of %q move from memory %q to %q in step %d at %v, which is not in the plan",
				t.Bytes, pg.Origin.Buffers[t.Buffer].Name, placed.Platform.Memories[t.From].Name, placed.Platform.Memories[t.To].Name, t.Step, t.Start)
		}
	}
	return nil
}

// takeAll takes the transfers of a list out of made. An engine makes them in its order.
func takeAll(made map[schedule.TransferKey][]*schedule.Transfer, pg *place.Graph, engine string, list []dag.TaskID, steps int) error {
	var free time.Duration
	lags := make([]int32, pg.NumTasks())
	for t := range lags {
		lags[t] = pg.Lag(dag.TaskID(t))
	}
	for _, i := range planned(list, steps, lags) {
		m := pg.Move(i.Task)
		if m.Anywhere {
			continue
		}
		want := schedule.TransferOf(m, m.StepOf(i.Step, steps), schedule.Interval{})
		switch is := take(made, want.Key(), free); {
		case is == nil && engine == "":
			return fmt.Errorf("%q of step %d is not made", pg.Name(i.Task), i.Step)
		case is == nil:
			return fmt.Errorf("engine %q: %q of step %d is not made at or after %v, when the transfer before it in the plan has ended", engine, pg.Name(i.Task), i.Step, free)
		case engine != "":
			free = is.End
		}
	}
	return nil
}

// take removes the first transfer of a key that starts at a time or later; nil means none does.
func take(made map[schedule.TransferKey][]*schedule.Transfer, key schedule.TransferKey, from time.Duration) *schedule.Transfer {
	list := made[key]
	i := slices.IndexFunc(list, func(t *schedule.Transfer) bool { return t.Start >= from })
	if i < 0 {
		return nil
	}
	t := list[i]
	if made[key] = slices.Delete(list, i, i+1); len(list) == 1 {
		delete(made, key)
	}
	return t
}

// sized names a move by its bytes and its buffer.
func sized(pg *place.Graph, m *place.Move) string {
	return fmt.Sprintf("%d bytes of %q", m.Bytes, pg.Origin.Buffers[m.Buffer].Name)
}
