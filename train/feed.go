package train

import (
	"dahl/dag"
	"dahl/kernels"
	"dahl/nn"
)

// feeder hands every step its batch and collects its loss. Its hooks are called
// by the executor's workers, in step order each; between segments the driver
// sets what the next one is.
type feeder struct {
	dtype dag.DType
	rate  float64

	order     []int32 // of the samples of the running segment
	batch     int     // of its steps
	stepsDone int     // training steps before the segment, for the optimiser's t

	stop    bool         // at a loss that is not finite
	results []StepResult // by step of the segment
}

// StepResult is what one step reports.
type StepResult struct {
	Loss    float64 // mean over the batch, before the update
	Correct int
}

// begin prepares for a segment over samples order in batches.
func (f *feeder) begin(order []int32, batch, steps int) {
	f.order, f.batch = order, batch
	if cap(f.results) < steps {
		f.results = make([]StepResult, steps)
	}
	f.results = f.results[:steps]
}

// feed implements the op "feed": index, and for training {learning rate, t}.
func (f *feeder) feed(step int, args []kernels.Arg) error {
	copy(kernels.Data[int32](&args[0]), nn.Batch(f.order, f.batch, step))
	if len(args) > 1 {
		hyper := kernels.Data[float64](&args[1])
		hyper[0], hyper[1] = f.rate, float64(f.stepsDone+step+1)
	}
	return nil
}

// fetch implements the op "fetch": loss, correct.
func (f *feeder) fetch(step int, args []kernels.Arg) error {
	r := &f.results[step]
	if f.dtype == dag.Float64 {
		r.Loss = kernels.Data[float64](&args[0])[0]
	} else {
		r.Loss = float64(kernels.Data[float32](&args[0])[0])
	}
	r.Correct = int(kernels.Data[int32](&args[1])[0])
	if f.stop && notFinite(r.Loss) {
		return &lossNotFinite{step, r.Loss}
	}
	return nil
}
