package nn

import (
	"slices"

	"dahl/dag"
)

// Devices that share outputs of a sequence's layers compute in pairs of layers with weights: the first along its outputs, the second along its inputs, as in M. Shoeybi et al., "Megatron-LM",
// arXiv:1909.08053, 2019. Two more rules keep what they move to one all-reduce for each pair and pass:
//
//	between pairs  normalisations, sums and dropout are shared along samples, or along positions where there are fewer samples than devices. The first half of an all-reduce leaves each
//	               device its part, and the second half comes behind these layers, as in the sequence parallelism of V. Korthikanti et al., "Reducing activation
//	               recomputation in large transformer models", MLSys 2023
//	blocks         a device with some heads of an attention has the queries, keys and values of these from the layer before

// between reports whether a layer of sequences stands between pairs of layers: it has no weight, and reads other values than columns of the layers before.
func (l *lowerer) between(stage int) bool {
	s := &l.m.Stages[stage]
	return len(s.Out) == 2 && !s.Traits.Weight && (len(s.Params) == 0 || s.Traits.WholeSample) && !l.columns(stage)
}

// columns reports whether each device that shares a layer has some channels of its results.
func (l *lowerer) columns(stage int) bool {
	if stage == ModelInput {
		return false
	}
	s := &l.m.Stages[stage]
	of := l.sharing(s.Name)
	switch {
	case of == nil || of.Along != dag.AlongOutputs || s.Traits.WholeSample:
		return false
	case s.Traits.Weight:
		return l.sharedAlong(s.Name) == dag.AlongOutputs
	case len(s.Params) > 0:
		return true
	}
	inputs := s.Inputs
	if s.Traits.Blocks != nil {
		inputs = inputs[:1] // what an attention does not see is no part of its channels
	}
	return !slices.ContainsFunc(inputs, func(i int) bool { return !l.columns(i) })
}

// alongBetween is the dimension along which devices share layers between pairs.
func (l *lowerer) alongBetween(s *dag.Stage) dag.Dimension {
	if min(l.opt.Batch, dag.CeilDiv(l.opt.FullBatch, max(l.opt.Lowering.MicroBatches, 1))) < len(s.Devices) {
		return dag.AlongRows
	}
	return dag.AlongSamples
}

// blocks are the proportions of the blocks of a layer's outputs, of each of which a device has a part. Nil means that the outputs are one block.
func (l *lowerer) blocks(layer string) []int {
	stage := l.m.stageNamed(layer)
	for stage >= 0 {
		readers := l.m.Stages[stage].readers
		if len(readers) != 1 || readers[0].input > 0 {
			return nil
		}
		reader := &l.m.Stages[readers[0].stage]
		if reader.Traits.Blocks != nil {
			return reader.Traits.Blocks
		}
		if reader.Traits.Weight || len(reader.Params) > 0 || len(reader.Inputs) != 1 || !slices.Equal(reader.Out, l.m.Stages[stage].Out) {
			return nil
		}
		stage = readers[0].stage
	}
	return nil
}

// shareBlocks gives devices equal shares of each block of a side.
func (s *side) shareBlocks(blocks []int, n int) {
	s.shares, s.among = nil, n
	unit := s.extent / sumOf(blocks)
	groups, lo := slices.Min(blocks), 0
	for _, block := range blocks {
		for k := range n {
			r := dag.ShareOf(k, groups, n)
			of := block / groups * unit
			s.shares = append(s.shares, dag.Part{Range: dag.Range{Lo: lo + r.Lo*of, Hi: lo + r.Hi*of}, Device: k})
		}
		lo += block * unit
	}
}
