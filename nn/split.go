package nn

import (
	"fmt"

	"dahl/dag"
)

// The rows of a fold ([dag.Fold.Data]) split the optimiser, as in S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020,
// section 5.1. Each row sums a part of the gradients of a stage over all rows, in float32, and updates this part of the weights. It keeps the state of this part, and
// the part itself in float32. Then all rows have the new weights from each other. A step ends with one such exchange, update and exchange of each stage.

// splitOperation is the operation of such an update, by the optimiser's.
func splitOperation(optimizer string) string { return "split_" + optimizer }

// splitUpdates adds the updates of all stages.
func (l *lowerer) splitUpdates() {
	byStage := map[int]*splitUpdate{}
	var order []*splitUpdate
	for _, n := range l.nodes {
		for i := range n.grads {
			if n.Params[i].Of != "" {
				continue
			}
			at := 0
			if l.opt.Lowering.Stages != nil {
				at = l.stageOf(n.Name)
			}
			of := byStage[at]
			if of == nil {
				of = &splitUpdate{layer: n.Name}
				byStage[at], order = of, append(order, of)
			}
			of.elems += n.Params[i].Elems()
			of.weights, of.grads = append(of.weights, n.weights[i]), append(of.grads, n.grads[i])
		}
	}
	for _, of := range order {
		of.add(l)
	}
}

// splitUpdate is the update of the parameters of a stage.
type splitUpdate struct {
	layer   string // the first one
	elems   int
	weights []dag.BufferID
	grads   []dag.Region
}

func (u *splitUpdate) add(l *lowerer) {
	rows := max(1, l.opt.Lowering.Fold.Data)
	var gradients, weights, accesses []dag.Access
	for _, g := range u.grads {
		gradients = append(gradients, dag.Access{Region: g, Mode: dag.ReadWrite})
		accesses = append(accesses, dag.Access{Region: g, Mode: dag.Read})
	}
	for _, w := range u.weights {
		weights = append(weights, updates(w, nil))
	}
	own := dag.CeilDiv(u.elems, rows)
	for _, s := range append([]string{"weights"}, l.opt.Optimizer.states()...) {
		accesses = append(accesses, updates(l.b.Buffer(dag.Buffer{
			Name: statePrefix + u.layer + ".split." + s, Shape: []int{own}, Type: l.opt.Type.Arithmetic(), Role: dag.State, Home: hostMemory,
		}), nil))
	}
	if rows > 1 {
		l.exchange(u.layer, phaseUpdate, reduceScatter, rows, gradients...)
	}
	sum, kept := l.opt.Type.Arithmetic().SizeBytes(), int64(1+len(l.opt.Optimizer.states()))
	moved := sum + 2*kept*sum + l.opt.Type.SizeBytes()
	if l.m.Defaults.ClipNorm > 0 {
		moved += sum // of gradients, for their norm
	}
	l.addRaw(dag.Task{
		Name: u.layer + ".update", Op: splitOperation(l.opt.Optimizer.operation()), Type: l.opt.Type.Arithmetic(), Labels: labelsOf(u.layer, phaseUpdate),
		Accesses: append(append(accesses, weights...), reads(l.hyper, nil)), Flops: 14 * float64(own), Shape: fmt.Sprint(own),
		MovedBytes: int64(own) * moved,
	})
	if rows > 1 {
		l.exchange(u.layer, phaseUpdate, allGather, rows, weights...)
	}
}
