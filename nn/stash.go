package nn

import (
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
)

// A lowering with stages may stash weights, as in D. Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN
// training", SOSP 2019. Each micro-batch is then a mini-batch with an update of its own. The loss is its mean. Stage s of p, from 0 on, takes p - 1 - s of them
// forward, then one forward and one backward in turn. So mini-batch j of the training, from 0 on, meets the weights behind
//
//	max(0, j - (p - 1 - s))
//
// updates, in both passes. With vertical sync all stages take the weights behind max(0, j - (p - 1)) updates. An update makes a new version: it copies the latest one,
// and changes the copy. It takes the place of the version of its own mini-batch, that no later one needs. So there are p - s versions of each parameter, or p with
// vertical sync.
//
// A step begins with the versions of the step before. The latest one is the parameter. Older ones are states of the training:
// a checkpoint has them, and they begin as copies of the parameter. So the delays go on from step to step, whether the pipeline has been empty in between or not,
// and in steps of any number of mini-batches.
//
// The mini-batches of a step are lowered one by one, each with buffers of its own, and updates included. The whole is the sequence of their tasks.
// Its program order then becomes the order of the pipeline, and mini-batches take turns in as many buffers as that keeps at a time. So dependences give each pass its version, on
// any devices and by any policy. In the program order the pipeline is empty at the end of a step. Where no dependence makes it so, a plan may begin the next step before, with lags.

// phaseStash is the label of copies of weights.
const phaseStash = "stash"

// checkStash refuses what the updates of single mini-batches cannot do.
func (m *Model) checkStash(opt *LowerOptions) error {
	l := &opt.Lowering
	_, sgd := opt.Optimizer.(SGD)
	shares := slices.ContainsFunc(m.Stages, func(s Stage) bool { return s.shared })
	for _, no := range []struct {
		has  bool
		text string
	}{
		{len(l.Stages) == 0, "it needs stages"},
		{slices.ContainsFunc(l.Stages, func(s dag.Stage) bool { return s.Shared() }), "devices cannot share a stage; write device = and one of them"},
		{!sgd, "an optimiser that counts its steps has no count of mini-batches; take sgd"},
		{m.Defaults.ClipNorm > 0, "the norm of all gradients would stop the pipeline; take no clip_norm"},
		{m.Defaults.Loss.Ignored, "the labels that count are those of the whole batch; take a loss without ignored labels"},
		{l.RecomputesAny(), "layers cannot be recomputed with older weights; leave recompute out"},
		{shares, "layers of several stages cannot share weights; leave weights_of out"},
	} {
		if no.has {
			return fmt.Errorf("lowering: stash = true: %s", no.text)
		}
	}
	return nil
}

// stashes reports whether micro-batches are mini-batches.
func (l *lowerer) stashes() bool { return l.opt.Lowering.Stash }

// miniBatches adds the tasks of each micro-batch as a step of its own, one after the other.
func (l *lowerer) miniBatches() (*dag.Graph, error) {
	j := joiner{l: l, b: dag.NewBuilder(l.opt.Name)}
	all := l.opt.microBatches()
	for i, now := range all {
		one := *l
		one.b, one.now, one.alone, one.learned = dag.NewBuilder(l.opt.Name), now, true, nil
		for range l.groups {
			one.learned = append(one.learned, &learned{})
		}
		one.addMicroBatch()
		g, err := one.b.BuildExpanded(nil)
		if err != nil {
			return nil, err
		}
		j.join(g, now, i == len(all)-1)
	}
	return j.b.Build()
}

// joiner joins the graphs of mini-batches.
type joiner struct {
	l   *lowerer
	b   *dag.Builder
	ids []dag.BufferID // by buffer of the graph at hand
}

// join adds the tasks of a mini-batch. What the batch shares is in each graph: the first one loads, and the last one reports.
func (j *joiner) join(g *dag.Graph, now microBatch, last bool) {
	own := make([]bool, len(g.Buffers)) // by buffer: of this mini-batch alone
	j.ids = make([]dag.BufferID, len(g.Buffers))
	for i, buffer := range g.Buffers {
		own[i] = j.l.ofMiniBatch(&g.Buffers[g.Storage(dag.BufferID(i))])
		if own[i] && !strings.HasSuffix(buffer.Name, now.suffix) {
			buffer.Name += now.suffix
		}
		id, there := j.b.BufferNamed(buffer.Name)
		switch {
		case there:
		case buffer.ViewOf != none:
			id = j.b.View(buffer.Name, j.ids[buffer.ViewOf], buffer.Shape...)
		default:
			id = j.b.Buffer(buffer)
		}
		j.ids[i] = id
	}
	tasks := make([]dag.TaskID, len(g.Tasks))
	for t, task := range g.Tasks {
		changes := task.Labels.Phase == phaseUpdate
		task.Accesses = slices.Clone(task.Accesses)
		for i := range task.Accesses {
			a := &task.Accesses[i]
			changes = changes || own[a.Buffer] && a.Mode.Writes() && !strings.Contains(task.Name, now.suffix)
			a.Buffer = j.ids[a.Buffer]
		}
		switch id, there := j.b.TaskNamed(task.Name); {
		case task.Labels.Phase == phaseMetrics && !last:
			continue
		case there && task.Labels.MicroBatch == 0 && !changes:
			tasks[t] = id
			continue
		case changes:
			task.Name, task.Labels.MicroBatch = task.Name+now.suffix, now.label
		}
		tasks[t] = j.b.Task(task)
	}
}

// ofMiniBatch reports whether a storage without the name of a micro-batch belongs to one: a gradient of a parameter, or a copy in another
// layout.
func (l *lowerer) ofMiniBatch(b *dag.Buffer) bool {
	if b.Home != "" || b.Role == dag.Input {
		return false
	}
	name := strings.TrimPrefix(b.Name, "grad.")
	return slices.ContainsFunc(l.m.Parameters(), func(p Parameter) bool {
		return name == p.Name || strings.HasPrefix(name, p.Name+".")
	})
}
