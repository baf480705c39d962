package nn

import (
	"slices"

	"dahl/dag"
)

// Devices that share samples or rows sum the gradients of biases, normalisations and other parameters of one dimension in buckets, as in S. Li et al., "PyTorch distributed:
// experiences on accelerating data parallel training", VLDB 2020. A bucket is a buffer for such gradients of consecutive layers of a stage, from the last one on. It is full as soon as it has as
// many bytes as the stage says. So one exchange serves many small sums. It begins behind the backward pass of the first of these layers, and their updates follow.
//
// A layer with statistics of the batch has its gradients from one task, and sums nothing over devices. Gradients of more dimensions have buffers of their own, since no task sees a part of a flat buffer in another shape.

// bucketBytes is when a bucket is full where the stage does not say. By then a message takes about as long as it takes to begin.
const bucketBytes = dag.SlicedBytes

// bucket is the gradients of some parameters in one buffer.
type bucket struct {
	id      dag.BufferID // none until the first gradient
	elems   int
	closes  int // the group behind whose backward pass it is complete
	members []inBucket
}

// inBucket is a parameter in a bucket.
type inBucket struct {
	group, param int
	at           dag.Range
}

// fillBuckets plans the buckets of all groups, the last group first.
func (l *lowerer) fillBuckets() {
	l.buckets = map[string]*bucket{}
	var open *bucket
	from := "" // of the stage of the open bucket
	for g, of := range slices.Backward(l.groups) {
		s := l.summing(of.Name)
		if !l.opt.Train || s == nil || s.Along != dag.AlongSamples && s.Along != dag.AlongRows || !of.last().learns || len(of.Running) > 0 {
			continue
		}
		for param, p := range of.Params {
			if len(p.Shape) != 1 || p.Of != "" || of.shared {
				continue
			}
			if open == nil || from != s.From {
				open, from = &bucket{id: none}, s.From
			}
			open.closes = g
			open.members = append(open.members, inBucket{g, param, dag.Range{Lo: open.elems, Hi: open.elems + p.Elems()}})
			open.elems += p.Elems()
			l.buckets[p.Name] = open
		}
		full := s.BucketBytes
		if full == 0 {
			full = bucketBytes
		}
		if open != nil && int64(open.elems)*l.opt.Type.Arithmetic().SizeBytes() >= full {
			open = nil
		}
	}
}

// inBucket is a parameter of a node in its bucket. Nil means that it has none.
func (l *lowerer) inBucket(n *Node, param int) (*bucket, *inBucket) {
	b := l.buckets[n.Params[param].Name]
	if b == nil || len(b.members) < 2 {
		return nil, nil
	}
	i := slices.IndexFunc(b.members, func(m inBucket) bool { return l.nodes[m.group] == n && m.param == param })
	return b, &b.members[i]
}

// gradient adds the gradient of a parameter, a region of its bucket or a buffer of its own.
func (l *lowerer) gradient(n *Node, param, accumulators int) dag.Region {
	p := &n.Params[param]
	of := dag.Buffer{Name: "grad." + p.Name, Shape: p.Shape, Type: l.opt.Type.Arithmetic(), Role: dag.Gradient, Accumulators: accumulators}
	b, m := l.inBucket(n, param)
	if b == nil {
		return dag.Region{Buffer: l.b.Buffer(of)}
	}
	if b.id == none {
		of.Name, of.Shape = "grad.bucket."+p.Name, []int{b.elems}
		b.id = l.b.Buffer(of)
	}
	return dag.Region{Buffer: b.id, Box: dag.Box{m.at}}
}

// updatesOfBuckets adds the updates of the parameters in buckets that are complete behind a node.
func (l *lowerer) updatesOfBuckets(n *Node) {
	for param := range n.Params {
		b, m := l.inBucket(n, param)
		if b == nil || l.nodes[b.closes] != n || m != &b.members[len(b.members)-1] {
			continue
		}
		for _, m := range b.members {
			if of := l.nodes[m.group]; of.grads != nil { // else its own tasks have updated it
				l.update(of, m.param)
			}
		}
	}
}
