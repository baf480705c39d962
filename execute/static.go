package execute

import (
	"fmt"

	"dahl/dag"
)

// replay is a plan compiled for lanes: workers and copy engines. It is built once and run many
// times. What the comments below say of workers holds for all lanes.
type replay struct {
	lists  [][]item // by lane
	waits  []wait   // the waits of all items
	maxLag int32    // the greatest one of an item

	watched []watched // lanes for whose counts other ranks wait
}

// item is one task of a worker's list and the waits before it. In period k the task works on step k - lag.
type item struct {
	task, lag          int32
	firstWait, endWait int32
}

// wait holds a worker until another one has ended enough tasks: in period k,
// need + k·length.
type wait struct {
	worker int32
	need   int64
	length int64 // tasks of that worker per period
}

// position is where a plan puts a task.
type position struct{ worker, index int32 }

// compileReplay turns the lists of a plan into lists with waits. The orders come from the graph
// and from the sharing of bytes, by the number of steps between the two tasks. A worker goes through its list once in each
// period, which is a step, but for tasks with a lag.
func compileReplay(g *dag.Graph, lists [][]dag.TaskID, orders [][]dag.Edge, lanes int, lag func(dag.TaskID) int32) (*replay, error) {
	at, err := positions(g, lists, lanes)
	if err != nil {
		return nil, err
	}
	into := predecessors(g, orders)
	r := &replay{lists: make([][]item, lanes)}
	for t := range g.Tasks {
		r.maxLag = max(r.maxLag, lag(dag.TaskID(t)))
	}
	for w, order := range lists {
		var c vectorClock
		c.reset(w, lists, int64(g.Reach()+r.maxLag))
		// The first pass finds the waits of the whole list. The second pass knows them from the
		// step before.
		for pass := range 2 {
			r.lists[w] = make([]item, 0, len(order))
			first := len(r.waits)
			for i, t := range order {
				it := item{task: int32(t), lag: lag(t), firstWait: int32(len(r.waits))}
				into(t, func(back int32, preds []int32) {
					for _, p := range preds {
						c.follow(at[p], int64(back+it.lag-lag(dag.TaskID(p))))
					}
				})
				if need := c.need[w]; need > int64(i) {
					return nil, fmt.Errorf("the plan cannot run: worker %d has task %q before %q, which it follows",
						w, g.Tasks[t].Name, g.Tasks[order[need-1]].Name)
				}
				r.waits = c.addWaits(r.waits)
				it.endWait = int32(len(r.waits))
				r.lists[w] = append(r.lists[w], it)
			}
			if pass == 0 {
				c.wrap()
				r.waits = r.waits[:first]
			}
		}
	}
	return r, r.checkProgress(g)
}

// positions finds every task in the plan exactly once.
func positions(g *dag.Graph, lists [][]dag.TaskID, lanes int) ([]position, error) {
	if len(lists) > lanes {
		return nil, fmt.Errorf("the plan has lists for %d workers, the platform has %d", len(lists), lanes)
	}
	at := make([]position, len(g.Tasks))
	for t := range at {
		at[t].worker = -1
	}
	for w, order := range lists {
		for i, t := range order {
			if t < 0 || int(t) >= len(at) {
				return nil, fmt.Errorf("the plan names task %d; there are %d", t, len(at))
			}
			if at[t].worker >= 0 {
				return nil, fmt.Errorf("the plan names task %q twice", g.Tasks[t].Name)
			}
			at[t] = position{int32(w), int32(i)}
		}
	}
	for t := range at {
		if at[t].worker < 0 {
			return nil, fmt.Errorf("the plan does not name task %q", g.Tasks[t].Name)
		}
	}
	return at, nil
}

// predecessors visits what a task follows, by the graph and by orders: lists of tasks, with how many
// steps back they are.
func predecessors(g *dag.Graph, orders [][]dag.Edge) func(t dag.TaskID, visit func(back int32, preds []int32)) {
	var into []dag.Rows
	for _, edges := range orders {
		into = append(into, dag.NewRows(len(g.Tasks), dag.Turn(edges)))
	}
	return func(t dag.TaskID, visit func(int32, []int32)) {
		for back := range g.Reach() + 1 {
			for _, preds := range g.PredsBack(t, back) {
				visit(back, preds)
			}
		}
		for back := range into {
			visit(int32(back), into[back].Row(int32(t)))
		}
	}
}

// vectorClock holds the counts of all workers as one worker knows them at a place in its list. Counts
// are relative to the current period.
type vectorClock struct {
	self        int
	length      []int64 // tasks per period, by worker
	established []int64 // counts that earlier waits have established
	need        []int64 // counts that the tasks so far need
}

func (c *vectorClock) reset(self int, order [][]dag.TaskID, reach int64) {
	c.self = self
	c.length = make([]int64, len(order))
	c.established = make([]int64, len(order))
	c.need = make([]int64, len(order))
	for w := range order {
		c.length[w] = int64(len(order[w]))
		// Nothing is known yet. No count below is ever needed.
		c.established[w] = -(reach + 1) * c.length[w]
	}
	copy(c.need, c.established)
}

// follow raises the needs of the current task to the end of one at a position, a number of periods ago.
func (c *vectorClock) follow(at position, periods int64) {
	w := at.worker
	c.need[w] = max(c.need[w], int64(at.index)+1-periods*c.length[w])
}

// addWaits appends a wait for every need that is not known to be met.
func (c *vectorClock) addWaits(waits []wait) []wait {
	for w, need := range c.need {
		if need <= c.established[w] {
			continue
		}
		c.established[w] = need
		if w != c.self {
			waits = append(waits, wait{worker: int32(w), need: need, length: c.length[w]})
		}
	}
	return waits
}

// wrap begins the next period: all knowledge is one period older.
func (c *vectorClock) wrap() {
	for w := range c.established {
		c.established[w] -= c.length[w]
		c.need[w] = c.established[w]
	}
}

// checkProgress runs through the lists once, without time, and reports a task at which they would
// wait for each other. Waits for the previous period cannot close a circle, so one period is enough.
func (r *replay) checkProgress(g *dag.Graph) error {
	done := make([]int64, len(r.lists))
	for {
		moved, finished := false, true
		for w, list := range r.lists {
			for done[w] < int64(len(list)) && r.unmet(&list[done[w]], done) == nil {
				done[w]++
				moved = true
			}
			finished = finished && done[w] == int64(len(list))
		}
		if finished {
			return nil
		}
		if !moved {
			return r.stuck(g, done)
		}
	}
}

// unmet is a wait before an item that holds its worker. Nil means that there is none.
func (r *replay) unmet(it *item, done []int64) *wait {
	for i := it.firstWait; i < it.endWait; i++ {
		if wt := &r.waits[i]; done[wt.worker] < wt.need {
			return wt
		}
	}
	return nil
}

// stuck names a task that cannot start and the place it waits for.
func (r *replay) stuck(g *dag.Graph, done []int64) error {
	for w, list := range r.lists {
		if done[w] < int64(len(list)) {
			it := &list[done[w]]
			wt := r.unmet(it, done)
			return fmt.Errorf("the plan cannot run: on worker %d task %q waits for task %q of worker %d, which waits in turn",
				w, g.Tasks[it.task].Name, g.Tasks[r.lists[wt.worker][wt.need-1].task].Name, wt.worker)
		}
	}
	panic("execute: a plan that runs is stuck")
}
