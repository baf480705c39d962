package nn

import "dahl/dag"

// loss adds the softmax cross-entropy of the logits, per sample, and the results for reports. The
// mean loss and the number of correct samples are sinks: no other task waits for them.
//
// The fused form is one kernel per tile. The chain has these parts:
//
//	m = rowmax(z), e = exp(z - m), s = rowsum(e), loss = log s - (z_y - m), dz = (e/s - onehot(y))/batch
func (l *lowerer) loss(z tensor) {
	batch := []int{l.opt.Batch}
	y, _ := l.b.BufferNamed("labels")
	f := lossBuffers{
		z: z, y: y, batch: batch,
		sample:  l.buffer("loss.sample", l.opt.Type, dag.Activation, batch),
		correct: l.buffer("loss.correct", dag.Uint8, dag.Activation, batch),
		params:  dag.Params{{Name: "batch", Value: float64(l.opt.Batch)}},
	}
	if !l.opt.Lowering.Fused {
		f.max = l.buffer("loss.max", l.opt.Type, dag.Activation, batch)
		f.exp = l.buffer("loss.exp", l.opt.Type, dag.Activation, z.shape)
		f.sum = l.buffer("loss.sum", l.opt.Type, dag.Activation, batch)
	}
	eachRange(l.opt.Batch, clip(l.opt.Lowering.Of("loss").Forward.Samples, l.opt.Batch), func(r dag.Range) {
		if l.opt.Lowering.Fused {
			l.fusedLoss(&f, r)
		} else {
			l.chainLoss(&f, r)
		}
	})
	l.metrics(&f)
}

type lossBuffers struct {
	z               tensor
	y               dag.BufferID
	sample, correct dag.BufferID
	max, exp, sum   dag.BufferID // of the chain
	batch           []int
	params          dag.Params
}

func (l *lowerer) fusedLoss(f *lossBuffers, r dag.Range) {
	z, row := boxOf(f.z.shape, r), boxOf(f.batch, r)
	if f.z.grad == none {
		l.lossTask("softmax_xent.eval", r, nil, writes(f.sample, row), writes(f.correct, row), reads(f.z.value, z), reads(f.y, row))
		return
	}
	l.lossTask("softmax_xent", r, f.params,
		writes(f.z.grad, z), writes(f.sample, row), writes(f.correct, row), reads(f.z.value, z), reads(f.y, row))
}

func (l *lowerer) chainLoss(f *lossBuffers, r dag.Range) {
	z, row := boxOf(f.z.shape, r), boxOf(f.batch, r)
	l.lossTask("rowmax", r, nil, writes(f.max, row), reads(f.z.value, z))
	l.lossTask("exp_sub", r, nil, writes(f.exp, z), reads(f.z.value, z), reads(f.max, row))
	l.lossTask("rowsum", r, nil, writes(f.sum, row), reads(f.exp, z))
	l.lossTask("xent", r, nil, writes(f.sample, row), writes(f.correct, row),
		reads(f.z.value, z), reads(f.max, row), reads(f.sum, row), reads(f.y, row))
	if f.z.grad != none {
		l.lossTask("softmax_xent.dx", r, f.params, writes(f.z.grad, z), reads(f.exp, z), reads(f.sum, row), reads(f.y, row))
	}
}

func (l *lowerer) lossTask(op string, r dag.Range, params dag.Params, accesses ...dag.Access) {
	l.add(dag.Task{
		Name: "loss." + op + "[" + rangeText(r) + "]", Op: op, Params: params,
		Labels: labelsOf("loss", phaseLoss), Accesses: accesses,
	})
}

// metrics reduces the losses of the samples to the step's results and hands them over.
func (l *lowerer) metrics(f *lossBuffers) {
	loss := l.buffer("loss", l.opt.Type, dag.Activation, []int{1})
	correct := l.buffer("correct", dag.Int32, dag.Activation, []int{1})
	for _, t := range []dag.Task{
		{Name: "metrics.mean", Op: "mean", Accesses: []dag.Access{writes(loss, nil), reads(f.sample, nil)}},
		{Name: "metrics.count", Op: "count", Accesses: []dag.Access{writes(correct, nil), reads(f.correct, nil)}},
		{Name: "fetch", Op: "fetch", Accesses: []dag.Access{reads(loss, nil), reads(correct, nil)}, Placement: onHost()},
	} {
		t.Labels = labelsOf("metrics", phaseMetrics)
		l.add(t)
	}
}
