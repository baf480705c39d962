package nn

import (
	"fmt"

	"dahl/dag"
)

// The operations that devices of a fold do together. No kernel has them, so that a folded graph is not executed. Performance models
// know them by the work of a ring of n devices: as many floating-point operations as the ring has steps, n - 1, and the bytes that a device sends, (n - 1)/n of the whole. An
// all_reduce has twice of both.
const (
	allGather     = "all_gather"
	reduceScatter = "reduce_scatter"
	allReduce     = "all_reduce"
)

// exchangeKind is the operations of a layer that exchanges values, empty where a pass needs none.
type exchangeKind struct{ kind, forward, backward string }

// exchange is a layer of a folded network.
type exchange struct {
	exchangeKind
	devices int
}

func (e exchange) Kind() string { return e.kind }

// Traits says that a layer without a task forward has the values of its input, and one without a task backward its gradient.
func (e exchange) Traits() Traits { return Traits{View: e.forward == "", Passes: e.backward == ""} }

func (e exchange) Output(in [][]int) ([]int, error) {
	if len(in[0]) != 2 {
		return nil, fmt.Errorf("devices exchange the values of sequences")
	}
	positions := in[0][0]
	switch e.forward {
	case allGather:
		positions *= e.devices
	case reduceScatter:
		if positions%e.devices > 0 {
			return nil, fmt.Errorf("%d positions are no equal parts for %d devices", positions, e.devices)
		}
		positions /= e.devices
	}
	return []int{positions, in[0][1]}, nil
}

func (exchange) Flops([][]int, []int) float64 { return 0 }

func (e exchange) Forward(n *Node) {
	if e.forward == "" {
		n.out.value = n.l.view(n.out.name, n.in.value, n.out.shape)
		return
	}
	n.l.exchange(n.Name, phaseForward, e.forward, e.devices, writes(n.out.value, nil), reads(n.in.value, nil))
}

func (e exchange) Backward(n *Node) {
	if e.backward != "" {
		n.l.exchange(n.Name, phaseBackward, e.backward, e.devices, writes(n.in.grad, nil), reads(n.out.grad, nil))
	}
}

// exchange adds a task of devices together. Of its operands the largest is the whole.
func (l *lowerer) exchange(layer, phase, op string, devices int, accesses ...dag.Access) {
	steps, bytes, kind := devices-1, int64(0), dag.DType(0)
	for _, a := range accesses {
		b := l.b.BufferAt(a.Buffer)
		kind = b.Type
		if a.Mode == dag.ReadWrite {
			bytes += b.Bytes() // several buffers as one
		} else {
			bytes = max(bytes, b.Bytes())
		}
	}
	if op == allReduce {
		steps *= 2
	}
	l.addRaw(dag.Task{
		Name: layer + "." + phase + "." + op + l.now.suffix, Op: op, Type: kind, Labels: labelsOf(layer, phase), Accesses: accesses,
		Flops: float64(steps), MovedBytes: bytes * int64(steps) / int64(devices), Shape: fmt.Sprintf("%d bytes on %d", bytes, devices),
	})
}

// addRaw adds a task of an operation without a kernel.
func (l *lowerer) addRaw(t dag.Task) {
	t.Labels.MicroBatch = l.now.label
	if !l.opt.dry && l.b.Err() == nil {
		l.b.Task(t)
	}
}
