package nn

import (
	"dahl/dag"
	"dahl/kernels"
)

// The caller feeds a step. It writes which samples of the data set the step takes, or where the data set is streamed the samples
// and labels themselves. Where devices share samples, each gets its part from a task of its own, on a processor of its node. So over
// several nodes each process reads what its own tasks use, and no samples go from node to node.

// feed hands the step its index, or its samples and labels.
func (l *lowerer) feed() {
	if l.opt.Stream {
		l.feedStream()
	} else if l.isFirst() {
		l.ofBatch(l.feedIndex)
	}
}

// feedIndex hands the step the index that chooses among all samples and labels.
func (l *lowerer) feedIndex() {
	from := "data.test"
	if l.opt.Train {
		from = "data.train"
	}
	l.fed[0] = l.input(from+".images", l.opt.SampleType, withBatch(l.opt.Samples, l.m.Input), hostMemory)
	l.fed[1] = l.input(from+".labels", dag.Int32, withBatch(l.opt.Samples, l.m.Positions()), hostMemory)
	l.index = l.input("step.index", dag.Int32, []int{l.opt.Batch}, "")
	l.add(dag.Task{
		Name: "feed", Op: "feed", Labels: labelsOf("input", phaseLoad), Placement: onHost(),
		Accesses: append([]dag.Access{writes(l.index, nil)}, l.feedHyper()...),
	})
}

// feedHyper is the access to what a training step is told besides.
func (l *lowerer) feedHyper() []dag.Access {
	if !l.opt.Train {
		return nil
	}
	l.hyper = l.input("step.hyper", dag.Float64, []int{2}, "")
	return []dag.Access{writes(l.hyper, nil)}
}

// feedStream hands the step samples and labels in their order. The index counts those that are handed over together.
func (l *lowerer) feedStream() {
	images, labels := withBatch(l.opt.Batch, l.m.Input), withBatch(l.opt.Batch, l.m.Positions())
	if l.isFirst() {
		l.ofBatch(func() {
			l.fed[0] = l.input("step.images", l.opt.SampleType, images, "")
			l.fed[1] = l.input("labels", dag.Int32, labels, "")
			l.index = l.input("step.index", dag.Int32, []int{l.opt.Batch}, "")
		})
	}
	l.eachFed("input", "feed", func(t dag.Task, r dag.Range) {
		t.Op, t.Accesses = "feed.images", []dag.Access{writes(l.index, boxOf([]int{l.opt.Batch}, r)), writes(l.fed[0], boxOf(images, r))}
		if r.Lo == 0 {
			t.Accesses = append(t.Accesses, l.feedHyper()...)
		}
		l.add(t)
	})
	l.eachFed("loss", "labels.feed", func(t dag.Task, r dag.Range) {
		t.Op, t.Accesses = "feed.labels", []dag.Access{writes(l.fed[1], boxOf(labels, r))}
		l.add(t)
	})
}

// eachFed visits the samples of the batch that are handed over together for a layer: the part of each device of the micro-batch where
// devices share samples, and else the batch.
func (l *lowerer) eachFed(layer, name string, visit func(t dag.Task, r dag.Range)) {
	task := func(r dag.Range, device int) dag.Task {
		return dag.Task{Name: name, Params: dag.Params{{Name: "first", Value: float64(r.Lo)}}, Labels: labelsOf(layer, phaseLoad), Placement: l.onNodeOf(layer, device)}
	}
	parts := l.fedParts(layer)
	if whole := (dag.Range{Hi: l.opt.Batch}); parts == nil && l.isFirst() {
		l.ofBatch(func() { visit(task(whole, 0), whole) })
	}
	for _, part := range parts {
		if r := l.inBatch(part.Range); r.Len() > 0 {
			t := task(r, part.Device)
			t.Name += "[" + rangeText(r) + "]"
			l.ofBatch(func() { visit(t, r) }) // a pipeline orders micro-batches, not what is handed over
		}
	}
}

// fedParts are the samples of the micro-batch that are handed over together for a layer, by device. Nil means that the batch is handed over as a whole.
func (l *lowerer) fedParts(layer string) []dag.Part {
	if !l.opt.Stream || l.alone || l.sharing(layer) == nil {
		return nil
	}
	if shares := l.bySamples(layer)[0].shares; shares != nil {
		return shares
	}
	return []dag.Part{{Range: dag.Range{Hi: l.size()}}} // of a single sample
}

// fedWith is the box of the samples that are handed over together with some of the micro-batch.
func (l *lowerer) fedWith(r dag.Range) dag.Box {
	for _, part := range l.fedParts("input") {
		if middle := (r.Lo + r.Hi) / 2; part.Lo <= middle && middle < part.Hi {
			return boxOf(withBatch(l.opt.Batch, l.m.Input), l.inBatch(part.Range))
		}
	}
	return nil
}

// onHost keeps a task on a processor of the caller, since the program itself performs it.
func onHost() *dag.Placement { return &dag.Placement{Device: kernels.HostKind} }

// onNodeOf keeps a task of the program itself on the node of a device of a layer's stage.
func (l *lowerer) onNodeOf(layer string, device int) *dag.Placement {
	if stages := l.opt.Lowering.Stages; stages != nil && l.opt.HostOf != nil {
		if name := l.opt.HostOf(stages[l.stageOf(layer)].Places()[device]); name != "" {
			return &dag.Placement{Device: name}
		}
	}
	return onHost()
}

// loadLabels picks the labels of the batch.
func (l *lowerer) loadLabels() {
	y := l.buffer("labels", dag.Int32, dag.Activation, withBatch(l.opt.Batch, l.m.Positions()))
	l.add(dag.Task{
		Name: "labels.load", Op: "load.labels", Labels: labelsOf("input", phaseLoad),
		Accesses: []dag.Access{writes(y, nil), reads(l.fed[1], nil), reads(l.index, nil)},
	})
}
