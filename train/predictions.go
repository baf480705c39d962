package train

import (
	"math"
	"unsafe"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/npz"
)

// Prediction is the class that a network predicts for one position of a sample.
type Prediction struct {
	Label, Predicted int32
	Probability      float32 // of the predicted class, the softmax of the outputs
}

// noteOutputs takes down what the outputs of a step say of its samples.
func (f *feeder) noteOutputs(step int, outputs *calls.Arg) error {
	batch := data.Batch(f.order, f.batch, step)
	if len(f.outputs) > 0 {
		f.keepOutputs(batch, unsafe.Slice((*byte)(outputs.First), int64(outputs.Elems)*f.dtype.SizeBytes()))
	}
	labels := make([]int32, len(batch)*nn.Elems(f.data.Positions))
	if err := f.data.ReadLabels(labels, batch); err != nil {
		return err
	}
	if f.dtype == dag.Float64 {
		noteRows(f, batch, labels, calls.Data[float64](outputs))
	} else {
		noteRows(f, batch, labels, calls.Data[float32](outputs))
	}
	return nil
}

// keepOutputs copies the outputs of a step into the outputs of the data set.
func (f *feeder) keepOutputs(batch []int32, outputs []byte) {
	size := len(outputs) / len(batch)
	for k, sample := range batch {
		copy(f.outputs[int(sample)*size:], outputs[k*size:][:size])
	}
}

// outputBytes is the size of all outputs of an evaluation, where they are kept.
func (w *Workload) outputBytes() int64 {
	if !w.Options.Outputs {
		return 0
	}
	return int64(w.Data.Test.Len()*nn.Elems(w.Data.Test.Positions)*w.Model.Classes()) * w.Options.Type.Arithmetic().SizeBytes()
}

// Outputs are the outputs of the network for all samples of an evaluation, before any softmax.
func (t *Trainer) Outputs() npz.Array {
	w := t.Workload
	shape := append([]int{w.Data.Test.Len()}, w.Data.Test.Positions...)
	return npz.Array{Name: "outputs", Type: w.Options.Type.Arithmetic(), Shape: append(shape, w.Model.Classes()), Data: t.feed.outputs}
}

func noteRows[T float32 | float64](f *feeder, batch, labels []int32, outputs []T) {
	positions := len(f.said) / f.data.Len()
	classes := len(outputs) / (len(batch) * positions)
	for k, sample := range batch {
		for i, label := range labels[k*positions:][:positions] {
			row := outputs[(k*positions+i)*classes:][:classes]
			p := &f.said[int(sample)*positions+i]
			p.Label, p.Predicted = label, 0
			for c, z := range row {
				if z > row[p.Predicted] { // of equal outputs the first one is taken, as the loss does
					p.Predicted = int32(c)
				}
			}
			sum, most := 0.0, float64(row[p.Predicted])
			for _, z := range row {
				sum += math.Exp(float64(z) - most)
			}
			p.Probability = float32(1 / sum)
		}
	}
}
