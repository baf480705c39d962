package nn

import (
	"fmt"
	"slices"

	"dahl/dag"
)

// This file has the last layer together with its loss, for lowerings that say [dag.Lowering.JoinLoss]. Its outputs, the logits, are then never in memory:
// each task has some of the classes, and keeps the greatest logit, the sum of the exponentials and the logit of the label. These numbers of several tasks are merged.
// The gradients compute the logits again. [kernels] has the equations at "xent.sums".

// JoinsLoss reports whether the layer's operations include the loss, so that it has no output.
func (n *Node) JoinsLoss() bool { return n.l.joinsLoss() && n.stages[0] == len(n.l.m.Stages)-1 }

func (l *lowerer) joinsLoss() bool { return l.opt.Lowering.JoinLoss && (l.opt.Train || !l.opt.Outputs) }

// JoinsLoss reports whether lowerings may have the last layer and the loss as one operation.
func (m *Model) JoinsLoss() bool { return m.checkJoinLoss() == nil }

// checkJoinLoss refuses a network whose loss no operation joins.
func (m *Model) checkJoinLoss() error {
	last, loss := &m.Stages[len(m.Stages)-1], m.Defaults.Loss
	switch {
	case !last.Traits.JoinsLoss:
		return fmt.Errorf("lowering: join_loss needs a dense layer without a bias at the end; the last layer %q is another one", last.Name)
	case len(last.In[0]) > 2 || len(last.Inputs) == 1 && last.Inputs[0] != ModelInput && m.Stages[last.Inputs[0]].Traits.View:
		return fmt.Errorf("lowering: join_loss needs a last layer that reads features; %q reads a view", last.Name)
	case loss.name() != crossEntropy || loss.LabelSmoothing > 0:
		return fmt.Errorf("lowering: join_loss is for %s without label smoothing; the loss is %v", crossEntropy, loss)
	}
	return nil
}

// SumLogits adds the forward tasks of a layer that JoinsLoss.
func (n *Node) SumLogits() {
	operands := append([]Operand{n.logitSums()}, n.logitOperands()...)
	n.Step("", "xent.sums", dag.Params{{Name: "first"}}, operands[:4]...)
}

// SumLogitsBack adds the tasks of its gradients.
func (n *Node) SumLogitsBack() {
	params := append(n.l.averaged(), dag.Param{Name: "first"})
	n.Tiles("xent.dw", params, append([]Operand{n.ParamGrad(0)}, n.logitOperands()...)...)
	if n.Needs(0) {
		n.Step(".input", "xent.dx", params, append([]Operand{n.InputGrad(0)}, n.logitOperands()...)...)
	}
}

// logitOperands are the input, the weight and the labels, the sums over logits, and the weight of each label if some are ignored.
func (n *Node) logitOperands() []Operand {
	l, f := n.l, &n.l.results
	labels := Operand{Region: regionOf(f.y, boxOf(f.rows, f.positions(l.now.samples))), axes: []dag.Dimension{dag.AlongSamples}}
	if len(l.m.Positions()) > 0 {
		labels.positions = f.each
	}
	operands := []Operand{n.Input(0), n.Weight(), labels, n.logitSums()}
	if f.weight != none {
		operands = append(operands, whole(f.weight))
	}
	return operands
}

// logitSums are three numbers of each position.
func (n *Node) logitSums() Operand {
	shape, axes := withBatch(n.l.size(), slices.Concat(n.l.m.Positions(), []int{3})), []dag.Dimension{dag.AlongSamples, NoAxis}
	if len(shape) == 3 {
		axes = slices.Insert(axes, 1, dag.AlongRows)
	}
	return n.Buffer(dag.Buffer{Name: n.Name + ".sums", Shape: shape, Type: n.Type()}, axes...)
}

// joinedLoss is the task of the losses of some positions of a network whose last layer JoinsLoss. It has the name of the loss of whole logits, since bounds of all
// lowerings know an operation by its name.
func (l *lowerer) joinedLoss(f *lossBuffers, r dag.Range) dag.Task {
	sums := l.nodeOf[len(l.m.Stages)-1].logitSums()
	of, row := f.positions(r), boxOf(f.rows, f.positions(l.inBatch(r)))
	shape := []int{l.size() * f.each, 3}
	accesses := []dag.Access{writes(f.sample, row), writes(f.correct, row), reads(l.rows(sums.Buffer, l.size(), 3), boxOf(shape, of)), reads(f.y, row)}
	if f.weight != none {
		accesses = append(accesses, reads(f.weight, nil))
	}
	name := "loss.softmax_xent"
	if !l.opt.Train {
		name += ".eval"
	}
	return dag.Task{Name: name + "[" + rangeText(l.inBatch(r)) + "]", Op: "xent", Labels: labelsOf("loss", phaseLoss), Accesses: accesses}
}
