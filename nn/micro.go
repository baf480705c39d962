package nn

import (
	"strconv"
	"strings"

	"dahl/dag"
)

// A training step may pass its batch through the network in micro-batches, as in Y. Huang et al.,
// "GPipe: efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019. The lowerer
// then goes through the layers once for each of them. The computation stays the same: a micro-batch is samples of the
// batch, and its tasks are those that a cut along samples gives. Two things differ:
//
//   - each micro-batch has buffers of its own for values and their gradients ("conv1.out.micro2"), so that two
//     micro-batches need not be in memory together.
//   - tasks come in the order micro-batch, forward, backward.
//
// Parameters, their packed copies and the sums of their gradients are one for all. The tasks of the weight gradients
// of all micro-batches reduce into the same sums, in the order of the samples, and one update follows.
// Nothing else joins micro-batches, so there is no barrier between them: the first layers may work on the next one while
// the last layers have this one. Devices with some layers each then form a pipeline.
// D. Narayanan et al., "Memory-efficient pipeline-parallel DNN training", ICML 2021, call the step a flush.
//
// The loss of a sample is divided by the whole batch, and the results count all samples. So the step
// computes the same mean and the same gradient as without micro-batches. Sums of gradients are the same to the
// bit if all cuts along samples leave the same parts: then both graphs have the same calls of kernels, in the
// same order in each sum.

// microBatch is the samples that the lowerer is at.
type microBatch struct {
	samples dag.Range
	suffix  string // of the names of its buffers. Empty means it is the batch.
	label   int32  // of its tasks. Zero means they are for the batch.
}

const microSuffix = ".micro"

// microBatches cuts the batch.
func (opt *LowerOptions) microBatches() (all []microBatch) {
	size := dag.CeilDiv(opt.FullBatch, max(opt.Lowering.MicroBatches, 1))
	eachRange(opt.Batch, size, func(r dag.Range) {
		now := microBatch{samples: r}
		if size < opt.Batch || opt.Lowering.Stash {
			now.label = int32(len(all) + 1)
			now.suffix = microSuffix + strconv.Itoa(int(now.label))
		}
		all = append(all, now)
	})
	return all
}

// size is the number of samples that pass the network together.
func (l *lowerer) size() int { return l.now.samples.Len() }

// isFirst and isLast say where the micro-batch stands in the batch. Alone it is both.
func (l *lowerer) isFirst() bool { return l.alone || l.now.samples.Lo == 0 }
func (l *lowerer) isLast() bool  { return l.alone || l.now.samples.Hi == l.opt.Batch }

// inBatch is the place in the batch of some samples of the micro-batch.
func (l *lowerer) inBatch(r dag.Range) dag.Range {
	return dag.Range{Lo: l.now.samples.Lo + r.Lo, Hi: l.now.samples.Lo + r.Hi}
}

// ofBatch adds tasks and buffers that all micro-batches share.
func (l *lowerer) ofBatch(add func()) {
	now := l.now
	l.now = microBatch{samples: dag.Range{Hi: l.opt.Batch}}
	add()
	l.now = now
}

// nameOf is the name of a buffer without the suffix of the micro-batch.
func (l *lowerer) nameOf(id dag.BufferID) string {
	return strings.TrimSuffix(l.b.BufferAt(id).Name, l.now.suffix)
}

// view adds a view of a buffer of the micro-batch.
func (l *lowerer) view(name string, of dag.BufferID, shape []int) dag.BufferID {
	return l.b.View(name+l.now.suffix, of, shape...)
}

// learned holds the buffers that the nodes of a group share in all micro-batches.
type learned struct {
	weights []dag.BufferID // as Stage.Params
	grads   []dag.Region   // of the gradients of these
	running []dag.BufferID // as Stage.Running
	sums    dag.BufferID   // in which weight gradients are summed
	packing *packing       // of the weight, nil means the parameter itself
	turned  *weight        // in which the input gradient reads the weight; nil until it exists
}

// MicroBatchesOf is the number of micro-batches in a graph, 0 where the batch is not cut.
func MicroBatchesOf(g *dag.Graph) (last int) {
	for i := range g.Tasks {
		last = max(last, int(g.Tasks[i].Labels.MicroBatch))
	}
	return last
}
