package train

import (
	"context"
	"unsafe"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/nn/data"
)

// feeder hands every step its batch and collects its loss. Its hooks are called
// by the executor's workers, in step order each; between segments the driver
// sets what the next one is.
type feeder struct {
	dtype dag.DType
	rate  func(step int) float64 // of training steps, from 0

	ctx       context.Context // of the running segment
	data      *data.Dataset   // of its samples
	order     []int32         // of these
	batch     int             // of its steps
	stepsDone int             // training steps before the segment, for the optimiser's t

	samples *stream // of streamed data; nil before the first step
	first   int     // batch of the stream that is the segment's first

	live    *live        // is told each step
	stop    bool         // at a loss that is not finite
	results []StepResult // by step of the segment
	said    []Prediction // by position of the data set; nil means that no outputs are asked for
	outputs []byte       // of all samples of the data set; empty means that they are not kept
}

// StepResult is the report of one step.
type StepResult struct {
	Loss    float64 // mean over the labels of the batch that count, before the update
	Correct int     // of these
	Ignored int     // labels of -1, which do not count
}

// begin prepares for a segment over samples of a data set in an order, in batches. What has been
// read ahead of them is used.
func (f *feeder) begin(ctx context.Context, d *data.Dataset, order []int32, batch, steps int) {
	if f.samples != nil && f.samples.continues(d, order, batch) {
		f.first = f.samples.next
	} else {
		f.close()
	}
	f.ctx, f.data, f.order, f.batch = ctx, d, order, batch
	if cap(f.results) < steps {
		f.results = make([]StepResult, steps)
	}
	f.results = f.results[:steps]
}

// close ends what is read ahead.
func (f *feeder) close() {
	if f.samples != nil {
		f.samples.close()
	}
	f.samples, f.first = nil, 0
}

// feed implements the op "feed": index, and for training {learning rate, t}.
func (f *feeder) feed(step int, args []calls.Arg) error {
	batch := data.Batch(f.order, f.batch, step)
	copy(calls.Data[int32](&args[0]), batch)
	each, ignored := elements(f.data.Positions), 0
	for _, sample := range batch {
		ignored += ignoredOf(f.data.Labels[int(sample)*each:][:each])
	}
	f.results[step].Ignored = ignored
	f.feedHyper(step, args[1:])
	return nil
}

// feedSamples implements the op "feed.images": the index of a batch in order, its samples and
// labels, and the numbers of feed.
func (f *feeder) feedSamples(step int, args []calls.Arg) error {
	index := calls.Data[int32](&args[0])
	data.InOrder(index)
	f.feedHyper(step, args[3:])
	if f.samples == nil || f.samples.next != f.first+step { // the first step, or again an earlier one
		f.close()
		f.samples = newStream(f.data, f.order, f.batch, step)
	}
	labels := calls.Data[int32](&args[2])
	err := f.samples.copyNext(f.ctx, unsafe.Slice((*byte)(args[1].First), len(index)*f.data.SampleBytes()), labels)
	f.results[step].Ignored = ignoredOf(labels)
	return err
}

// ignoredOf is the number of labels of -1.
func ignoredOf(labels []int32) (n int) {
	for _, label := range labels {
		if label < 0 {
			n++
		}
	}
	return n
}

func (f *feeder) feedHyper(step int, args []calls.Arg) {
	if len(args) > 0 {
		hyper := calls.Data[float64](&args[0])
		done := f.stepsDone + step
		hyper[0], hyper[1] = f.rate(done), float64(done+1)
	}
}

// fetch implements the op "fetch": loss, correct, and in an evaluation outputs.
func (f *feeder) fetch(step int, args []calls.Arg) error {
	r := &f.results[step]
	if f.dtype == dag.Float64 {
		r.Loss = calls.Data[float64](&args[0])[0]
	} else {
		r.Loss = float64(calls.Data[float32](&args[0])[0])
	}
	r.Correct = int(calls.Data[int32](&args[1])[0])
	if f.said != nil {
		if err := f.noteOutputs(step, &args[2]); err != nil {
			return err
		}
	}
	f.live.step(step, r.Loss)
	if f.stop && notFinite(r.Loss) {
		return &lossNotFinite{step, r.Loss}
	}
	return nil
}
