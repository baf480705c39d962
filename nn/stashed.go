package nn

import (
	"fmt"
	"slices"

	"dahl/dag"
)

// stashing turns the sequence of mini-batches into the order of a pipeline. Tasks and buffers of "from" have new ids in "to".
type stashing struct {
	l    *lowerer
	from *dag.Graph
	to   *dag.Builder

	// Tasks that no mini-batch has, such as the first load and the last results, come before and behind all.
	before, behind []dag.TaskID
	blocks         map[stashBlock][]dag.TaskID
	stages, number int // of mini-batches

	newID []dag.TaskID // by task
}

// stashBlock is the work of a stage on a mini-batch in one direction.
type stashBlock struct {
	stage, batch int
	backward     bool
}

// stash gives a graph of stages the order of its pipeline, and each backward pass the weights of its forward pass.
func (l *lowerer) stash() (err error) {
	if !l.stashes() {
		return nil
	}
	s := &stashing{l: l, from: l.graph, to: dag.NewBuilder(l.graph.Name), blocks: map[stashBlock][]dag.TaskID{},
		stages: len(l.opt.Lowering.Stages), newID: make([]dag.TaskID, len(l.graph.Tasks))}
	s.findBlocks()
	declareAll(s.to, l.graph)
	for _, t := range s.before {
		s.add(t, nil)
	}
	s.addPipeline()
	for _, t := range s.behind {
		s.add(t, nil)
	}
	l.graph, err = s.to.Build()
	return err
}

// declareAll adds the buffers of a graph with their ids.
func declareAll(to *dag.Builder, g *dag.Graph) {
	for _, buffer := range g.Buffers {
		if buffer.ViewOf != none {
			to.View(buffer.Name, buffer.ViewOf, buffer.Shape...)
		} else {
			to.Buffer(buffer)
		}
	}
}

// findBlocks sorts the tasks. A sum of accumulators belongs to the pass that it follows.
func (s *stashing) findBlocks() {
	backward := make([]bool, len(s.from.Tasks))
	for t := range s.from.Tasks {
		of, id := &s.from.Tasks[t].Labels, dag.TaskID(t)
		switch of.Phase {
		case phaseLoss, phaseBackward, phaseUpdate:
			backward[t] = true
		case phaseReduce:
			backward[t] = slices.ContainsFunc(s.from.Preds(id), func(p int32) bool {
				return backward[p] && s.from.Tasks[p].Labels.MicroBatch == of.MicroBatch
			})
		}
		switch {
		case of.MicroBatch > 0:
			b := stashBlock{int(of.Stage) - 1, int(of.MicroBatch) - 1, backward[t]}
			s.blocks[b] = append(s.blocks[b], id)
			s.number = max(s.number, int(of.MicroBatch))
		case of.Phase == phaseMetrics:
			s.behind = append(s.behind, id)
		default:
			s.before = append(s.before, id)
		}
	}
}

// addPipeline adds the blocks of all stages, each as soon as the stage before it has passed the mini-batch on.
func (s *stashing) addPipeline() {
	states := make([]stageState, s.stages)
	for i := range states {
		states[i] = stageState{ahead: min(s.stages-1-i, s.number), kept: map[int][]dag.BufferID{}}
	}
	for added := true; added; {
		added = false
		for i := range states {
			at := &states[i]
			goesBack := at.forward-at.backward > at.ahead || at.forward == s.number
			switch {
			case at.backward == s.number:
			case !goesBack && (i == 0 || states[i-1].forward > at.forward):
				s.addForward(i, at)
				added = true
			case goesBack && (i == s.stages-1 || states[i+1].backward > at.backward):
				s.addBackward(i, at)
				added = true
			}
		}
	}
}

// stageState is how far a stage has come.
type stageState struct {
	ahead             int                    // how many mini-batches it takes forward before the first backward
	forward, backward int                    // mini-batches that have passed
	version           []int                  // by mini-batch: the updates before its forward pass
	kept              map[int][]dag.BufferID // by version, by buffer: copies of weights; none where there is none
}

func (s *stashing) addForward(stage int, at *stageState) {
	for _, t := range s.blocks[stashBlock{stage, at.forward, false}] {
		s.add(t, nil)
	}
	at.version = append(at.version, at.backward)
	at.forward++
}

// addBackward adds the backward pass of the next mini-batch of a stage, and its updates behind the copies that others need.
func (s *stashing) addBackward(stage int, at *stageState) {
	block := s.blocks[stashBlock{stage, at.backward, true}]
	copies := at.kept[at.version[at.backward]]
	if at.version[at.backward] == at.backward {
		copies = nil // the weights have not changed since
	}
	readers := map[dag.BufferID][]dag.TaskID{} // by weight
	for _, t := range block {
		if s.from.Tasks[t].Labels.Phase != phaseUpdate {
			s.eachWeight(t, func(w dag.BufferID) { readers[w] = append(readers[w], t) })
		}
	}
	needed := at.forward-at.backward > 1 && at.version[at.forward-1] == at.backward
	var kept []dag.BufferID
	for _, t := range block {
		if s.from.Tasks[t].Labels.Phase != phaseUpdate {
			s.add(t, copies)
			continue
		}
		s.eachWeight(t, func(w dag.BufferID) {
			if needed && readers[w] != nil && (kept == nil || kept[w] == none) {
				kept = s.keep(kept, w, t, at.backward, readers[w])
			}
		})
		s.add(t, nil)
	}
	at.kept[at.backward] = kept
	at.backward++
}

// eachWeight visits the parameters that a task reads or changes.
func (s *stashing) eachWeight(t dag.TaskID, visit func(dag.BufferID)) {
	for _, a := range s.from.Tasks[t].Accesses {
		if w := s.from.Storage(a.Buffer); s.from.Buffers[w].Role == dag.Parameter {
			visit(w)
		}
	}
}

// keep adds a copy of a weight before an update, behind the tasks that read an older copy: so these may share bytes.
func (s *stashing) keep(kept []dag.BufferID, w dag.BufferID, update dag.TaskID, version int, readers []dag.TaskID) []dag.BufferID {
	if kept == nil {
		kept = slices.Repeat([]dag.BufferID{none}, len(s.from.Buffers))
	}
	of, labels := s.from.Buffers[w], s.from.Tasks[update].Labels
	labels.Phase = phaseStash
	name := fmt.Sprintf("%s.version%d", of.Name, version+1)
	kept[w] = s.to.Buffer(dag.Buffer{Name: name, Shape: of.Shape, Type: of.Type, Role: dag.Activation, Layout: of.Layout})
	task := dag.Task{Name: labels.Layer + "." + phaseStash + "." + name, Op: "copy", Type: of.Type, Labels: labels, Placement: s.from.Tasks[update].Placement,
		Accesses: []dag.Access{writes(kept[w], nil), reads(w, nil)}}
	for _, t := range readers {
		task.After = append(task.After, s.newID[t])
	}
	if err := s.l.m.kernels.Complete(&task, s.to.BufferAt); err != nil {
		s.to.Fail(err)
		return kept
	}
	s.to.Task(task)
	return kept
}

// add adds a task, which reads copies of weights where there are any.
func (s *stashing) add(t dag.TaskID, copies []dag.BufferID) {
	task := s.from.Tasks[t]
	if copies != nil {
		task.Accesses = slices.Clone(task.Accesses)
		for i := range task.Accesses {
			a := &task.Accesses[i]
			w := s.from.Storage(a.Buffer)
			if s.from.Buffers[w].Role != dag.Parameter || copies[w] == none {
				continue
			}
			if a.Buffer == w {
				a.Buffer = copies[w]
				continue
			}
			view, name := s.from.Buffers[a.Buffer], s.to.BufferAt(copies[w]).Name+"."+s.from.Buffers[a.Buffer].Name
			id, there := s.to.BufferNamed(name)
			if !there {
				id = s.to.View(name, copies[w], view.Shape...)
			}
			a.Buffer = id
		}
	}
	s.newID[t] = s.to.Task(task)
}
