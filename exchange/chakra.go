package exchange

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/platform"
	"dahl/wire"
)

// The types of nodes in Chakra's schema (et_def.proto) that have a meaning here.
const (
	chakraLoad       = 2
	chakraStore      = 3
	chakraSend       = 5
	chakraReceive    = 6
	chakraCollective = 7
)

// chakraString is the number of the field of an attribute that is a text.
const chakraString = 29

// nsPerUs is the unit of this format's times.
const nsPerUs = 1e3

// chakraNode is a node of a trace. Numbers are as the schema names them.
type chakraNode struct {
	id, kind, duration uint64
	name               string
	control, data      []int64 // nodes before it
	onHost             bool
	numOps, tensorSize uint64
	commSize, commType uint64
	from, to           uint64 // ranks of a message
	group, tag         string
	tensorBytes        int64 // of its operands, where it lists them
	attributes         []string
}

// chakraReader reads a trace.
type chakraReader struct {
	*file
	nodes []chakraNode
	byID  map[int64]int
}

// chakraKinds are the collectives of Chakra's schema, in PyTorch's words.
var chakraKinds = []string{"allreduce", "reduce", "allgather", "gather", "scatter", "broadcast", "alltoall", "reducescatter", "reducescatter", "barrier"}

// isChakra recognises a trace by its name and its first message, which has metadata alone.
func isChakra(name string, beginning []byte) bool {
	return strings.HasSuffix(strings.ToLower(name), ".et") && len(beginning) > 0 && beginning[0] != '{'
}

func (f *file) readChakra(src []byte) error {
	r, first := chakraReader{file: f, byID: map[int64]int{}}, true
	err := wire.Messages(src, func(message []byte) error {
		if first { // the metadata
			first = false
			return wire.Fields(message, func(wire.Field) error { return nil })
		}
		return r.node(message)
	})
	if err != nil {
		return fmt.Errorf("%s: node %d: %w", f.name, len(r.nodes)+1, err)
	}
	return r.build()
}

// node reads a node.
func (r *chakraReader) node(message []byte) error {
	n := chakraNode{onHost: true}
	err := wire.Fields(message, func(v wire.Field) error {
		switch v.ID {
		case 1:
			n.id = v.Number
		case 2:
			n.name = string(v.Bytes)
		case 3:
			n.kind = v.Number
		case 4:
			ids, err := v.Integers()
			n.control = append(n.control, ids...)
			return err
		case 5:
			ids, err := v.Integers()
			n.data = append(n.data, ids...)
			return err
		case 7:
			n.duration = v.Number
		case 8, 9:
			return n.operands(v.Bytes)
		case 10:
			return n.attribute(v.Bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, ok := r.byID[int64(n.id)]; ok {
		return fmt.Errorf("the id %d is given twice; write another one", n.id)
	}
	r.byID[int64(n.id)] = len(r.nodes)
	r.nodes = append(r.nodes, n)
	return nil
}

// attribute reads a setting of a node. It has one value, in the field of its type.
func (n *chakraNode) attribute(message []byte) error {
	var name, text string
	var value uint64
	err := wire.Fields(message, func(v wire.Field) error {
		if v.ID == 1 {
			name = string(v.Bytes)
		} else if !v.Packed {
			value = v.Number
		} else if v.ID == chakraString {
			text = string(v.Bytes)
		}
		return nil
	})
	switch name {
	case "is_cpu_op":
		n.onHost = value != 0
	case "num_ops":
		n.numOps = value
	case "tensor_size":
		n.tensorSize = value
	case "comm_size":
		n.commSize = value
	case "comm_type":
		n.commType = value
	case "pg_name":
		n.group = text
	case "comm_tag":
		n.tag = strconv.FormatUint(value, 10)
	case "comm_src":
		n.from = value
	case "comm_dst":
		n.to = value
	case "": // left out by nobody
	default:
		n.attributes = append(n.attributes, name)
	}
	return err
}

// operands adds the bytes of the tensors that a node reads or writes.
func (n *chakraNode) operands(message []byte) error {
	return wire.Fields(message, func(v wire.Field) error {
		if v.ID == 1 {
			n.tensorBytes += tensorBytes(string(v.Bytes))
		}
		return nil
	})
}

// tensorBytes adds the bytes of tensors in a list of values, each "[tensor, storage, offset, elements, bytes of an element, 'device']".
// Such a list may hold others and any other values.
func tensorBytes(values string) (bytes int64) {
	for _, list := range strings.Split(values, "[") {
		text, _, _ := strings.Cut(list, "]")
		var t, s, o, elems, each int64
		var device string
		if n, _ := fmt.Sscanf(text, "%d, %d, %d, %d, %d, %s", &t, &s, &o, &elems, &each, &device); n == 6 && elems >= 0 && each >= 0 && each <= 16 && elems < maxAmount>>8 {
			bytes = min(bytes+elems*each, maxAmount>>4)
		}
	}
	return bytes
}

// build makes tasks of nodes.
func (r *chakraReader) build() error {
	r.file.nodes = make([]node, len(r.nodes))
	for to := range r.nodes {
		v := &r.nodes[to]
		task := &r.file.nodes[to].task
		task.Name = fmt.Sprintf("%d %s", v.id, strings.ToValidUTF8(v.name, "?"))
		r.file.nodes[to].line = to + 1
		if err := r.weigh(v, task); err != nil {
			return err
		}
		r.exchanges = append(r.exchanges, v.exchange())
		for _, a := range v.attributes {
			r.leave(a+" of nodes", 1)
		}
		for _, id := range unique(v.data) {
			if from, ok := r.byID[id]; ok {
				r.edges = append(r.edges, edge{from, to, none, to + 1})
			} else {
				r.leave("dependences on nodes that the file lacks", 1)
			}
		}
	}
	return r.follow()
}

// follow adds dependences by control. Converters of PyTorch's traces write the caller of a node there, even where
// data lead the other way: then data decide.
func (r *chakraReader) follow() error {
	order, err := r.order()
	if err != nil {
		return err
	}
	place := make([]int, len(order))
	for i, at := range order {
		place[at] = i
	}
	for to := range r.nodes {
		n := &r.file.nodes[to]
		by := map[int]bool{} // data
		for _, e := range n.in {
			by[r.edges[e].from] = true
		}
		n.in = nil
		for _, id := range unique(r.nodes[to].control) {
			switch from, ok := r.byID[id]; {
			case !ok:
				r.leave("dependences on nodes that the file lacks", 1)
			case place[from] >= place[to]:
				r.leave("dependences by control against those by data", 1)
			case !by[from]:
				r.edges = append(r.edges, edge{from, to, none, to + 1})
			}
		}
	}
	return nil
}

// weigh gives a task its time, or else its work.
func (r *chakraReader) weigh(v *chakraNode, task *dag.Task) error {
	task.MovedBytes = v.tensorBytes
	switch v.kind {
	case chakraLoad, chakraStore:
		task.MovedBytes = amountOf(v.tensorSize)
	case chakraSend, chakraReceive, chakraCollective:
		task.MovedBytes = amountOf(v.commSize)
		task.Labels.Phase = "communication"
	}
	if v.duration == 0 && v.numOps > 0 {
		task.Type, task.Flops = dag.Float32, float64(v.numOps)
		task.MovedBytes = max(task.MovedBytes, amountOf(v.tensorSize))
		return nil
	}
	if v.duration == 0 {
		r.leave("nodes without duration and work, which take no time", 1)
	}
	ns, err := r.amount(r.line(v), "duration_micros", float64(v.duration), nsPerUs)
	where := platform.CUDA
	if v.onHost {
		where = platform.CPU
	}
	if v.duration == 0 {
		where = dag.AnyDevice
	}
	task.Costs = []dag.Cost{{Key: where, Ns: ns}}
	return err
}

// line stands for a place in a file without lines: the number of a node.
func (r *chakraReader) line(v *chakraNode) int { return r.byID[int64(v.id)] + 1 }

// amountOf bounds a number of bytes.
func amountOf(bytes uint64) int64 { return int64(min(bytes, math.MaxInt64>>4)) }
