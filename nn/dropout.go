package nn

import (
	"fmt"

	"dahl/dag"
)

// Dropout makes each element 0 with probability P in a training step, and multiplies the others by 1/(1-P). An evaluation
// passes all on. kernels/dropout.go says how it is drawn. All layers draw by the seed in the buffer [DropoutSeed].
type Dropout struct{ P float64 }

// DropoutSeed is the buffer of the seed of a training with dropout, a whole number of 64 bits.
const DropoutSeed = "dropout.seed"

const defaultP = 0.5

// Kind implements [Layer].
func (Dropout) Kind() string { return "dropout" }

// Traits says that an evaluation has no task.
func (Dropout) Traits() Traits { return Traits{TrainsOnly: true} }

// Output implements [Layer].
func (d Dropout) Output(in [][]int) ([]int, error) {
	if !(d.P >= 0 && d.P <= 1) {
		return nil, fmt.Errorf("p %g; want a probability from 0 to 1", d.P)
	}
	return one(in)
}

// Flops implements [Layer].
func (Dropout) Flops(_ [][]int, out []int) float64 { return 25 * float64(elems(out)) }

// Forward implements [Layer].
func (d Dropout) Forward(n *Node) {
	l := n.l
	if !l.opt.Train {
		n.View()
		return
	}
	if l.isFirst() {
		l.ofBatch(func() { l.drawKeys(n) })
	}
	n.params = dag.Params{{Name: "p", Value: d.P}, {Name: "channels_last", Value: flag(n.out.channelsLast())}}
	n.Tiles("dropout", n.params, n.Output(), n.Input(0), n.dropped())
}

// drawKeys adds the keys by which all micro-batches draw.
func (l *lowerer) drawKeys(n *Node) {
	seed, known := l.b.BufferNamed(DropoutSeed)
	if !known {
		seed = l.b.Buffer(dag.Buffer{Name: DropoutSeed, Shape: []int{1}, Type: dag.Int64, Role: dag.State, Home: hostMemory})
	}
	n.keys = l.buffer(n.Name+".keys", dag.Int64, dag.Activation, []int{l.opt.Batch})
	l.add(dag.Task{
		Name: n.Name + ".forward.keys", Op: "dropout.keys", Params: dag.Params{{Name: "layer", Value: float64(n.stages[0])}},
		Labels: labelsOf(n.Name, phaseForward), Accesses: []dag.Access{writes(n.keys, nil), reads(seed, nil), reads(l.hyper, nil)},
	})
}

// dropped is the keys of the samples of the micro-batch.
func (n *Node) dropped() Operand {
	return Operand{Region: regionOf(n.keys, boxOf([]int{n.l.opt.Batch}, n.l.now.samples))}
}

// Backward implements [Layer]: the gradient is multiplied by what the input was.
func (Dropout) Backward(n *Node) {
	n.Tiles("dropout", n.params, n.InputGrad(0), n.OutputGrad(), n.dropped())
}
