package nn

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/naming"
)

// Loss is minimised by a training. Where labels are ignored, a position whose label is -1 has no part in it. It is the mean over all positions of the batch: one per sample, or the rows and columns of
// an image of outputs, or all but the last dimension of others. The last layer's outputs are z, the
// classes are c, and y is the class of a position:
//
//	cross_entropy   -Σ_c q_c·log softmax(z)_c                   CrossEntropyLoss
//	mse             Σ_c (z_c - t_c)²/classes                    MSELoss
//
// The target of mse is t_c = 1 for the class y and 0 for all others. The target of cross_entropy is
//
//	q_c = (1 - smoothing)·[c = y] + smoothing/classes
//
// The same loss is reported for the test set. A position is correct if the greatest output belongs
// to its class, whatever the loss.
type Loss struct {
	Name           string  // a name in Losses. Empty means cross_entropy.
	LabelSmoothing float64 // of cross_entropy: from 0 to 1
	Ignored        bool    // of cross_entropy: whether there are labels of -1
}

// LossInfo is a line of the table of losses.
type LossInfo struct{ Name, Doc string }

const (
	crossEntropy = "cross_entropy"
	squaredError = "mse"
)

// Losses is the table of losses.
func Losses() []LossInfo {
	return []LossInfo{
		{crossEntropy, "softmax cross-entropy, with label smoothing"},
		{squaredError, "mean squared error of the outputs from 1 for the class and 0 for the others"},
	}
}

// Check reports a name that no loss has, and a label smoothing outside its range.
func (o Loss) Check() error {
	_, err := naming.Find("loss", o.name(), Losses(), func(i LossInfo) string { return i.Name })
	switch {
	case err != nil:
		return err
	case !(o.LabelSmoothing >= 0 && o.LabelSmoothing < 1):
		return fmt.Errorf("label smoothing %g; want at least 0 and below 1", o.LabelSmoothing)
	case o.LabelSmoothing > 0 && o.name() != crossEntropy:
		return fmt.Errorf("label smoothing belongs to %s; the loss is %s", crossEntropy, o.name())
	case o.Ignored && o.name() != crossEntropy:
		return fmt.Errorf("ignored labels belong to %s; the loss is %s", crossEntropy, o.name())
	}
	return nil
}

func (o Loss) name() string { return cmp.Or(o.Name, crossEntropy) }

// String is the loss and its setting.
func (o Loss) String() string {
	text := o.name()
	if o.LabelSmoothing > 0 {
		text += fmt.Sprintf(" label_smoothing=%v", o.LabelSmoothing)
	}
	if o.Ignored {
		text += " ignored_labels"
	}
	return text
}

// loss adds the loss of the samples and the results for reports. The mean loss and the number of
// correct positions are sinks: no other task waits for them.
//
// Either loss is one operation, which computes gradients, too, where they are needed.
func (l *lowerer) loss(z tensor) {
	of, f := l.m.Defaults.Loss, &l.results
	if l.isFirst() {
		l.ofBatch(func() { *f = l.batchLoss() })
	}
	f.z = z
	f.z.value = l.rows(z.value, l.size(), l.m.Classes())
	if z.grad != none {
		f.z.grad = l.rows(z.grad, l.size(), l.m.Classes())
	}
	op, params := "softmax_xent", dag.Params{{Name: "smoothing", Value: of.LabelSmoothing}}
	if of.name() == squaredError {
		op, params = "mse", nil
	}
	part := func(_ []side, r []dag.Range) dag.Task { return l.lossOf(f, r[0], op, params) }
	sides := l.bySamples("loss")
	eachPart(sides, func(r []dag.Range) { l.addPart(part(sides, r), sides, r) })
	l.note(nil, sides, forwardCut, part)
	if l.isLast() {
		l.ofBatch(func() { l.metrics(f) })
	}
}

// batchLoss adds the buffers that the losses of all samples share.
func (l *lowerer) batchLoss() lossBuffers {
	y, _ := l.b.BufferNamed("labels")
	each := Elems(l.m.Positions())
	rows := []int{l.opt.Batch * each}
	f := lossBuffers{
		y: l.rows(y, l.opt.Batch), each: each, rows: rows, weight: none,
		sample:  l.buffer("loss.sample", l.opt.Type.Arithmetic(), dag.Activation, rows),
		correct: l.buffer("loss.correct", dag.Uint8, dag.Activation, rows),
	}
	if l.m.Defaults.Loss.Ignored {
		f.weight = l.buffer("loss.weight", l.opt.Type.Arithmetic(), dag.Activation, []int{1})
		l.add(dag.Task{
			Name: "loss.weight", Op: "counted", Labels: labelsOf("loss", phaseLoss),
			Accesses: []dag.Access{writes(f.weight, nil), reads(f.y, nil)},
		})
	}
	return f
}

// rows is a buffer of samples with a row of columns for each position, without columns with a number.
func (l *lowerer) rows(id dag.BufferID, samples int, columns ...int) dag.BufferID {
	positions := l.m.Positions()
	if len(positions) == 0 {
		return id
	}
	return l.asRows(id, withBatch(samples*Elems(positions), columns))
}

// asRows is a view of a buffer whose first dimension is the positions of all samples. It is made once.
func (l *lowerer) asRows(id dag.BufferID, shape []int) dag.BufferID {
	name := l.nameOf(id) + ".positions"
	if rows, there := l.b.BufferNamed(name + l.now.suffix); there {
		return rows
	}
	return l.view(name, id, shape)
}

type lossBuffers struct {
	z               tensor
	y               dag.BufferID
	sample, correct dag.BufferID
	weight          dag.BufferID // of each label that is not ignored; dag.None where none is
	each            int          // positions of a sample
	rows            []int        // the shape of a number per position
}

// lossOf is a task for the losses of some samples. If gradients are needed, op computes them, too, and else the form of
// op for evaluations.
func (l *lowerer) lossOf(f *lossBuffers, r dag.Range, op string, params dag.Params) dag.Task {
	positions := func(r dag.Range) dag.Range { return dag.Range{Lo: r.Lo * f.each, Hi: r.Hi * f.each} }
	z, row := boxOf([]int{l.size() * f.each, l.m.Classes()}, positions(r)), boxOf(f.rows, positions(l.inBatch(r)))
	accesses := []dag.Access{writes(f.sample, row), writes(f.correct, row), reads(f.z.value, z), reads(f.y, row)}
	if f.weight != none {
		accesses = append(accesses, reads(f.weight, nil))
	}
	if f.z.grad == none {
		op += ".eval"
	} else {
		averaged := l.opt.Batch
		if l.alone {
			averaged = l.size()
		}
		divisor := dag.Params{{Name: "batch", Value: float64(averaged * f.each)}}
		params, accesses = slices.Concat(divisor, params), append([]dag.Access{writes(f.z.grad, z)}, accesses...)
	}
	return dag.Task{
		Name: "loss." + op + "[" + rangeText(l.inBatch(r)) + "]", Op: op, Params: params,
		Labels: labelsOf("loss", phaseLoss), Accesses: accesses,
	}
}

// metrics reduces the losses of the samples to the step's results and hands them over.
func (l *lowerer) metrics(f *lossBuffers) {
	loss := l.buffer("loss", l.opt.Type.Arithmetic(), dag.Activation, []int{1})
	correct := l.buffer("correct", dag.Int32, dag.Activation, []int{1})
	handed := []dag.Access{reads(loss, nil), reads(correct, nil)}
	if l.opt.Outputs && !l.opt.Train {
		handed = append(handed, reads(l.handedOver(f.z), nil))
	}
	for _, t := range []dag.Task{
		{Name: "metrics.mean", Op: "mean", Accesses: []dag.Access{writes(loss, nil), reads(f.sample, nil)}},
		{Name: "metrics.count", Op: "count", Accesses: []dag.Access{writes(correct, nil), reads(f.correct, nil)}},
		{Name: "fetch", Op: "fetch", Accesses: handed, Placement: onHost()},
	} {
		t.Labels = labelsOf("metrics", phaseMetrics)
		l.add(t)
	}
}

// handedOver is a tensor in the type in which the program reads it. Activations in another type are copied.
func (l *lowerer) handedOver(x tensor) dag.BufferID {
	b := l.b.BufferAt(x.value)
	if b.Type == b.Type.Arithmetic() {
		return x.value
	}
	copied := l.buffer(b.Name+".outputs", b.Type.Arithmetic(), dag.Activation, b.Shape)
	l.add(dag.Task{
		Name: "metrics.copy", Op: "copy", Labels: labelsOf("metrics", phaseMetrics), Accesses: []dag.Access{writes(copied, nil), reads(x.value, nil)},
	})
	return copied
}
