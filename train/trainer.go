package train

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/execute"
	"dahl/execute/host"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/npz"
	"dahl/plan"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/train/metrics"
)

// Trainer runs the program of a network on this machine: it hands batches to the executor,
// and counts.
type Trainer struct {
	Leg    // that runs; after Run the first one, with the totals of all
	Runner *execute.Runner

	Epochs   []metrics.Epoch
	Steps    []metrics.Step
	Losses   []DeviceLoss    // devices that it went on without
	Later    []Leg           // once the training has ended: the legs after the first
	Diverged *Divergence     // the first loss of NaN or infinity; nil means none
	Saving   Saving          // what checkpoints have cost
	Load     host.Load       // what others did on the cores, once the training has ended
	Readings []meter.Reading // of meters, where [Workload.Train] has run it
	// MeterStates says what became of each of them.
	MeterStates []meter.MeterState
	Complete    bool

	// Predictions of an evaluation, for each position of each sample in the order of the test set.
	Predictions []Prediction

	// Callbacks while the training goes on; nil means none. They report the end of an epoch
	// with the time since the start, a lost device before the training goes on without it, and
	// a loss of NaN or infinity before the training goes on all the same.
	OnEpoch      func(m metrics.Epoch, spent time.Duration)
	OnLoss       func(DeviceLoss)
	OnDivergence func(*Divergence)
	// OnCheckpoint keeps a checkpoint, as often as the options say and at the end. The training
	// waits for it, and ends with its error. Nil means that nothing is kept.
	OnCheckpoint func(*Checkpoint) error

	feed     feeder
	live     live
	at       Progress // but its Steps, which the feeder counts
	enough   context.Context
	kept     stateCopy // the state before the present piece; nil means that nothing needs it
	past     []Leg     // ended by losses
	recorded []int     // steps of this leg and epoch, by graph

	resumed  bool      // it began with a checkpoint
	warmsUp  bool      // the first step of each graph does not count
	saved    Progress  // of the last checkpoint
	savedAt  time.Time // when it was written, or the training began
	saveTook time.Duration
}

// Start compiles the program and fills parameters and data. Close ends what it starts.
func (w *Workload) Start() (*Trainer, error) {
	if w.Options.OtherMachine {
		return nil, inputErrorf("platform %q is not this machine: its trainings are predicted only", w.Platform.Name)
	}
	if err := cmp.Or(w.Method().Schedule.Check(), w.checkTokens()); err != nil {
		return nil, asInput(err)
	}
	t := &Trainer{feed: w.feeder()}
	t.feed.live = &t.live
	if w.Options.Evaluate {
		t.Predictions = make([]Prediction, w.Data.Test.Len()*nn.Elems(w.Data.Test.Positions))
		t.feed.said = t.Predictions
		t.feed.outputs = make([]byte, w.outputBytes())
	}
	if err := t.open(w); err != nil {
		return nil, asInput(err)
	}
	if err := t.SetWeights(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// feeder feeds the steps of the program.
func (w *Workload) feeder() feeder {
	method := w.Method()
	return feeder{dtype: w.Options.Type.Arithmetic(), rate: method.Schedule.Rates(method.Optimizer.Rate(), w.stepsPerEpoch())}
}

// Method is the way in which the model is trained.
func (w *Workload) Method() nn.Defaults {
	d := w.Model.Defaults
	if w.Options.Optimizer != nil {
		d.Optimizer = w.Options.Optimizer
	}
	return d
}

// stepsPerEpoch is the number of training steps in an epoch.
func (w *Workload) stepsPerEpoch() (steps int) {
	for _, s := range w.epochOrder() {
		if nn.IsTraining(w.Program.Graphs[s.Graph]) {
			steps += s.Steps
		}
	}
	return steps
}

// Train starts a training, runs it between the meters of this machine, and closes it. With an
// error, what was done so far is in the trainer, if there is one.
func (w *Workload) Train(ctx context.Context) (*Trainer, error) {
	t, err := w.Start()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	meters := StartMeters(w.Platform)
	err = t.Run(ctx)
	var meterErr error
	t.Readings, meterErr = meters.Stop()
	t.MeterStates = meters.MeterStates()
	return t, errors.Join(err, meterErr)
}

// open begins a leg: it compiles the program for the workload's devices and fills in the
// data. With an error everything stays as it was.
func (t *Trainer) open(w *Workload) error {
	r, err := execute.New(w.Decision, execute.Options{Hooks: t.feed.hooks(), Poison: true, AnyClock: w.Options.AnyClock, Ranks: w.Options.Ranks})
	if err == nil && !w.Options.Stream {
		if err = w.Data.fill(r); err != nil {
			r.Close()
		}
	}
	if err != nil {
		return err
	}
	t.Leg, t.Runner = Leg{Workload: w, Measured: plan.NewTotals(schedule.Measured, w.Platform)}, r
	t.recorded = make([]int, len(w.Program.Graphs))
	t.live.use(r, w.Platform)
	return nil
}

// Close ends the workers, and what is read for them; the weights stay readable.
func (t *Trainer) Close() {
	t.live.use(nil, nil)
	t.Runner.Close()
	t.feed.close()
}

// initElements is how many elements of a parameter are initialised at a time: they take memory of their own,
// and a large parameter has little left.
const initElements = 4096

// SetWeights fills the parameters and running statistics with their first values.
func (t *Trainer) SetWeights() error {
	o := &t.Workload.Options
	init := o.Init
	if init == nil {
		init = func(p *nn.Parameter, from int, values []float64) error {
			p.Init(values, from, o.Seed)
			return nil
		}
	}
	buffer := make([]float64, initElements)
	for _, p := range t.Workload.Model.State() {
		a := npz.Array{Name: p.Name, Type: p.Type(o.Type), Data: t.Runner.Bytes(p.Name)[:0]}
		for from := 0; from < p.Elems(); from += len(buffer) {
			values := buffer[:min(len(buffer), p.Elems()-from)]
			if err := init(&p, from, values); err != nil {
				return err
			}
			a.Append(values)
		}
	}
	for _, a := range stateOf(t.Workload.Program) {
		if of, older := nn.OlderVersion(a.Name); older {
			copy(t.Runner.Bytes(a.Name), t.Runner.Bytes(of))
		}
	}
	if seed := t.Runner.Bytes(nn.DropoutSeed); seed != nil {
		binary.LittleEndian.PutUint64(seed, o.Seed)
	}
	return nil
}

// Weights are the parameters and running statistics as arrays of a file of weights.
func (t *Trainer) Weights() []npz.Array {
	var arrays []npz.Array
	for _, p := range t.Workload.Model.State() {
		arrays = append(arrays, npz.Array{Name: p.Name, Type: p.Type(t.Workload.Options.Type), Shape: p.Shape, Data: t.Runner.Bytes(p.Name)})
	}
	return arrays
}

// WeightsHash is the SHA-256 of the bytes of all parameters and running statistics in the model's order.
func (t *Trainer) WeightsHash() string { return HashOf(t.Weights()) }

// HashOf is the SHA-256 of the bytes of arrays, one after another.
func HashOf(arrays []npz.Array) string {
	h := sha256.New()
	for _, a := range arrays {
		h.Write(a.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Run trains for all epochs. With an error, what was done so far stays in t. When ctx ends, so
// does the training, between two steps, with a checkpoint and the cause of ctx.
func (t *Trainer) Run(ctx context.Context) error {
	defer t.endLegs()
	meter := host.StartLoad()
	defer func() { t.Load = meter.Load() }()
	o := &t.Workload.Options
	if o.KeepEvery > 0 || !o.ContinueOnNaN {
		t.kept = newStateCopy(t)
	}
	t.enough, ctx = ctx, context.WithoutCancel(ctx)
	begin := time.Now()
	t.savedAt = begin
	t.begins()
	if o.Checkpoint.AtBegin && t.at.Steps == 0 {
		if err := t.save(); err != nil {
			return err
		}
	}
	order := make([]int32, t.Workload.Data.Train.Len())
	for ; t.at.Epoch < o.Epochs; t.at = (Progress{Epoch: t.at.Epoch + 1, Losses: t.at.Losses}) {
		if o.Shuffle {
			t.Workload.Data.Train.Shuffle(order, o.Seed, t.at.Epoch)
		} else {
			data.InOrder(order)
		}
		m, err := t.epoch(ctx, order)
		if err != nil {
			return fmt.Errorf("epoch %d: %w", t.at.Epoch+1, err)
		}
		t.Epochs = append(t.Epochs, m)
		if t.OnEpoch != nil {
			t.OnEpoch(m, time.Since(begin))
		}
	}
	if o.ContinueOnNaN {
		t.noteWeights()
	}
	t.Complete = true
	if err := t.save(); err != nil {
		return err
	}
	return t.measureOne(ctx)
}

// begins decides whether the first steps count, and counts what was done before the training went on.
func (t *Trainer) begins() {
	t.warmsUp = slices.ContainsFunc(t.Workload.pieces(), func(p plan.Piece) bool { return p.First })
	t.Measured.Counted = Counted(t.Epochs).Plus(t.at.Trained.Counted)
}

// Counted sums the counted steps of all epochs.
func Counted(epochs []metrics.Epoch) (all plan.Counted) {
	for _, e := range epochs {
		all = all.Plus(plan.Counted{Steps: e.Steps, Samples: e.Samples, Time: time.Duration(math.Round(e.Seconds * 1e9)), Joules: e.Joules})
	}
	return all
}

// measureOne runs one more training step where a resumed training had none left, so that there
// is a schedule to show. The state stays.
func (t *Trainer) measureOne(ctx context.Context) error {
	if t.Measured.Main != nil {
		return nil
	}
	kept := newStateCopy(t)
	defer kept.restore(t.Runner)
	s, err := t.RunSteps(ctx, 0, 1, t.Samples(0, 1), true)
	if err != nil {
		return fmt.Errorf("measuring a step: %w", err)
	}
	p := plan.Piece{Segment: dag.Segment{Steps: 1}, Recorded: true, First: true} // so that it does not count
	report, err := energy.FromSchedule(s, t.Workload.Decision.Problem(0, 1, false))
	if err != nil {
		return err
	}
	t.Measured.Add(plan.Accounted{Schedule: s, Report: report, Epoch: t.at.Epoch, First: t.feed.stepsDone}, t.Workload.Program.Graphs[0], p)
	t.done = append(t.done, p)
	return nil
}

// RunSteps runs steps of one graph over samples of the training set or the test set in a
// given order, outside of the training and its totals.
func (t *Trainer) RunSteps(ctx context.Context, graph, steps int, order []int32, recorded bool) (*schedule.Schedule, error) {
	if err := t.begin(ctx, graph, steps, order); err != nil {
		return nil, err
	}
	return t.Runner.Run(ctx, graph, steps, recorded)
}

// begin prepares for steps of a graph over samples in an order.
func (t *Trainer) begin(ctx context.Context, graph, steps int, order []int32) (err error) {
	w := t.Workload
	g := w.Program.Graphs[graph]
	t.feed.begin(ctx, w.splitOf(g), order, nn.BatchOf(g), steps)
	if w.Options.Stream && w.Options.Ranks != nil {
		var note []byte
		note, err = t.feed.tell()
		t.Runner.Tell(note)
	}
	return err
}

// splitOf is the data set of a graph.
func (w *Workload) splitOf(g *dag.Graph) *data.Dataset {
	if nn.IsTraining(g) {
		return w.Data.Train
	}
	return w.Data.Test
}

// Samples lists the samples of some steps of a graph: the training set shuffled, the test set
// in turn.
func (t *Trainer) Samples(graph, steps int) []int32 {
	w, g := t.Workload, t.Workload.Program.Graphs[graph]
	n := nn.BatchOf(g) * steps
	if nn.IsTraining(g) {
		return shuffled(w.Data.Train.Len(), n, w.Options.Seed)
	}
	return InTurn(w.Data.Test.Len(), n)
}

// Results are the reports of the steps of the last piece.
func (t *Trainer) Results() []StepResult { return t.feed.results }

// TouchedBytes is the touched part of the arenas in the memory of the host, in whole cache lines. Untouched
// memory still holds the pattern that the executor put there.
func (t *Trainer) TouchedBytes() (sum int64, err error) {
	high, err := t.Runner.HighWater(t.Workload.Platform.HostMemory())
	for _, b := range high {
		sum += layout.Align(b)
	}
	return sum, err
}

// epoch runs what is left of the segments of one epoch: training in the given order, then the
// test set.
func (t *Trainer) epoch(ctx context.Context, order []int32) (metrics.Epoch, error) {
	at, segments := &t.at, t.Workload.epochOrder()
	m := metrics.Epoch{Epoch: at.Epoch + 1}
	var inOrder []int32
	if test := t.Workload.Data.Test; test != nil {
		inOrder = InTurn(test.Len(), test.Len())
	}
	clear(t.recorded)
	for ; at.Segment < len(segments); at.Segment, at.Within = at.Segment+1, 0 {
		count, source := &at.Tested, inOrder
		if nn.IsTraining(t.Workload.Program.Graphs[segments[at.Segment].Graph]) {
			count, source = &at.Trained, order
		}
		for left := segments[at.Segment]; at.Within < segments[at.Segment].Steps; {
			left.Steps = segments[at.Segment].Steps - at.Within
			if err := t.runPiece(ctx, at.Epoch+1, t.nextPiece(left), count, source); err != nil {
				return m, err
			}
			if err := t.saveWhenDue(); err != nil {
				return m, err
			}
			if t.enough.Err() != nil {
				err := t.save() // before the cause is reported, and with it
				return m, errors.Join(context.Cause(t.enough), err)
			}
		}
	}
	trained, tested := &at.Trained, &at.Tested
	positions := nn.Elems(t.Workload.Model.Positions())
	m.Loss, m.Accuracy = trained.means(positions)
	c := trained.Counted
	m.Steps, m.Samples, m.Seconds = c.Steps, c.Samples, c.Time.Seconds()
	if m.Modelled = t.Measured.Basis != energy.Unavailable; m.Modelled {
		m.Joules = c.Joules
	}
	if tested.Samples > 0 {
		m.Tested = true
		m.TestLoss, m.TestAccuracy = tested.means(positions)
	}
	return m, nil
}

// maxRecordedSpans bounds the spans of one piece; longer ones are executed in several, with
// a barrier between them.
const maxRecordedSpans = 4_000_000

// nextPiece is the first piece of the rest of a segment. Recorded steps come before others,
// in pieces of at most maxRecordedSpans. A piece ends where the state is to be kept.
func (t *Trainer) nextPiece(left dag.Segment) plan.Piece {
	g := t.Workload.Program.Graphs[left.Graph]
	p := plan.Piece{Segment: left, First: t.warmsUp && t.at.Epoch == 0 && t.at.Within == 0, Samples: t.Workload.counted(g)}
	if n := t.Workload.RecordedSteps() - t.recorded[left.Graph]; n > 0 {
		p.Recorded = true
		p.Steps = min(p.Steps, n, max(1, maxRecordedSpans/max(1, g.NumTasks())))
	}
	if every := t.Workload.Options.KeepEvery; every > 0 && nn.IsTraining(g) {
		p.Steps = min(p.Steps, every)
	}
	if every := t.Workload.Options.Checkpoint.Steps; every > 0 && nn.IsTraining(g) && t.OnCheckpoint != nil {
		p.Steps = min(p.Steps, max(1, every-(t.feed.stepsDone-t.saved.Steps)))
	}
	return p
}

// runPiece runs some steps of a graph over the samples of a split that come next: fewer where the
// training is to end or to be saved, none if a device failed that it goes on without, from the
// state before.
func (t *Trainer) runPiece(ctx context.Context, epoch int, p plan.Piece, count *tally, source []int32) error {
	if t.kept != nil {
		t.kept.keep(t.Runner)
	}
	t.live.begin(t.Workload, &t.at)
	enough, release := t.untilSaved()
	defer release()
	s, err := t.runSteps(ctx, enough, p, count, source, !t.Workload.Options.ContinueOnNaN)
	if errors.Is(enough.Err(), context.DeadlineExceeded) {
		t.Saving.Drain += time.Since(t.nextSave())
	}
	if device, failed := execute.FailedDevice(err); failed && t.Workload.Options.KeepEvery > 0 {
		return t.goOnWithout(ctx, device, epoch, err)
	}
	if at := (*lossNotFinite)(nil); errors.As(err, &at) {
		return t.stopAt(ctx, epoch, p, count, source, at)
	}
	if err != nil {
		return err
	}
	if p.Steps = s.Steps; p.Steps > 0 && !t.Workload.Options.ContinueOnNaN && nn.IsTraining(t.Workload.Program.Graphs[p.Graph]) && t.weightsNotFinite() != nil {
		return t.stopAt(ctx, epoch, p, count, source, nil)
	}
	if err := t.account(epoch, p, s, count); err != nil {
		return err
	}
	t.at.Within += p.Steps
	return nil
}

// runSteps runs the steps of a piece over the samples of a split that come next, fewer where
// enough ends. With stop, a loss that is not finite ends it.
func (t *Trainer) runSteps(ctx, enough context.Context, p plan.Piece, count *tally, source []int32, stop bool) (*schedule.Schedule, error) {
	t.feed.stop = stop
	if err := t.begin(ctx, p.Graph, p.Steps, source[count.Samples:]); err != nil {
		return nil, err
	}
	s, err := t.Runner.RunUntil(ctx, enough, p.Graph, p.Steps, p.Recorded)
	t.feed.stop = false
	return s, err
}

// account adds up a piece that has run.
func (t *Trainer) account(epoch int, p plan.Piece, s *schedule.Schedule, count *tally) error {
	g := t.Workload.Program.Graphs[p.Graph]
	batch, positions := nn.BatchOf(g), nn.Elems(t.Workload.Model.Positions())
	a := plan.Accounted{Schedule: s, Overlaps: t.Workload.Decision.Graphs[p.Graph].Overlaps(), Epoch: epoch, First: t.feed.stepsDone + 1}
	if p.Recorded {
		var err error
		if a.Report, err = energy.FromSchedule(s, t.Workload.Decision.Problem(p.Graph, s.Steps, false)); err != nil {
			return err
		}
		t.recorded[p.Graph] += p.Steps
	}
	count.Counted = count.Counted.Plus(t.Measured.Add(a, g, p))
	results := t.feed.results[:p.Steps]
	if batch == 0 { // the graph has no samples, and reports nothing
		results = nil
	}
	for k, r := range results {
		count.add(r, batch, positions)
		step := t.feed.stepsDone
		if nn.IsTraining(g) {
			step += k + 1
			t.Steps = append(t.Steps, metrics.Step{Epoch: epoch, Step: step, Samples: batch, Loss: r.Loss, Correct: r.Correct})
		}
		t.note(epoch, step, !nn.IsTraining(g), r.Loss)
	}
	if nn.IsTraining(g) {
		t.feed.stepsDone += p.Steps
	}
	if n := len(t.done) - 1; n >= 0 && t.at.Within > 0 && t.Workload.Options.KeepEvery == 0 && t.done[n].Recorded == p.Recorded {
		t.done[n].Steps += p.Steps // a checkpoint came between
	} else {
		t.done = append(t.done, p)
	}
	return nil
}
