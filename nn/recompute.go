package nn

import (
	"cmp"
	"slices"
	"strings"

	"dahl/dag"
)

// Recomputation trades time for memory, as in T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep
// nets with sublinear memory cost", arXiv:1604.06174, 2016. Of a chain of n layers with outputs of
// one size, the forward pass leaves n outputs to the backward pass. If all but every k-th are
// dropped, it leaves n/k checkpoints, and the backward pass computes k - 1 outputs again at a time.
// So n/k + k - 1 outputs are in memory instead of n. That is least for k = √n, about 2√n. The gradients of one segment are
// in memory, too. Each output that is dropped costs its layer's forward pass once more.
//
// A buffer is dropped if all tasks that write it belong to the forward passes of recomputed layers.
// The tasks of the backward pass then read a second buffer, which copies of those tasks
// fill: the same operations on the same tiles in the same order, hence the same bits on devices of one kind. A copy reads
// the second buffers of dropped values, and the first buffers of others. So recomputed layers in a row are a segment. It
// begins at the output of the layer before it.
//
// Kept are
//
//   - what no task of the backward pass reads; its layer is then computed once. A device of a fold computes it again if the layers before it are, as programs do that run whole layers again.
//   - a buffer that is also written by layers without recomputation, as in a concatenation, and the other results of the
//     same tasks.
//   - what another stage of a pipeline reads. The stages pass backward one after the other, and so each has segments of its own.
//   - what is made of parameters alone, such as the packed copy of a weight. It is no activation.
//
// A mask or index is an operand of the first computation, too. Nothing reads it there, so its bytes are free
// when the task has ended.
//
// # Order
//
// Tasks start as early as their operands allow. A copy needs only the checkpoint, so it would start in
// the forward pass, and what it computes would lie in memory as if nothing had been dropped. A low
// priority does not help where a device is idle, and a layout of memory takes no notice of
// priorities. So the first copies of a segment follow all tasks of the loss and of the backward pass of the micro-batch
// before the segment, by dag.Task.After. Weight gradients are among these: nothing waits for
// them but updates, and a schedule that leaves them for later keeps their operands. The graph thus
// says that a segment is in memory when those behind it are gone, and every layout and policy
// keeps to it. Updates of weights do not wait, nor does anything wait for them. Nor do micro-batches wait for each other,
// so that they may still pass through the devices of a pipeline.

// phaseRecompute is the label of the copies.
const phaseRecompute = "recompute"

// recomputing is the state of recompute. Tasks and buffers belong to the graph before.
type recomputing struct {
	from  *dag.Graph
	to    *dag.Builder
	newID []dag.TaskID // by task: its first computation

	writers [][]dag.TaskID // by storage
	drops   []bool         // by storage
	second  []dag.BufferID // by buffer, None until it exists
	filled  []bool         // by storage: the copies of its writers are there
	copied  []bool         // by task

	again map[string]bool // by layer, as far as it was asked for: its tasks run twice
	whole *dag.Lowering   // with segments of all forward tasks; nil means that a segment has the results for the backward pass alone

	before []dag.TaskID // of the loss and the backward pass, sums among them, since the last segment
	micro  int32        // micro-batch of these
}

// recompute adds to a graph with expanded reductions the tasks that a lowering asks to run twice.
func recompute(g *dag.Graph, l *dag.Lowering) (*dag.Graph, error) {
	if !l.RecomputesAny() {
		return g, nil
	}
	r := &recomputing{from: g, again: map[string]bool{}, newID: make([]dag.TaskID, len(g.Tasks)), copied: make([]bool, len(g.Tasks)),
		filled: make([]bool, len(g.Buffers)), second: slices.Repeat([]dag.BufferID{none}, len(g.Buffers))}
	if !r.findDrops(l) {
		return g, nil
	}
	if l.Fold.Tensor > 0 {
		r.whole = l
	}
	r.to = dag.NewBuilder(g.Name)
	r.to.Grow(len(g.Tasks), len(g.Buffers))
	for _, b := range g.Buffers {
		r.declare(b.Name, b.ViewOf, b)
	}
	for t := range g.Tasks {
		task, id := g.Tasks[t], dag.TaskID(t)
		task.After = r.following(id)
		switch task.Labels.Phase {
		case phaseBackward:
			r.enterMicroBatch(task.Labels.MicroBatch)
			r.fillReads(id)
			task.Accesses = r.moved(id)
			r.before = append(r.before, id)
		case phaseLoss, phaseReduce:
			r.enterMicroBatch(task.Labels.MicroBatch)
			r.before = append(r.before, id)
		}
		r.newID[t] = r.to.Task(task)
	}
	return r.to.Build()
}

// enterMicroBatch begins a micro-batch, whose segments wait for its own tasks alone.
func (r *recomputing) enterMicroBatch(micro int32) {
	if micro > r.micro {
		r.micro, r.before = micro, nil
	}
}

// findDrops finds the buffers that are dropped. It reports whether the backward pass reads any.
func (r *recomputing) findDrops(l *dag.Lowering) (any bool) {
	g := r.from
	r.writers, r.drops = make([][]dag.TaskID, len(g.Buffers)), make([]bool, len(g.Buffers))
	r.eachAccess(func(t dag.TaskID, storage dag.BufferID, mode dag.Mode) {
		if mode.Writes() {
			r.writers[storage] = append(r.writers[storage], t)
			role := g.Buffers[storage].Role
			r.drops[storage] = role == dag.Activation || role == dag.Workspace // an accumulator
		}
	})
	r.eachAccess(func(t dag.TaskID, storage dag.BufferID, _ dag.Mode) {
		r.drops[storage] = r.drops[storage] && g.Tasks[t].Labels.Stage == g.Tasks[r.writers[storage][0]].Labels.Stage
	})
	for kept := true; kept; { // until each task writes dropped buffers alone, or none of them
		kept = false
		for t := range g.Tasks {
			if !r.runsTwice(dag.TaskID(t), l) {
				kept = r.keepResults(dag.TaskID(t)) || kept
			}
		}
	}
	r.eachAccess(func(t dag.TaskID, storage dag.BufferID, mode dag.Mode) {
		any = any || r.drops[storage] && mode.Reads() && g.Tasks[t].Labels.Phase == phaseBackward
	})
	return any
}

func (r *recomputing) eachAccess(visit func(t dag.TaskID, storage dag.BufferID, mode dag.Mode)) {
	for t := range r.from.Tasks {
		for _, a := range r.from.Tasks[t].Accesses {
			visit(dag.TaskID(t), r.from.Storage(a.Buffer), a.Mode)
		}
	}
}

// runsTwice reports whether all that a task writes may be dropped.
func (r *recomputing) runsTwice(t dag.TaskID, l *dag.Lowering) bool {
	task, ofParameters := &r.from.Tasks[t], true
	for _, a := range task.Accesses {
		storage := r.from.Storage(a.Buffer)
		if a.Mode.Writes() && !r.drops[storage] {
			return false
		}
		ofParameters = ofParameters && (a.Mode == dag.Write || r.from.Buffers[storage].Role == dag.Parameter)
	}
	again := slices.Contains([]string{phaseLoad, phaseForward, phaseReduce}, task.Labels.Phase)
	return again && !ofParameters && r.recomputes(task.Labels.Layer, l)
}

// recomputes reports whether the lowering asks for a layer to be recomputed.
func (r *recomputing) recomputes(layer string, l *dag.Lowering) bool {
	again, known := r.again[layer]
	if !known {
		again = l.Recomputes(layer)
		r.again[layer] = again
	}
	return again
}

// keepResults keeps what a task writes. It reports whether that was to be dropped.
func (r *recomputing) keepResults(t dag.TaskID) (changed bool) {
	for _, a := range r.from.Tasks[t].Accesses {
		if storage := r.from.Storage(a.Buffer); a.Mode.Writes() && r.drops[storage] {
			r.drops[storage], changed = false, true
		}
	}
	return changed
}

// fillReads adds the missing copies of tasks whose results a task of the backward pass reads.
func (r *recomputing) fillReads(reader dag.TaskID) {
	segment := r.missing(nil, reader)
	if segment == nil {
		return
	}
	if r.whole != nil {
		segment = r.complete(segment)
	}
	slices.Sort(segment) // program order
	after := r.ends()
	for _, t := range segment {
		task := r.from.Tasks[t]
		task.Name, task.Labels.Phase = nameAgain(&task), phaseRecompute
		task.Accesses, task.After = r.moved(t), r.following(t)
		if first := !slices.ContainsFunc(r.from.Preds(t), func(p int32) bool {
			_, found := slices.BinarySearch(segment, dag.TaskID(p))
			return found
		}); first {
			task.After = slices.Concat(task.After, after)
		}
		r.to.Task(task)
	}
}

// nameAgain is the name of a task's copy. The name of a sum of accumulators begins with the name of its buffer.
func nameAgain(t *dag.Task) string {
	if t.Labels.Phase == phaseReduce {
		return strings.Replace(t.Name, ".merge", ".recomputed.merge", 1)
	}
	layer := t.Labels.Layer + "."
	return strings.Replace(t.Name, layer+t.Labels.Phase, layer+phaseRecompute, 1)
}

// missing adds to a list the tasks whose copies a task needs before it.
func (r *recomputing) missing(list []dag.TaskID, reader dag.TaskID) []dag.TaskID {
	for _, a := range r.from.Tasks[reader].Accesses {
		storage := r.from.Storage(a.Buffer)
		if !a.Mode.Reads() || !r.drops[storage] || r.filled[storage] {
			continue
		}
		r.filled[storage] = true
		for _, t := range r.writers[storage] {
			if !r.copied[t] {
				r.copied[t] = true
				list = r.missing(append(list, t), t)
			}
		}
	}
	return list
}

// complete adds to a segment the forward tasks of recomputed layers behind it, as of a program that runs whole layers again.
func (r *recomputing) complete(segment []dag.TaskID) []dag.TaskID {
	for i := 0; i < len(segment); i++ {
		for _, s := range r.from.Succs(segment[i]) {
			t := dag.TaskID(s)
			if r.copied[t] || r.from.Tasks[t].Labels.Phase != phaseForward || !r.runsTwice(t, r.whole) {
				continue
			}
			r.copied[t] = true
			for _, a := range r.from.Tasks[t].Accesses {
				if a.Mode.Writes() {
					r.filled[r.from.Storage(a.Buffer)] = true
				}
			}
			segment = append(segment, t)
		}
	}
	return segment
}

// ends are the tasks before a segment, since the one before it, that none of these follows.
func (r *recomputing) ends() []dag.TaskID {
	var ends []dag.TaskID
	for _, t := range r.before {
		if !slices.ContainsFunc(r.from.Succs(t), func(s int32) bool {
			_, found := slices.BinarySearch(r.before, dag.TaskID(s))
			return found
		}) {
			ends = append(ends, r.newID[t])
		}
	}
	r.before = nil
	return ends
}

// following are the first computations that a task follows without data.
func (r *recomputing) following(t dag.TaskID) (after []dag.TaskID) {
	for _, p := range r.from.Tasks[t].After {
		after = append(after, r.newID[p])
	}
	return after
}

// moved are the accesses of a task, in second buffers where the first are dropped.
func (r *recomputing) moved(t dag.TaskID) []dag.Access {
	accesses := r.from.Tasks[t].Accesses
	own := false
	for i, a := range accesses {
		if !r.drops[r.from.Storage(a.Buffer)] {
			continue
		}
		if !own {
			accesses, own = slices.Clone(accesses), true
		}
		accesses[i].Buffer = r.secondOf(a.Buffer)
	}
	return accesses
}

// secondOf is the second buffer of one that is dropped.
func (r *recomputing) secondOf(of dag.BufferID) dag.BufferID {
	if r.second[of] == none {
		b := r.from.Buffers[of]
		if b.ViewOf != none {
			b.ViewOf = r.secondOf(b.ViewOf)
		}
		r.second[of] = r.declare(b.Name+".recomputed", b.ViewOf, b)
	}
	return r.second[of]
}

// declare adds a buffer like another.
func (r *recomputing) declare(name string, viewOf dag.BufferID, b dag.Buffer) dag.BufferID {
	if viewOf != none {
		return r.to.View(name, viewOf, b.Shape...)
	}
	b.Name = name
	return r.to.Buffer(b)
}

// Recomputable lists the layers whose recomputation can save memory, the first ones of groups, those with the least work for each element of their output
// first: in a transformer activations, then normalisations and attentions, and then products. Layers that join others are left out, since segments
// begin at their outputs.
func (m *Model) Recomputable() (names []string) {
	work := map[string]float64{}
	for _, g := range m.groups(&dag.Lowering{}) {
		if g.Traits.View || g.Traits.Integers || len(g.Inputs) != 1 || g.add != nil || len(g.last().readers) == 0 || strings.ContainsAny(g.Name, `*?[\`) {
			continue
		}
		names, work[g.Name] = append(names, g.Name), g.Layer.Flops(g.In, g.Out)/float64(Elems(g.last().Out))
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(work[a], work[b]) })
	return names
}
