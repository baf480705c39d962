package simulate

import (
	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
)

// listRun is a run that follows a plan. As in an execution, every lane of the placed graph runs
// its list, and transfers between memories are tasks like others.
type listRun struct {
	*simulation
	lists  *schedule.Lists
	placed *place.Graph
	runs   []schedule.ListItem // by worker
	copies []schedule.ListItem // by started transfer
	items  []schedule.ListItem
}

func newListRun(s *simulation, d *schedule.Decision, graph int) *listRun {
	r := &listRun{simulation: s, lists: d.NewLists(graph, s.p.Steps, s.opt.Timed), placed: d.Graphs[graph].Placed,
		runs: make([]schedule.ListItem, len(s.p.Platform.Workers))}
	s.pace = r.lists.Pace()
	copies := len(r.placed.Enter) + s.p.Steps*(r.placed.NumTasks()-len(s.p.Graph.Tasks))
	r.copies, s.moving, s.out.Transfers = make([]schedule.ListItem, 0, copies), make([]moving, 0, copies), make([]schedule.Transfer, 0, copies)
	return r
}

func (r *listRun) start()         { r.begin(r.lists.Start(r.items[:0])) }
func (r *listRun) err() error     { return nil }
func (r *listRun) finished() bool { return r.lists.Finished() }

func (r *listRun) taskEnds(worker int32) {
	r.begin(r.lists.Ended(r.runs[worker], r.now, r.items[:0]))
}

func (r *listRun) copyEnds(copy int32) {
	r.begin(r.lists.Ended(r.copies[copy], r.now, r.items[:0]))
}

// begin starts the items.
func (r *listRun) begin(items []schedule.ListItem) {
	r.items = items
	for _, item := range items {
		if item.Enter >= 0 {
			r.move(item, r.placed.Enter[item.Enter], 0)
		} else if m := r.placed.Move(item.Task.Task); m != nil {
			r.move(item, m, m.StepOf(item.Task.Step, r.p.Steps))
		} else {
			r.runs[item.Lane] = item
			origin := dag.Instance{Task: r.placed.TaskOf(item.Task.Task), Step: item.Task.Step}
			r.task(origin, item.Task, platform.WorkerID(item.Lane), r.lists.ReadyAt(item.Task))
		}
	}
}

// move starts a transfer for a task of some step.
func (r *listRun) move(item schedule.ListItem, m *place.Move, step int32) {
	r.copies = append(r.copies, item)
	id, t := int32(len(r.copies)-1), schedule.TransferOf(m, step, schedule.Interval{Start: r.now})
	if m.Anywhere { // no transfer of the schedule
		r.simulation.move(id, t)
		return
	}
	r.transfer(id, t)
}

// complete makes the schedule of the origin. That takes room itself, so it first leaves the state of the run to the
// garbage collector.
func (r *listRun) complete() (*schedule.Schedule, error) {
	if r.states != nil { // transfers may have passed each other
		inOrder := make([]schedule.ListItem, len(r.copies))
		for i, item := range r.copies {
			inOrder[r.moving[i].transfer] = item
		}
		r.copies = inOrder
	}
	r.lists, r.pace, r.events, r.moving = nil, nil, nil, nil
	if r.opt.TimesOnly {
		r.out.CompletePlacedTimes(r.p, r.placed, r.copies)
		return r.out, nil
	}
	return r.out, r.out.CompletePlaced(r.p, r.placed, r.copies)
}
