package pipeline

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"dahl/dag"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
)

// Options say how long to search.
type Options struct {
	Nodes     int    // a simulated task is one, and a few moves of local search
	Seed      uint64 // of random moves
	Steps     int    // of a run in which a plan is timed, at least; it is timed in one twice as long, too
	Evaluator *plan.Evaluator
}

// Result is the plan of the shortest steady step that was found.
type Result struct {
	*plan.Evaluated
	Step  plan.Step
	Bound time.Duration // no plan has shorter steps in the mean over ever more, with lags or without
	Nodes int
}

// stretches are the times of transfers with which plans are tried, in percent of their time on an idle route.
var stretches = []int64{100, Stretched, 2 * Stretched}

// longRun is how many steps the result is told in, and closeEnough the part of the bound by which it may be above it to be looked for no longer.
const longRun, closeEnough = 100, 1e-3

// mostLag bounds the steps in progress: a run of hundreds of steps is mostly steady then.
const mostLag = 24

// movesPerGroup bounds the moves of one search.
const movesPerGroup = 2000

// movesPerNode is how many moves of local search take about as long as a simulated task.
const movesPerNode = 16

// aims are how far from the bound to the best plan so far local search looks, each time that it begins anew.
var aims = [...]float64{0, 0.5, 0, 0.75, 0, 0.25, 0, 0.5}

// Search looks for the plan with the shortest steady step, beginning with some plans. It is no worse than the best of these.
func Search(ctx context.Context, priced *schedule.Priced, seeds []*schedule.Plan, o Options) (*Result, error) {
	m, err := New(priced.Problem(0, 1))
	if err != nil {
		return nil, err
	}
	s := &search{Model: m, Options: o, priced: priced, result: &Result{Bound: meanBound(priced)}}
	var places [][]platform.WorkerID
	for _, seed := range seeds {
		s.try(ctx, seed)
		if workers := m.workersOf(seed); workers != nil {
			places = append(places, workers)
		}
	}
	if apart := m.byMinibatch(); apart != nil {
		places = append(places, apart)
	}
	for _, workers := range places {
		s.tryPlaced(ctx, workers)
	}
	cost := func(workers []platform.WorkerID) float64 { return m.newLoads(workers, float64(s.result.Bound)).cost() }
	slices.SortStableFunc(places, func(a, b []platform.WorkerID) int { return cmp.Compare(cost(a), cost(b)) })
	for round := range len(aims) * min(1, len(places)) {
		if s.over(ctx) || s.result.Evaluated != nil && float64(s.result.Step.Time) <= (1+closeEnough)*float64(s.result.Bound) {
			break
		}
		r, aim := rand.New(rand.NewPCG(o.Seed, uint64(round))), float64(s.result.Bound)
		if s.result.Evaluated != nil {
			aim += (float64(s.result.Step.Time) - aim) * aims[round]
		}
		s.tryPlaced(ctx, s.climb(ctx, places[round%len(places)], aim, r))
	}
	if s.result.Evaluated == nil {
		return nil, s.err
	}
	if step, err := s.result.Evaluated.Step(ctx, true, longRun); err == nil {
		s.result.Step = step
	}
	return s.result, ctx.Err()
}

// search is a search in progress.
type search struct {
	*Model
	Options
	priced *schedule.Priced
	result *Result
	err    error // of the last plan that cannot run
}

func (s *search) over(ctx context.Context) bool {
	return ctx.Err() != nil || s.result.Nodes >= s.Nodes
}

// meanBound is a bound of the mean over ever more steps.
func meanBound(priced *schedule.Priced) time.Duration {
	const steps = 1 << 12
	return priced.LowerBound(0, 2*steps)/steps - priced.LowerBound(0, steps)/steps
}

// tryPlaced tries plans for tasks that have a place.
func (s *search) tryPlaced(ctx context.Context, workers []platform.WorkerID) {
	for _, stretched := range stretches {
		if of := s.Plan(workers, stretched); of.Lags == nil || slices.Max(of.Lags) <= mostLag {
			s.try(ctx, of)
		}
	}
}

// try simulates a plan, and keeps it if it is the best.
func (s *search) try(ctx context.Context, of *schedule.Plan) {
	e, err := s.Evaluator.Plan(s.priced, of)
	if err == nil {
		var step plan.Step
		lag := 0
		if of.Lags != nil {
			lag = int(slices.Max(of.Lags))
		}
		if step, err = e.Step(ctx, true, max(s.Steps, 2*lag)); err == nil && (s.result.Evaluated == nil || step.Time < s.result.Step.Time) {
			s.result.Evaluated, s.result.Step = e, step
		}
	}
	if err != nil {
		s.err = err
	}
	s.result.Nodes += max(16, len(s.g.Tasks)) // as the other searches count
}

// workersOf are the workers of the tasks of a plan; nil means it leaves some out.
func (m *Model) workersOf(plan *schedule.Plan) []platform.WorkerID {
	workers := slices.Repeat([]platform.WorkerID{-1}, len(m.g.Tasks))
	for w, list := range plan.Order {
		for _, t := range list {
			workers[t] = platform.WorkerID(w)
		}
	}
	if slices.Contains(workers, -1) {
		return nil
	}
	return workers
}

// byMinibatch gives each mini-batch a worker that can run all tasks, in turn; nil means there is one mini-batch, or no such worker.
func (m *Model) byMinibatch() []platform.WorkerID {
	var all []platform.WorkerID
	for _, processors := range []bool{false, true} {
		for w := range m.p.Platform.Workers {
			can := m.p.Platform.Devices[m.p.Platform.Workers[w].Device].IsProcessor() == processors && (len(all) == 0 || !processors)
			for t := range dag.TaskID(len(m.g.Tasks)) {
				can = can && m.fit.CanRun(t, platform.WorkerID(w))
			}
			if can {
				all = append(all, platform.WorkerID(w))
			}
		}
	}
	workers, several := make([]platform.WorkerID, len(m.g.Tasks)), false
	for t := range m.g.Tasks {
		part := int(m.g.Tasks[t].Labels.MicroBatch)
		several = several || part > 0
		if len(all) > 0 {
			workers[t] = all[part%len(all)]
		}
	}
	if !several || len(all) < 2 {
		return nil
	}
	return workers
}

// climb moves groups of tasks between workers. A place is the better the less the workers and links have to do beyond an aim, by the sum of squares,
// and the fewer contents move: each delays a step. The first aim is the bound, and others are nearer to the best plan so far. On slow links no
// place is near the bound. One with some more than it everywhere is then no better than one with idle workers.
// Late acceptance keeps a place that is no worse than the one some moves before (Burke, Bykov, The late acceptance hill-climbing
// heuristic, European Journal of Operational Research 2017).
func (s *search) climb(ctx context.Context, from []platform.WorkerID, aim float64, r *rand.Rand) []platform.WorkerID {
	l := s.newLoads(from, aim)
	const history = 500
	late := slices.Repeat([]float64{l.cost()}, history)
	best, least := slices.Clone(l.workers), l.cost()
	nodes := max(1, (s.Nodes-s.result.Nodes)/4)
	const eachLook = 1 << 12
	moves := min(movesPerNode*nodes, movesPerGroup*len(l.groups))
	for i := range moves {
		if i%eachLook == 0 && ctx.Err() != nil {
			break
		}
		before := l.cost()
		undo := l.change(r)
		if undo == nil {
			continue
		}
		now := l.cost()
		if now > before && now > late[i%history] {
			undo()
			now = before
		} else if now < least {
			copy(best, l.workers)
			least = now
		}
		late[i%history] = min(late[i%history], now)
	}
	s.result.Nodes += moves / movesPerNode
	return best
}

// loads are the work of workers and links in a step, for tasks with places that change.
type loads struct {
	*Model
	workers []platform.WorkerID
	groups  [][]dag.TaskID // tasks that share a worker
	pieces  [][]int32      // by group: pieces that its tasks write or read
	load    []float64      // workers, then links by direction
	room    []float64      // by memory: bytes that are kept beyond its capacity, if above 0
	hops    int            // movements in a step
	bound   float64
}

func (m *Model) newLoads(from []platform.WorkerID, bound float64) *loads {
	l := &loads{Model: m, workers: slices.Clone(from), load: make([]float64, len(m.p.Platform.Workers)+2*len(m.p.Platform.Links)), bound: max(1, bound)}
	for i := range m.p.Platform.Memories {
		capacity := float64(m.p.Platform.Memories[i].CapacityBytes)
		if capacity == 0 {
			capacity = math.Inf(1)
		}
		l.room = append(l.room, -capacity)
	}
	at := map[string]int{}
	for t := range m.g.Tasks {
		key := "task " + m.g.Tasks[t].Name
		if p := m.g.Tasks[t].Placement; p != nil && p.Colocate != "" {
			key = "group " + p.Colocate
		}
		if _, ok := at[key]; !ok {
			at[key] = len(l.groups)
			l.groups, l.pieces = append(l.groups, nil), append(l.pieces, nil)
		}
		g := at[key]
		l.groups[g] = append(l.groups[g], dag.TaskID(t))
		touched := slices.Clone(m.Written[t])
		for _, r := range m.Reads[t] {
			touched = append(touched, r.Of)
		}
		for _, piece := range touched {
			if !slices.Contains(l.pieces[g], piece) && int(m.Pieces[piece].Writer) < len(from) {
				l.pieces[g] = append(l.pieces[g], piece)
			}
		}
		l.work(dag.TaskID(t), 1)
	}
	for i := range m.Pieces {
		l.carry(int32(i), 1)
	}
	return l
}

// work adds the time of a task to its worker, and the bytes that it keeps to its memory.
func (l *loads) work(t dag.TaskID, sign float64) {
	w := l.workers[t]
	l.load[w] += sign * float64(l.takes(t, w))
	for _, a := range l.g.Tasks[t].Accesses {
		if b := &l.g.Buffers[a.Buffer]; b.Role == dag.State || b.Role == dag.Parameter {
			l.room[l.p.Platform.MemoryOf(w)] += sign * float64(b.Bytes())
		}
	}
}

// carry adds the movements of a piece to the links.
func (l *loads) carry(piece int32, sign float64) {
	is := &l.Pieces[piece]
	l.eachHop(is, l.workers, func(from, to platform.MemoryID) {
		l.hops += int(sign)
		for _, share := range l.Ways[from][to].Shares {
			l.load[len(l.p.Platform.Workers)+int(share.Link)] += sign * share.NsPerByte * float64(is.Bytes)
		}
	})
}

// ofHop is the part of the bound by which one worker may have more to do for a movement less.
const ofHop = 3e-3

// cost is the sum of squares of the parts of the bound, and of memories, that are too much, and the price of movements.
func (l *loads) cost() float64 {
	sum := ofHop * ofHop * float64(l.hops)
	for _, ns := range l.load {
		over := max(0, ns/l.bound-1)
		sum += over * over
	}
	for m, bytes := range l.room {
		if bytes > 0 {
			over := 1 + bytes/float64(l.p.Platform.Memories[m].CapacityBytes)
			sum += over * over
		}
	}
	return sum
}

// change moves a group at random to another worker, or exchanges two. Nil means that it cannot; else the result takes the change back.
func (l *loads) change(r *rand.Rand) (undo func()) {
	a := r.IntN(len(l.groups))
	was := l.workers[l.groups[a][0]]
	if r.IntN(2) == 0 {
		b := r.IntN(len(l.groups))
		to := l.workers[l.groups[b][0]]
		if to == was || !l.allowed(a, to) || !l.allowed(b, was) {
			return nil
		}
		l.move(a, to)
		l.move(b, was)
		return func() { l.move(b, to); l.move(a, was) }
	}
	to := platform.WorkerID(r.IntN(len(l.p.Platform.Workers)))
	if r.IntN(2) == 0 && len(l.pieces[a]) > 0 { // to a neighbour
		piece := &l.Pieces[l.pieces[a][r.IntN(len(l.pieces[a]))]]
		to = l.workers[piece.Writer]
		if to == was && len(piece.Readers) > 0 {
			to = l.workers[piece.Readers[r.IntN(len(piece.Readers))].Of]
		}
	}
	if to == was || !l.allowed(a, to) {
		return nil
	}
	l.move(a, to)
	return func() { l.move(a, was) }
}

func (l *loads) allowed(group int, w platform.WorkerID) bool {
	return !slices.ContainsFunc(l.groups[group], func(t dag.TaskID) bool { return !l.fit.CanRun(t, w) })
}

func (l *loads) move(group int, to platform.WorkerID) {
	for _, piece := range l.pieces[group] {
		l.carry(piece, -1)
	}
	for _, t := range l.groups[group] {
		l.work(t, -1)
		l.workers[t] = to
		l.work(t, 1)
	}
	for _, piece := range l.pieces[group] {
		l.carry(piece, 1)
	}
}
