package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
)

// stashing turns the sequence of mini-batches into the order of a pipeline. Tasks and buffers of "from" have new ids in "to".
//
// A slot is the time of a pass of a stage on a mini-batch, forward or backward. In the order of the pipeline stage s of p has the slots
//
//	2j + s                  forward with mini-batch j
//	2j + 2(p - 1) - s + 1   backward
//
// No two passes of a stage have the same slot. A pass needs others of earlier slots only.
type stashing struct {
	l              *lowerer
	from           *dag.Graph
	to             *dag.Builder
	stages, number int // of mini-batches

	slot   []int // by task
	lives  []life
	turns  map[[2]string]int // by name of a buffer around the number of its mini-batch: how many mini-batches use theirs at a time
	copied map[weightAt]bool // the updates that have made a version
}

// weightAt is a version of a parameter: the updates of the step before it. There were fewer than none in earlier steps.
type weightAt struct {
	parameter dag.BufferID
	version   int
}

// Slots of tasks that no mini-batch has.
const beforeAll, behindAll = math.MinInt, math.MaxInt

// stash gives a graph of stages the order of its pipeline, and each pass its version of the weights.
func (l *lowerer) stash() (err error) {
	if !l.stashes() {
		return nil
	}
	s := &stashing{l: l, from: l.graph, to: dag.NewBuilder(l.graph.Name), stages: len(l.opt.Lowering.Stages), number: MicroBatchesOf(l.graph),
		copied: map[weightAt]bool{}}
	s.findSlots()
	s.findLives()
	s.findTurns()
	order := make([]dag.TaskID, len(s.slot))
	for t := range order {
		order[t] = dag.TaskID(t)
	}
	slices.SortStableFunc(order, func(a, b dag.TaskID) int { return cmp.Compare(s.slot[a], s.slot[b]) })
	results := slices.IndexFunc(order, func(t dag.TaskID) bool { return s.slot[t] == behindAll })
	for _, t := range order[:results] {
		s.add(t)
	}
	s.endShort()
	for _, t := range order[results:] {
		s.add(t)
	}
	l.graph, err = s.to.Build()
	return err
}

// findSlots finds the slot of each task. A sum of accumulators belongs to the pass that it follows.
func (s *stashing) findSlots() {
	s.slot = make([]int, len(s.from.Tasks))
	backward := make([]bool, len(s.from.Tasks))
	for t := range s.from.Tasks {
		of := &s.from.Tasks[t].Labels
		switch of.Phase {
		case phaseLoss, phaseBackward, phaseUpdate:
			backward[t] = true
		case phaseReduce:
			backward[t] = slices.ContainsFunc(s.from.Preds(dag.TaskID(t)), func(p int32) bool {
				return backward[p] && s.from.Tasks[p].Labels.MicroBatch == of.MicroBatch
			})
		}
		stage, batch := int(of.Stage)-1, int(of.MicroBatch)-1
		switch {
		case of.MicroBatch > 0 && backward[t]:
			s.slot[t] = 2*batch + 2*(s.stages-1) - stage + 1
		case of.MicroBatch > 0:
			s.slot[t] = 2*batch + stage
		case of.Phase == phaseMetrics:
			s.slot[t] = behindAll
		default:
			s.slot[t] = beforeAll
		}
	}
}

// life is when the tasks of a step use a storage.
type life struct {
	first, last           int // slots
	firstStage, lastStage int32
	written               int // the first slot
}

// findLives finds the lives of all storages.
func (s *stashing) findLives() {
	s.lives = slices.Repeat([]life{{first: math.MaxInt, last: -1, written: math.MaxInt}}, len(s.from.Buffers))
	for t := range s.from.Tasks {
		task := &s.from.Tasks[t]
		slot := min(max(s.slot[t], 0), 2*s.number+s.stages-2) // the last one of the last stage, which has the results
		for _, a := range task.Accesses {
			of := &s.lives[s.from.Storage(a.Buffer)]
			if slot < of.first {
				of.first, of.firstStage = slot, task.Labels.Stage
			}
			if slot > of.last {
				of.last, of.lastStage = slot, task.Labels.Stage
			}
			if a.Mode.Writes() {
				of.written = min(of.written, slot)
			}
		}
	}
}

// findTurns finds out how many mini-batches use their buffers at a time. What passes from stage to stage has one buffer more, so that none waits for its reader.
func (s *stashing) findTurns() {
	s.turns = map[[2]string]int{}
	for b, of := range s.lives {
		name, batch := s.ofBatch(dag.BufferID(b))
		if batch < 0 || of.last < 0 {
			continue
		}
		n := (of.last-of.first)/2 + 1
		if of.firstStage != of.lastStage {
			n++
		}
		s.turns[name] = max(s.turns[name], n)
	}
}

// ofBatch is the name of a buffer around the number of its mini-batch, and that from 0 on, negative where it has none.
func (s *stashing) ofBatch(b dag.BufferID) (name [2]string, batch int) {
	of := &s.from.Buffers[b]
	at := strings.LastIndex(of.Name, microSuffix)
	if at < 0 || of.Home != "" || of.Role == dag.Input {
		return name, -1
	}
	at += len(microSuffix)
	digits := strings.IndexFunc(of.Name[at:]+".", func(r rune) bool { return r < '0' || r > '9' })
	number, _ := strconv.Atoi(of.Name[at : at+digits])
	return [2]string{of.Name[:at], of.Name[at+digits:]}, number - 1
}

// takeTurns numbers mini-batches from 0 on. Equal numbers are at least some mini-batches apart, also from one step to the next. It takes the fewest numbers.
func takeTurns(batches, apart int) (turn []int) {
	groups := max(1, batches/apart)
	for g := range groups {
		for i := range (g+1)*batches/groups - g*batches/groups {
			turn = append(turn, i)
		}
	}
	return turn
}

// stashDelay is how many updates before its own the weights of a stage are that a mini-batch meets.
func stashDelay(l *dag.Lowering, stage int) int {
	if l.VerticalSync {
		return len(l.Stages) - 1
	}
	return len(l.Stages) - 1 - stage
}

// WeightVersions is how many versions of the weights of each stage a step of some mini-batches has, where the lowering stashes weights.
func WeightVersions(l *dag.Lowering, batches int) (versions []int) {
	for s := range l.Stages {
		n := stashDelay(l, s) + 1
		if batches < n {
			n += batches // new ones take the places of older ones at the end of the step
		} else {
			n = slices.Max(takeTurns(batches, n)) + 1
		}
		versions = append(versions, n)
	}
	return versions
}

const statePrefix, versionSuffix = "state.", ".version"

// OlderVersion is the parameter of which a state of a training is an older version. A training begins with copies of the parameter.
func OlderVersion(state string) (parameter string, ok bool) {
	name, ok := strings.CutPrefix(state, statePrefix)
	at := strings.LastIndex(name, versionSuffix)
	if !ok || at < 0 {
		return "", false
	}
	_, err := strconv.Atoi(name[at+len(versionSuffix):])
	return name[:at], err == nil
}

// add adds a task. The first one of an update that changes a weight copies it before.
func (s *stashing) add(t dag.TaskID) {
	task := s.from.Tasks[t]
	batch := int(task.Labels.MicroBatch) - 1
	task.Accesses = slices.Clone(task.Accesses)
	for i := range task.Accesses {
		a := &task.Accesses[i]
		w := s.from.Storage(a.Buffer)
		if s.from.Buffers[w].Role != dag.Parameter {
			a.Buffer = s.buffer(a.Buffer)
			continue
		}
		at := weightAt{w, batch - s.delay(&task)}
		if a.Mode.Writes() {
			at.version = batch + 1
			if !s.copied[at] && s.delay(&task) > 0 {
				s.copyWeight(s.weight(weightAt{w, batch}, &task), s.weight(at, &task), &task)
			}
			s.copied[at] = true
		}
		a.Buffer = s.viewed(s.weight(at, &task), a.Buffer, s.to.BufferAt(s.weight(at, &task)).Name+"."+s.from.Buffers[a.Buffer].Name)
	}
	s.to.Task(task)
}

// viewed is a buffer, or a view of it of the shape and by the name that a view in "from" has.
func (s *stashing) viewed(as, from dag.BufferID, name string) dag.BufferID {
	of := &s.from.Buffers[from]
	if of.ViewOf == none {
		return as
	}
	id, there := s.to.BufferNamed(name)
	if !there {
		id = s.to.View(name, as, of.Shape...)
	}
	return id
}

// buffer is the buffer in the new graph for one that is no parameter.
func (s *stashing) buffer(b dag.BufferID) dag.BufferID {
	storage := s.from.Storage(b)
	of, named := s.from.Buffers[storage], func(b dag.BufferID) string { return s.from.Buffers[b].Name }
	if name, batch := s.ofBatch(storage); batch >= 0 {
		number := batch + 1
		if all := s.l.opt.microBatches(); all[batch].samples.Len() == all[0].samples.Len() {
			number = takeTurns(s.number, s.turns[name])[batch] + 1
		}
		named = func(b dag.BufferID) string {
			name, _ := s.ofBatch(b)
			return name[0] + strconv.Itoa(number) + name[1]
		}
	} else if life := &s.lives[storage]; s.number >= s.stages && of.Home == "" && !s.from.Carried(storage) && life.written < math.MaxInt {
		of.Versions = min((life.last+2-life.written)/(2*s.number)+1, dag.MaxVersions)
	}
	of.Name = named(storage)
	id, there := s.to.BufferNamed(of.Name)
	if !there {
		id = s.to.Buffer(of)
	}
	return s.viewed(id, b, named(b))
}

// weight is the buffer of a version of a parameter, for a task of its stage. At the start and at the end of a step the parameter itself has the
// latest version.
func (s *stashing) weight(at weightAt, task *dag.Task) dag.BufferID {
	of := s.from.Buffers[at.parameter]
	delay := s.delay(task)
	older, another := -at.version, at.version // than the version with which the step begins, or ends
	if s.number > delay {
		turn := takeTurns(s.number, delay+1)
		now := turn[(at.version-1+2*s.number)%s.number]
		another = now + 1
		for older = delay; older >= 0 && turn[s.number-1-older] != now; older-- {
		}
	}
	switch {
	case older > 0:
		of.Name, of.Role = statePrefix+of.Name+versionSuffix+strconv.Itoa(older), dag.State
	case older < 0:
		of.Name, of.Role, of.Home = of.Name+versionSuffix+strconv.Itoa(another), dag.Activation, ""
	}
	if id, there := s.to.BufferNamed(of.Name); there {
		return id
	}
	return s.to.Buffer(of)
}

// delay is how many updates before its own the weights are that a task meets.
func (s *stashing) delay(task *dag.Task) int {
	return stashDelay(&s.l.opt.Lowering, int(task.Labels.Stage)-1)
}

// copyWeight adds a copy of the version of a weight that the update of a task changes into the next one.
func (s *stashing) copyWeight(from, to dag.BufferID, task *dag.Task) {
	labels := task.Labels
	labels.Phase = phaseStash
	copied := dag.Task{Name: fmt.Sprintf("%s.%s.%s%s%d", labels.Layer, phaseStash, s.to.BufferAt(to).Name, microSuffix, labels.MicroBatch), Op: "copy", Type: s.to.BufferAt(to).Type, Labels: labels,
		Placement: task.Placement, Accesses: []dag.Access{writes(to, nil), reads(from, nil)}}
	if err := s.l.m.kernels.Complete(&copied, s.to.BufferAt); err != nil {
		s.to.Fail(err)
		return
	}
	s.to.Task(copied)
}

// endShort gives the versions behind a step of few mini-batches the buffers with which the next step begins.
func (s *stashing) endShort() {
	done := map[dag.BufferID]bool{}
	for t := range s.from.Tasks {
		task := &s.from.Tasks[t]
		if task.Labels.Phase != phaseUpdate || int(task.Labels.MicroBatch) != s.number || s.delay(task) < s.number {
			continue
		}
		for _, a := range task.Accesses {
			w := s.from.Storage(a.Buffer)
			if s.from.Buffers[w].Role != dag.Parameter || done[w] {
				continue
			}
			done[w] = true
			for older := s.delay(task); older >= 0; older-- {
				s.copyWeight(s.weight(weightAt{w, s.number - older}, task), s.weight(weightAt{w, -older}, task), task)
			}
		}
	}
}
