package improve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// Options say what to look for, and how far.
type Options struct {
	// Objective is what is made small, by the time and the joules of a step.
	Objective func(span time.Duration, joules float64) float64
	Steady    bool          // of a step among many; else of one that runs alone
	Moves     int           // so many changed plans are looked at
	Clocks    [][]int32     // by device: the clocks that tasks may run at; nil, or a nil entry: all
	Seed      uint64        // of the random numbers
	Deadline  time.Duration // a step may take no longer; 0: as long as it likes
}

// Result is the best plan found. Step and Joules are of a step, as simulated.
type Result struct {
	Plan   *schedule.Plan
	Step   time.Duration
	Joules float64
	Value  float64 // of the objective
	Moves  int     // plans looked at
	Kept   int     // those that the search went on from
}

// steadySteps are those of each of the two runs whose difference a result is; a look in between takes few.
const (
	steadySteps = 50
	fewSteps    = 6
)

// Search improves a plan of the first graph of a priced program. The result is no worse than the plan
// that it starts from. When ctx ends it is the best so far.
func Search(ctx context.Context, priced *schedule.Priced, from *schedule.Plan, o Options) (*Result, error) {
	s := &search{ctx: context.WithoutCancel(ctx), done: ctx.Done(), priced: priced, graph: priced.Program.Graphs[0], from: from, options: o, random: rand.New(rand.NewPCG(o.Seed, 0))}
	var err error
	if s.rules, err = newRules(priced, &o); err != nil {
		return nil, err
	}
	if s.start, err = s.pointOf(priced.Platform, from); err != nil {
		return nil, err
	}
	first, err := s.judge(from, steadySteps)
	if err != nil {
		return nil, fmt.Errorf("the plan from which to search: %w", err)
	}
	r := &Result{}
	found, err := s.climb(r)
	if err != nil || found.score >= first.score {
		found = first
	}
	r.Plan, r.Step, r.Joules, r.Value = found.plan, found.span, found.joules, o.Objective(found.span, found.joules)
	return r, nil
}

// search is the state of a search.
type search struct {
	*rules
	ctx     context.Context // of simulations: it does not end
	done    <-chan struct{}
	priced  *schedule.Priced
	graph   *dag.Graph
	from    *schedule.Plan
	start   *point
	options Options
	random  *rand.Rand
}

// climb goes from plan to plan, each no worse than the one before, and judges the last.
func (s *search) climb(r *Result) (judged, error) {
	x, next := newPoint(len(s.graph.Tasks)), newPoint(len(s.graph.Tasks))
	x.copy(s.start)
	best, err := s.judge(s.planOf(x), fewSteps)
	if err != nil {
		return best, err
	}
	for ; r.Moves < s.options.Moves && !s.over(); r.Moves++ {
		next.copy(x)
		s.change(next)
		if now, err := s.judge(s.planOf(next), fewSteps); err == nil && now.score <= best.score {
			best = now
			x, next = next, x
			r.Kept++
		}
	}
	return s.judge(best.plan, steadySteps)
}

// over reports whether there is no time left.
func (s *search) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// change makes one random change: a task moves in the sequence and to another worker, or a task or all tasks like it
// run at another clock.
func (s *search) change(x *point) {
	t := int32(s.random.IntN(len(x.sequence)))
	id := s.deviceOf(x.worker[t])
	if len(s.clocks[id]) > 1 && s.random.IntN(4) == 0 {
		clock, all := pick(s.random, s.clocks[id]), s.random.IntN(2) == 0
		for other := range x.clock {
			if int32(other) == t || all && s.deviceOf(x.worker[other]) == id {
				x.clock[other] = clock
			}
		}
		return
	}
	first, last := s.room(x, t)
	x.insert(t, first+s.random.Int32N(last-first+1))
	s.put(x, t, pick(s.random, s.workers[t]))
}

// put gives a task to a worker, and with it those that are to share its worker.
func (s *search) put(x *point, t int32, w platform.WorkerID) {
	together := s.group[t]
	if together == nil {
		together = []int32{t}
	}
	for _, t := range together {
		x.clock[t] = s.clockOn(s.deviceOf(w), x.clock[t])
		x.worker[t] = w
	}
}
