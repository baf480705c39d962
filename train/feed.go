package train

import (
	"context"
	"sync"
	"unsafe"

	"dahl/dag"
	"dahl/execute"
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
	told      []int32         // the order that other ranks know
	batch     int             // of its steps
	stepsDone int             // training steps before the segment, for the optimiser's t

	mu      sync.Mutex
	streams map[part]*stream // of streamed data, by what a task hands over

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

// part is some samples of each batch, or their labels.
type part struct {
	labels bool
	rows   dag.Range
}

// hooks are the operations of the feeder.
func (f *feeder) hooks() map[string]execute.Hook {
	return map[string]execute.Hook{"feed": f.feed, "feed.images": f.feedSamples, "feed.labels": f.feedLabels, "fetch": f.fetch}
}

// begin prepares for a segment over samples of a data set in an order, in batches. What has been
// read ahead of them is used.
func (f *feeder) begin(ctx context.Context, d *data.Dataset, order []int32, batch, steps int) {
	for p, s := range f.streams {
		if s.continues(d, order, batch) {
			s.first = s.next
		} else {
			s.close()
			delete(f.streams, p)
		}
	}
	f.ctx, f.data, f.order, f.batch = ctx, d, order, batch
	if cap(f.results) < steps {
		f.results = make([]StepResult, steps)
	}
	f.results = f.results[:steps]
}

// close ends what is read ahead.
func (f *feeder) close() {
	for _, s := range f.streams {
		s.close()
	}
	f.streams = nil
}

// feed implements the op "feed": index, and for training {learning rate, t}.
func (f *feeder) feed(step int, call *calls.Call) error {
	copy(calls.Data[int32](&call.Args[0]), data.Batch(f.order, f.batch, step))
	f.feedHyper(step, call.Args[1:])
	return nil
}

// feedSamples implements the op "feed.images": the places of samples of a batch in their order, the samples, and the numbers of feed.
func (f *feeder) feedSamples(step int, call *calls.Call) error {
	index := calls.Data[int32](&call.Args[0])
	data.InOrder(index)
	f.feedHyper(step, call.Args[2:])
	return f.streamOf(step, part{false, rowsOf(call, len(index))}).copyNext(f.ctx, unsafe.Slice((*byte)(call.Args[1].First), len(index)*f.data.SampleBytes()), nil)
}

// feedLabels implements the op "feed.labels": the labels of samples of a batch.
func (f *feeder) feedLabels(step int, call *calls.Call) error {
	labels := &call.Args[0]
	return f.streamOf(step, part{true, rowsOf(call, labels.Shape[0])}).copyNext(f.ctx, nil, calls.Data[int32](labels))
}

// rowsOf are n rows of a batch, from the first one of a call on.
func rowsOf(call *calls.Call, n int) dag.Range {
	first := int(call.Params[0])
	return dag.Range{Lo: first, Hi: first + n}
}

// streamOf is the stream of a part whose next batch is the one of a step.
func (f *feeder) streamOf(step int, p part) *stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.streams[p]
	if s != nil && s.next == s.first+step {
		return s
	}
	if s != nil { // again an earlier step
		s.close()
	} else if f.streams == nil {
		f.streams = map[part]*stream{}
	}
	s = newStream(f.data, f.order, f.batch, p, step)
	f.streams[p] = s
	return s
}

func (f *feeder) feedHyper(step int, args []calls.Arg) {
	if len(args) > 0 {
		hyper := calls.Data[float64](&args[0])
		done := f.stepsDone + step
		hyper[0], hyper[1] = f.rate(done), float64(done+1)
	}
}

// fetch implements the op "fetch": loss, correct, and in an evaluation outputs.
func (f *feeder) fetch(step int, call *calls.Call) error {
	r, args := &f.results[step], call.Args
	r.Ignored = f.data.Ignored(data.Batch(f.order, f.batch, step))
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
