package pipeline

import (
	"cmp"
	"math"
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
)

// slots are the times of tasks in a period, and the lags that follow.
type slots struct {
	*Model
	workers []platform.WorkerID
	lists   [][]dag.TaskID
	period  int64
	stretch int64   // of transfers, in percent
	offset  []int64 // by task: in the list of its worker
	phase   []int64 // by worker: when its list begins
	start   []int64 // by task, in step 0
}

// firsts are the phases of a training in which a worker runs its tasks. A mini-batch goes through them as a whole; updates of weights come last.
var firsts = []string{"", "forward", "backward"}

// Stretched is how long transfers are taken to be where nobody simulates, in percent of their time on an idle route.
const Stretched = 300

// Plan plans tasks that have a place, with lags where the graph lets steps overlap. Transfers are taken to be as long as some percent of their time
// on an idle route. More let more steps overlap, and leave time for waits.
func (m *Model) Plan(workers []platform.WorkerID, stretched int64) *schedule.Plan {
	s := &slots{Model: m, workers: workers, period: m.Period(workers), stretch: stretched, offset: make([]int64, len(workers)), start: make([]int64, len(workers))}
	s.list()
	s.choosePhases()
	s.sort()
	plan := &schedule.Plan{Policy: "pipeline", GraphHash: m.g.Hash(), Order: s.lists, Lags: make([]int32, len(workers))}
	least := slices.Min(append([]int64{math.MaxInt64}, s.start...)) / s.period
	for t, start := range s.start {
		plan.Lags[t] = int32(start/s.period - least)
	}
	counts := s.versions()
	if with, err := m.g.WithVersions(counts); err == nil {
		problem := *m.p
		problem.Graph = with
		if plan.Check(&problem) == nil {
			plan.Versions = s.planned(counts)
			if slices.Max(plan.Lags) == 0 {
				plan.Lags = nil
			}
			return plan
		}
	}
	return m.inTurn(workers)
}

// inTurn is the plan without lags, whose workers run their tasks in program order.
func (m *Model) inTurn(workers []platform.WorkerID) *schedule.Plan {
	plan := &schedule.Plan{Policy: "pipeline", GraphHash: m.g.Hash(), Order: make([][]dag.TaskID, len(m.p.Platform.Workers))}
	for t, w := range workers {
		plan.Order[w] = append(plan.Order[w], dag.TaskID(t))
	}
	return plan
}

// list orders the tasks of each worker: by mini-batch, then forward before backward, then as in the program. Updates come last.
func (s *slots) list() {
	s.lists = s.inTurn(s.workers).Order
	key := func(t dag.TaskID) (last bool, part int32, phase int) {
		l := &s.g.Tasks[t].Labels
		phase = slices.Index(firsts, l.Phase)
		if phase < 0 {
			return true, 0, 0
		}
		return false, l.MicroBatch, phase
	}
	for _, list := range s.lists {
		slices.SortStableFunc(list, func(a, b dag.TaskID) int {
			lastA, partA, phaseA := key(a)
			lastB, partB, phaseB := key(b)
			if lastA != lastB {
				if lastB {
					return -1
				}
				return 1
			}
			return cmp.Or(cmp.Compare(partA, partB), cmp.Compare(phaseA, phaseB), cmp.Compare(a, b))
		})
		at := int64(0)
		for _, t := range list {
			s.offset[t] = at
			at += s.takes(t, s.workers[t])
		}
	}
}

// sort orders the lists by the times in a period. Of tasks without a duration at one time the one of the earlier step goes first. So a period
// goes through its tasks in the order of their times, whatever the phases are.
func (s *slots) sort() {
	for w, list := range s.lists {
		lasts := func(t dag.TaskID) int { return min(1, int(s.takes(t, platform.WorkerID(w)))) }
		slices.SortStableFunc(list, func(a, b dag.TaskID) int {
			return cmp.Or(cmp.Compare(s.start[a]%s.period, s.start[b]%s.period), cmp.Compare(lasts(a), lasts(b)), cmp.Compare(s.start[b], s.start[a]), cmp.Compare(a, b))
		})
	}
}

// choosePhases lets each list begin when its first task can start, and then at other times as long as fewer bytes wait for later periods.
func (s *slots) choosePhases() {
	s.phase = make([]int64, len(s.lists))
	known := make([]bool, len(s.lists))
	for t, w := range s.workers {
		if !known[w] {
			known[w], s.phase[w] = true, s.ready(dag.TaskID(t))-s.offset[t]
		}
		s.put(dag.TaskID(t))
	}
	const rounds = 3
	best := s.kept()
	for range rounds {
		before := best
		for w := range s.lists {
			for _, t := range s.begins(s.lists[w]) {
				was := s.phase[w]
				s.phase[w] = s.ready(t) - s.offset[t]
				s.putAll()
				if now := s.kept(); now < best {
					best = now
					continue
				}
				s.phase[w] = was
				s.putAll()
			}
		}
		if best == before {
			return
		}
	}
}

// begins are the tasks of a list with which a mini-batch or a phase begins.
func (s *slots) begins(list []dag.TaskID) (all []dag.TaskID) {
	for i, t := range list {
		l := s.g.Tasks[t].Labels
		if i == 0 || l.Phase != s.g.Tasks[list[i-1]].Labels.Phase || l.MicroBatch != s.g.Tasks[list[i-1]].Labels.MicroBatch {
			all = append(all, t)
		}
	}
	return all
}

// put finds the first time of a task that is not before it can start. A task without a duration runs at any time between two others.
func (s *slots) put(t dag.TaskID) {
	w, ready := s.workers[t], s.ready(t)
	if s.takes(t, w) == 0 {
		s.offset[t] = ((ready-s.phase[w])%s.period + s.period) % s.period
		for _, other := range s.lists[w] {
			if from, takes := s.offset[other], s.takes(other, w); takes > 0 && from < s.offset[t] && s.offset[t] < from+takes {
				s.offset[t] = from + takes
				break
			}
		}
	}
	s.start[t] = s.phase[w] + s.offset[t]
	if late := ready - s.start[t]; late > 0 {
		s.start[t] += (late + s.period - 1) / s.period * s.period
	}
}

func (s *slots) putAll() {
	for t := range s.workers { // program order keeps the dependences
		s.put(dag.TaskID(t))
	}
}

func (s *slots) end(t int32) int64 { return s.start[t] + s.takes(dag.TaskID(t), s.workers[t]) }

// ready is when the operands of a task have arrived, and the tasks before it in its step have ended.
func (s *slots) ready(t dag.TaskID) (at int64) {
	for _, before := range s.g.Preds(t) {
		at = max(at, s.end(before))
	}
	for _, r := range s.Reads[t] {
		if piece := &s.Pieces[r.Of]; r.Back == 0 && int(piece.Writer) < len(s.workers) {
			at = max(at, s.end(piece.Writer)+s.moves(piece, t))
		}
	}
	return at
}

// moves is how long a piece is on its way to a reader.
func (s *slots) moves(piece *problem.Piece, reader dag.TaskID) int64 {
	from, to := s.source(piece, s.workers), s.p.Platform.MemoryOf(s.workers[reader])
	if from == to {
		return 0
	}
	return s.Ways[from][to].Takes(piece.Bytes) * s.stretch / 100
}

// kept counts the bytes that wait, times how long.
func (s *slots) kept() (bytes float64) {
	for i := range s.Pieces {
		piece := &s.Pieces[i]
		if int(piece.Writer) == len(s.workers) {
			continue
		}
		longest := int64(0)
		for _, r := range piece.Readers {
			longest = max(longest, s.end(r.Of)+int64(r.Back)*s.period-s.start[piece.Writer])
		}
		bytes += float64(longest) * float64(piece.Bytes)
	}
	return bytes
}

// versions are as many of each storage as the periods from its writing to its last use, where every step writes it anew.
func (s *slots) versions() []int32 {
	counts := slices.Repeat([]int32{1}, len(s.g.Buffers))
	writes := make([][]dag.TaskID, len(s.g.Buffers))
	for t := range s.workers {
		for _, a := range s.g.Tasks[t].Accesses {
			if a.Mode.Writes() {
				writes[s.g.Storage(a.Buffer)] = append(writes[s.g.Storage(a.Buffer)], dag.TaskID(t))
			}
		}
	}
	use := func(b dag.BufferID, end int64) {
		for _, w := range writes[b] {
			if counts[b] < dag.MaxVersions && s.start[w]+int64(counts[b])*s.period < end {
				counts[b] = int32(min((end-s.start[w]+s.period-1)/s.period, dag.MaxVersions))
			}
		}
	}
	for t := range s.workers {
		for _, a := range s.g.Tasks[t].Accesses {
			if b := s.g.Storage(a.Buffer); s.anew(b) {
				use(b, s.end(int32(t)))
			}
		}
	}
	for i := range s.Pieces {
		piece := &s.Pieces[i]
		for _, r := range piece.Readers {
			if s.anew(piece.Storage) && int(piece.Writer) < len(s.workers) {
				use(piece.Storage, s.end(piece.Writer)+s.moves(piece, dag.TaskID(r.Of)))
			}
		}
	}
	return counts
}

// anew reports whether a storage may have versions.
func (s *slots) anew(b dag.BufferID) bool {
	buffer := &s.g.Buffers[b]
	return buffer.ViewOf == dag.None && s.g.WrittenStorages()[b] && !s.g.Carried(b) && buffer.Home == "" && buffer.Role != dag.Parameter && buffer.Role != dag.State
}

// planned lists the versions in each memory where a storage is.
func (s *slots) planned(counts []int32) (list []place.PlannedVersions) {
	p := s.p.Platform
	in := make([]uint64, len(s.g.Buffers))
	for t, w := range s.workers {
		for _, a := range s.g.Tasks[t].Accesses {
			in[s.g.Storage(a.Buffer)] |= 1 << p.MemoryOf(w)
		}
	}
	for i := range s.Pieces {
		s.eachHop(&s.Pieces[i], s.workers, func(_, to platform.MemoryID) { in[s.Pieces[i].Storage] |= 1 << to })
	}
	for b, n := range counts {
		for m := range p.Memories {
			if n > 1 && in[b]&(1<<m) != 0 {
				list = append(list, place.PlannedVersions{Memory: p.Memories[m].Name, Buffer: s.g.Buffers[b].Name, Versions: int(n)})
			}
		}
	}
	return list
}
