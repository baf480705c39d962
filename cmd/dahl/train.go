package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/execute"
	"dahl/nn"
	"dahl/plan"
	"dahl/schedule"
)

// trainer runs the program of a model on this machine: it hands batches to the
// executor, counts, and prints a line per epoch.
type trainer struct {
	leg         // that runs; after run the first one, with the totals of all
	runner      *execute.Runner
	train, test *nn.Dataset
	feeder      feeder
	progress    io.Writer // a line per epoch; nil: none

	kept     *checkpoint         // the state before the piece that runs; nil: nothing needs it
	load     *loadSummary        // once the training has ended
	diverged *divergence         // the first loss that is not finite; nil: none
	survival *survival           // nil: a device that fails ends the run
	devices  *plan.SetComparison // nil: the devices are of one kind, or all that there are
	epochs   []nn.EpochMetrics
	steps    []nn.StepMetrics
	recorded []int // steps of this leg and epoch, by graph
	complete bool
}

// newTrainer compiles the program and fills parameters and data.
func newTrainer(w *workload, train, test *nn.Dataset, progress io.Writer) (*trainer, error) {
	t := &trainer{train: train, test: test, progress: progress}
	opt, err := w.opts.optimizer(w.model)
	if err != nil {
		return nil, err
	}
	t.feeder = feeder{dtype: w.dtype, rate: opt.Rate()}
	if err := t.open(w); err != nil {
		return nil, asInput(err)
	}
	if err := t.setWeights(); err != nil {
		t.close()
		return nil, err
	}
	if w.opts.ContinueOnLoss > 0 {
		t.survival = &survival{}
	}
	return t, nil
}

// open begins a leg: it compiles the program for the workload's devices and fills in the
// data. With an error everything stays as it was.
func (t *trainer) open(w *workload) error {
	r, err := execute.New(w.decision, execute.Options{Hooks: map[string]execute.Hook{"feed": t.feeder.feed, "fetch": t.feeder.fetch}, Poison: true})
	if err != nil {
		return err
	}
	t.leg, t.runner = leg{w: w, measured: newOutcome(schedule.Measured, w.platform)}, r
	t.recorded = make([]int, len(w.program.Graphs))
	t.setData("data.train", t.train)
	if t.test != nil {
		t.setData("data.test", t.test)
	}
	return nil
}

// close ends the runner; the weights stay readable.
func (t *trainer) close() { t.runner.Close() }

func (t *trainer) setData(prefix string, d *nn.Dataset) {
	copy(t.runner.Bytes(prefix+".images"), d.Images)
	copy(t.runner.Int32s(prefix+".labels"), d.Labels)
}

// setWeights fills the parameters as --init says.
func (t *trainer) setWeights() error {
	draw, err := newInitialiser(t.w.opts)
	if err != nil {
		return err
	}
	for _, p := range t.w.model.Parameters() {
		values := make([]float64, p.Elems())
		if err := draw(&p, values); err != nil {
			return err
		}
		t.setParameter(p.Name, values)
	}
	return nil
}

func (t *trainer) setParameter(name string, values []float64) {
	if t.w.dtype == dag.Float64 {
		copy(t.runner.Float64s(name), values)
		return
	}
	dst := t.runner.Float32s(name)
	for i, v := range values {
		dst[i] = float32(v)
	}
}

// weights returns the parameters as arrays of an .npz file.
func (t *trainer) weights() []nn.Array {
	var arrays []nn.Array
	for _, p := range t.w.model.Parameters() {
		arrays = append(arrays, nn.Array{Name: p.Name, Type: t.w.dtype, Shape: p.Shape, Data: t.runner.Bytes(p.Name)})
	}
	return arrays
}

// weightsHash is the SHA-256 of all parameters' bytes in the model's order.
func (t *trainer) weightsHash() string {
	h := sha256.New()
	for _, a := range t.weights() {
		h.Write(a.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// run trains for all epochs. With an error, what was done so far stays in t.
func (t *trainer) run(ctx context.Context) error {
	defer t.endLegs()
	meter := execute.StartLoad()
	defer func() { t.load = newLoadSummary(meter.Load(), len(t.w.platform.Workers)) }()
	if t.survival != nil || !t.w.opts.ContinueOnNaN {
		t.kept = newCheckpoint(t)
	}
	segments, epochs := t.w.program.Order, t.w.opts.Epochs
	perEpoch := len(segments) / epochs
	order := make([]int32, t.train.Len())
	begin := time.Now()
	for e := range epochs {
		if t.w.opts.Shuffle {
			nn.Shuffle(order, t.w.opts.Seed, e)
		} else {
			nn.InOrder(order)
		}
		m, err := t.epoch(ctx, e, order, segments[e*perEpoch:(e+1)*perEpoch])
		if err != nil {
			return fmt.Errorf("epoch %d: %w", e+1, err)
		}
		t.epochs = append(t.epochs, m)
		t.printEpoch(m, time.Since(begin))
	}
	t.complete = true
	return nil
}

// measureUsed is the bytes of the arenas that the run has touched, in whole cache
// lines. Untouched memory still holds the pattern that the executor put there.
func (t *trainer) measureUsed() int64 {
	var sum int64
	for _, b := range t.runner.HighWater() {
		sum += schedule.Align(b)
	}
	return sum
}

// epoch runs the segments of one epoch: training in the given order, then the test set.
func (t *trainer) epoch(ctx context.Context, e int, order []int32, segments []dag.Segment) (nn.EpochMetrics, error) {
	m := nn.EpochMetrics{Epoch: e + 1}
	var trained, tested tally
	inOrder := []int32{}
	if t.test != nil {
		inOrder = make([]int32, t.test.Len())
		nn.InOrder(inOrder)
	}
	clear(t.recorded)
	for _, left := range segments {
		count, source := &tested, inOrder
		if isTraining(t.w.program.Graphs[left.Graph]) {
			count, source = &trained, order
		}
		for left.Steps > 0 {
			done, err := t.runPiece(ctx, e+1, t.nextPiece(left), count, source)
			if err != nil {
				return m, err
			}
			left.Steps -= done
		}
	}
	m.Loss, m.Accuracy = trained.means()
	m.Seconds, m.ImagesPerSec = trained.time.Seconds(), trained.rate()
	if t.measured.Basis != energy.Unavailable && trained.unrecorded.images == 0 {
		m.Joules, m.JoulesSource = trained.joules, string(t.measured.Basis)
	}
	if tested.images > 0 {
		m.Tested = true
		m.TestLoss, m.TestAccuracy = tested.means()
	}
	return m, nil
}

// runPiece runs some steps of a graph over the images of a split that come next, and
// returns how many were done: 0 if a device failed that the training goes on without, from
// the state before.
func (t *trainer) runPiece(ctx context.Context, epoch int, p plan.Piece, count *tally, source []int32) (int, error) {
	if t.kept != nil {
		t.kept.find(t.runner)
		t.kept.keep()
	}
	s, err := t.runSteps(ctx, p, count, source, !t.w.opts.ContinueOnNaN)
	if device, failed := execute.FailedDevice(err); failed && t.survival != nil && ctx.Err() == nil {
		return 0, t.goOnWithout(ctx, device, epoch, err)
	}
	if at := (*lossNotFinite)(nil); errors.As(err, &at) {
		return 0, t.stopAt(ctx, epoch, p, count, source, at)
	}
	if err != nil {
		return 0, err
	}
	return p.Steps, t.take(epoch, p, s, count)
}

// runSteps runs the steps of a piece over the images of a split that come next. With stop,
// a loss that is not finite ends it.
func (t *trainer) runSteps(ctx context.Context, p plan.Piece, count *tally, source []int32, stop bool) (*schedule.Schedule, error) {
	t.feeder.begin(source[count.images:], batchOf(t.w.program.Graphs[p.Graph]), p.Steps)
	t.feeder.stop = stop
	s, err := t.runner.Run(ctx, p.Graph, p.Steps, p.Recorded)
	t.feeder.stop = false
	return s, err
}

// take accounts for a piece that has run.
func (t *trainer) take(epoch int, p plan.Piece, s *schedule.Schedule, count *tally) error {
	joules, err := t.account(epoch, p, s)
	if err != nil {
		return err
	}
	g := t.w.program.Graphs[p.Graph]
	batch := batchOf(g)
	count.took(p, batch, s.Makespan, joules)
	for k, r := range t.feeder.results {
		count.add(r, batch)
		step := t.feeder.stepsDone
		if isTraining(g) {
			step += k + 1
			t.steps = append(t.steps, nn.StepMetrics{Epoch: epoch, Step: step, Images: batch, Loss: r.loss, Correct: r.correct})
		}
		t.note(epoch, step, !isTraining(g), r.loss)
	}
	if isTraining(g) {
		t.feeder.stepsDone += p.Steps
	}
	t.done = append(t.done, p)
	return nil
}

// tally counts the images of one split in one epoch.
type tally struct {
	images, correct int
	loss            float64 // sum over images
	time            time.Duration
	joules          float64 // of recorded pieces

	unrecorded struct { // part of the above
		images int
		time   time.Duration
	}
}

func (c *tally) add(r stepResult, batch int) {
	c.images += batch
	c.correct += r.correct
	c.loss += float64(r.loss * float64(batch))
}

// took notes what a piece of steps of a batch came to.
func (c *tally) took(p plan.Piece, batch int, d time.Duration, joules float64) {
	c.time += d
	c.joules += joules
	if !p.Recorded {
		c.unrecorded.images += p.Steps * batch
		c.unrecorded.time += d
	}
}

// rate is the images per second, of what nothing held up where there is such.
func (c *tally) rate() float64 {
	if c.unrecorded.images > 0 {
		return float64(c.unrecorded.images) / c.unrecorded.time.Seconds()
	}
	return float64(c.images) / c.time.Seconds()
}

func (c *tally) means() (loss, accuracy float64) {
	return c.loss / float64(c.images), float64(c.correct) / float64(c.images)
}

// isTraining tells a training step from an evaluation.
func isTraining(g *dag.Graph) bool { return g.Name == nn.GraphTrain || g.Name == nn.GraphTrainTail }

// batchOf is the number of samples of one step, 0 for a graph no model made.
func batchOf(g *dag.Graph) int {
	b, ok := g.BufferByName("step.index")
	if !ok {
		return 0
	}
	return g.Buffers[b].Shape[0]
}

func (t *trainer) printEpoch(m nn.EpochMetrics, spent time.Duration) {
	if t.progress == nil {
		return
	}
	left := time.Duration(float64(spent) / float64(m.Epoch) * float64(t.w.opts.Epochs-m.Epoch))
	fmt.Fprintf(t.progress, "epoch %*d/%d  loss %.4f  accuracy %5.2f %%", len(fmt.Sprint(t.w.opts.Epochs)), m.Epoch, t.w.opts.Epochs, m.Loss, 100*m.Accuracy)
	if m.Tested {
		fmt.Fprintf(t.progress, "  test %5.2f %%", 100*m.TestAccuracy)
	}
	fmt.Fprintf(t.progress, "  %8.0f images/s", m.ImagesPerSec)
	if m.JoulesSource != "" {
		fmt.Fprintf(t.progress, "  %s J (%s)", threeDigits(m.Joules), m.JoulesSource)
	}
	fmt.Fprintf(t.progress, "  left %s\n", left.Round(100*time.Millisecond))
}
