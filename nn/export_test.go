package nn

import "dahl/dag"

// Groups lists the layers of each group of a training step or an evaluation.
func (m *Model) Groups(l *dag.Lowering, train bool) [][]*Stage {
	return (&lowerer{m: m, groups: m.groupsOf(l, train, false)}).state().Groups
}

// Named lists the layers with their names and inputs.
func (m *Model) Named() []Layer { return m.layers() }

// Reader is a stage and which of its inputs reads another stage.
type Reader struct{ Stage, Input int }

// Readers are the inputs that read the output of a stage.
func (s *Stage) Readers() (all []Reader) {
	for _, r := range s.readers {
		all = append(all, Reader{r.stage, r.input})
	}
	return all
}

// InElems is the number of elements of one sample of all inputs.
func (s *Stage) InElems() int { return s.inElems() }

// Extents of a sample are its channels, rows and columns.
var ExtentsOf = extents

// TakeTurns are the turns of mini-batches in buffers.
var TakeTurns = takeTurns

// StatesOf are the buffers that an optimiser keeps per parameter.
func StatesOf(o Optimizer) []string { return o.states() }

// WorkNs is the estimate by which [DefaultLowering] splits a layer with float32 weights.
func WorkNs(s *Stage, samples, outputs int) float64 {
	return (&chooser{elemBytes: 4}).workNs(s, samples, outputs)
}

// MicroBatches lists the samples of each micro-batch and the end of the names of its buffers.
func (opt *LowerOptions) MicroBatches() (samples []dag.Range, suffixes []string) {
	for _, m := range opt.microBatches() {
		samples, suffixes = append(samples, m.samples), append(suffixes, m.suffix)
	}
	return samples, suffixes
}
