package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dahl/dag"
	"dahl/execute"
	"dahl/nn"
	"dahl/platform"
)

// calibrateFlags are the flags of calibrate beside those of options.
type calibrateFlags struct {
	out      string
	models   []string
	batches  []int
	perModel time.Duration
	sweep    bool
	force    bool
}

func newCalibrate(*app) *cobra.Command {
	o := options{Policy: "heft", Epochs: 1}
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate --out FILE",
		Short: "measure this machine and write it as a platform file",
		Long: `calibrate measures every kernel variant over the shapes that the given networks
need, alone and with all cores busy, with the operands of the call before, with
operands that the second-level cache has lost and with some that all caches have
lost; then the chosen variants inside real training steps; and the memory's
bandwidth, the cost of dispatching and handing over a task, and the caches. With --sweep it measures the common operations over a grid of sizes instead,
which needs no network and answers for any through a fit with error bars.

It writes a platform file for simulate and execute, at most once a second while it
grows: after an interruption, what was measured is in it, and the same command goes
on from there.
Models are kept until --force measures them anew; do so after a new version of dahl.
Calls whose times do not settle, or while others use the cores, are measured up to
five times and then marked as unsteady. Powers are guesses unless the file is
edited: no sensor is read.`,
		Example: `  dahl calibrate --out here.toml --model lenet5 --model mlp --batch 32 --batch 64
  dahl calibrate --out here.toml --model lenet5 --batch 64 --lowering best
  dahl calibrate --out here.toml --sweep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "platform `file` to write, or to complete")
	flags.StringArrayVar(&f.models, "model", []string{"digits-cnn", "dahl-cnn", "lenet5", "mlp"}, "network whose shapes are measured; repeat for more")
	flags.IntSliceVar(&f.batches, "batch", nil, "batch sizes (default: each model's)")
	flags.StringVar(&o.DType, "dtype", "float32", "element type: float32 or float64")
	flags.StringVar(&o.Lowering, "lowering", "", "layout, fusion and tiles of the layers: a TOML `file`, or best: the default with each of the tiles that --lowering best of other commands tries")
	flags.StringVar(&o.Variant, "variant", "", "kernel variant to measure (default: all but the reference)")
	flags.IntVar(&o.Workers, "workers", 0, "CPU cores to use (0: all)")
	flags.DurationVar(&f.perModel, "time", 5*time.Second, "about how long to measure for each model and batch (with --lowering best: and tile), or for the sweep")
	flags.BoolVar(&f.sweep, "sweep", false, "measure the common operations over a grid of sizes, no network")
	flags.BoolVar(&f.force, "force", false, "measure what the file already holds again")
	exclude(cmd, "sweep", "model")
	exclude(cmd, "sweep", "batch")
	exclude(cmd, "sweep", "lowering")
	must(cmd.MarkFlagRequired("out"))
	return cmd
}

// must is for errors that only a mistake in the program can cause.
func must(err error) {
	if err != nil {
		panic("dahl: " + err.Error())
	}
}

func (f *calibrateFlags) run(ctx context.Context, stdout, stderr io.Writer, o *options) error {
	if err := f.check(o); err != nil {
		return err
	}
	p, err := f.startingPoint(o)
	if err != nil {
		return err
	}
	file := &growingFile{path: f.out}
	var sum execute.Calibration
	err = f.measure(ctx, stderr, o, p, file, &sum)
	if e := file.close(); err == nil {
		err = e
	}
	if err != nil && file.platform != nil {
		return fmt.Errorf("%w; %s has the %d models measured so far, and the same command goes on from there", err, f.out, len(file.platform.Models))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: %s, %d workers, %d models: %d measured by themselves, %d kept; repeat spread at most %.1f %% (median of a model's kernels)\n",
		f.out, sum.Platform.Name, len(sum.Platform.Workers), len(sum.Platform.Models), sum.Measured, sum.Skipped, 100*sum.RepeatSpread)
	if sum.Unsteady > 0 {
		fmt.Fprintf(stdout, "%d of them never settled and are marked unsteady; measure them again with --force when the machine is quiet\n", sum.Unsteady)
	}
	return nil
}

// check refuses flags that nothing can be measured with, before anything is.
func (f *calibrateFlags) check(o *options) error {
	if f.perModel <= 0 {
		return inputErrorf("--time %v: want a positive time", f.perModel)
	}
	if len(f.batches) > 0 {
		if err := checkNumbers("batch", f.batches...); err != nil {
			return err
		}
	}
	return firstError(checkModels(f.models...), checkRealType(o.DType), checkVariant(o.Variant), checkWritable(f.out))
}

// startingPoint is the platform in the file, if it is of this machine, so that what it
// holds need not be measured again; otherwise the detected one.
func (f *calibrateFlags) startingPoint(o *options) (*platform.Platform, error) {
	here, err := thisMachine(o)
	if err != nil || f.force {
		return here, err
	}
	p, err := platform.Load(f.out)
	if errors.Is(err, fs.ErrNotExist) {
		return here, nil
	}
	if err != nil {
		return nil, asInput(fmt.Errorf("%w; --force writes the file anew", err))
	}
	d, e := &p.Devices[0], &here.Devices[0]
	if p.Name != here.Name || d.L2Bytes != e.L2Bytes || d.Count != e.Count {
		return nil, inputErrorf("%s is of %s with %d workers, this is %s with %d; choose another file, or --force to write it anew",
			f.out, p.Name, d.Count, here.Name, e.Count)
	}
	return p, nil
}

// measure goes through the networks, or sweeps, and adds up in sum.
func (f *calibrateFlags) measure(ctx context.Context, stderr io.Writer, o *options, p *platform.Platform, file *growingFile, sum *execute.Calibration) error {
	sum.Platform = p
	add := func(c *execute.Calibration) {
		if c != nil {
			sum.Platform, sum.RepeatSpread = c.Platform, max(sum.RepeatSpread, c.RepeatSpread)
			sum.Measured, sum.Skipped, sum.Unsteady = sum.Measured+c.Measured, sum.Skipped+c.Skipped, sum.Unsteady+c.Unsteady
		}
	}
	if f.sweep {
		bar := newProgressBar(stderr, "sweep")
		defer bar.done()
		c, err := sweep(ctx, o, p, calibration{time: f.perModel, far: true, resume: !f.force, progress: bar.set, save: file.save})
		add(c)
		return err
	}
	batches := f.batches
	if len(batches) == 0 {
		batches = []int{0}
	}
	for _, model := range f.models {
		for _, batch := range batches {
			c := *o
			c.Model, c.Batch = model, batch
			if err := f.network(ctx, stderr, &c, file, add, sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// network measures what one network needs, with one lowering or with all tiles.
func (f *calibrateFlags) network(ctx context.Context, stderr io.Writer, o *options, file *growingFile, add func(*execute.Calibration), sum *execute.Calibration) error {
	m, train, test, err := trainingData(o)
	if err != nil {
		return err
	}
	adapts, names := []func(*dag.Lowering, int){nil}, []string{""}
	if o.Lowering == bestTiles {
		t, err := o.tilings(m, sum.Platform)
		if err != nil {
			return err
		}
		adapts, names = nil, nil
		for _, samples := range t.sizes {
			adapts, names = append(adapts, t.adapt(samples)), append(names, fmt.Sprintf(", %d per task of %s", samples, t.layer))
		}
	}
	for i, adapt := range adapts {
		c := *o
		c.adapt = adapt
		bar := newProgressBar(stderr, fmt.Sprintf("%s batch %d%s", m.Name, c.Batch, names[i]))
		result, err := calibrate(ctx, &c, m, sum.Platform, train, test, calibration{time: f.perModel, far: true, resume: !f.force, progress: bar.set, save: file.save})
		bar.done()
		add(result)
		if err != nil {
			return err
		}
	}
	return nil
}

// growingFile is a platform file that is written while it grows.
type growingFile struct {
	path     string
	platform *platform.Platform // the last one given to save
	written  time.Time
	stale    bool
}

// savePeriod is the least time between two writes.
const savePeriod = time.Second

func (f *growingFile) save(p *platform.Platform) error {
	f.platform, f.stale = p, true
	if time.Since(f.written) < savePeriod {
		return nil
	}
	return f.close()
}

// close writes what has not been written yet.
func (f *growingFile) close() error {
	if !f.stale {
		return nil
	}
	f.written, f.stale = time.Now(), false
	return writeTo(f.path, f.platform.WriteTOML)
}

// calibration says how one network is measured.
type calibration struct {
	time     time.Duration // about
	resume   bool          // keep what the platform holds
	far      bool          // also measure with operands that all caches have lost
	progress func(done, total int, what string)
	save     func(*platform.Platform) error // nil: nothing is kept on the way
}

const (
	// inSituShare is the part of a calibration spent in real steps, for each number
	// of workers.
	inSituShare = 0.2
	// inSituRuns is how often the steps are measured, each time planned with what is
	// known by then, compiled and allocated anew: steps differ more from run to run
	// than within one.
	inSituRuns = 4
)

// calibrate measures what one training needs: every variant of its kernels by
// itself, which chooses among them, then the chosen ones inside real steps, which
// is what predicts best. The platform it returns has both.
func calibrate(ctx context.Context, o *options, m *nn.Model, p *platform.Platform, train, test *nn.Dataset, c calibration) (*execute.Calibration, error) {
	w, err := newWorkload(o, m, p, sampleCounts(train, test))
	if err != nil {
		return nil, err
	}
	result, err := execute.Calibrate(ctx, w.program.Graphs, execute.CalibrateOptions{
		Platform: p, Variants: o.variants(), MaxTime: time.Duration(float64(c.time) * (1 - 2*inSituShare)),
		Far: c.far, Resume: c.resume, Progress: c.progress, Save: c.save,
	})
	if err != nil {
		return result, err
	}
	for _, workers := range inSituWorkers(o, result.Platform) {
		if c.resume && w.knowsSteps(result.Platform, workers) {
			continue
		}
		s, err := newStepCalibration(o, m, result.Platform, workers, train, test)
		if err != nil {
			return result, err
		}
		for run := range inSituRuns {
			if c.progress != nil {
				c.progress(run, inSituRuns, fmt.Sprintf("steps on %d workers", workers))
			}
			if err := s.run(ctx, time.Duration(float64(c.time)*inSituShare)/inSituRuns); err != nil {
				return result, err
			}
		}
		s.putInto(result.Platform)
		if c.save != nil {
			if err := c.save(result.Platform); err != nil {
				return result, err
			}
		}
	}
	return result, result.Platform.Complete()
}

// variants are those to be measured: the pinned one, or all.
func (o *options) variants() []string {
	if o.Variant == "" {
		return nil
	}
	return []string{o.Variant}
}

// knowsSteps reports whether every call of the program has a time inside steps on a
// number of workers.
func (w *workload) knowsSteps(p *platform.Platform, workers int) bool {
	type call struct{ op, elem, shape string }
	known := map[call]bool{}
	for i := range p.Models {
		if m := &p.Models[i]; m.StepNs > 0 && m.Active == workers {
			known[call{m.Op, m.Type, m.Shape}] = true
		}
	}
	for _, g := range w.program.Graphs {
		for t := range g.Tasks {
			if task := &g.Tasks[t]; !known[call{task.Op, task.Type.String(), task.Shape}] {
				return false
			}
		}
	}
	return true
}

// inSituWorkers are the numbers of workers whose steps are measured.
func inSituWorkers(o *options, p *platform.Platform) []int {
	n := p.Devices[0].Count
	if o.Workers == 0 && n > 1 {
		return []int{1, n}
	}
	return []int{n}
}

// withWorkers is the platform with another number of units of its first device.
func withWorkers(p *platform.Platform, n int) (*platform.Platform, error) {
	q := *p
	q.Devices, q.Models = slices.Clone(p.Devices), slices.Clone(p.Models)
	q.Devices[0].Count = n
	return &q, asInput(q.Complete())
}

// stepCalibration takes each call's times from the steps of real trainings on one
// number of workers.
type stepCalibration struct {
	opts        options
	model       *nn.Model
	platform    *platform.Platform // with as many workers, and all that is known so far
	train, test *nn.Dataset
	times       []execute.StepTimes // by graph of the program
}

func newStepCalibration(o *options, m *nn.Model, p *platform.Platform, workers int, train, test *nn.Dataset) (*stepCalibration, error) {
	s := &stepCalibration{opts: *o, model: m, train: train, test: test}
	s.opts.Workers = workers
	var err error
	s.platform, err = withWorkers(p, workers)
	return s, err
}

// run plans with what is known, trains for about some time and learns from it.
func (s *stepCalibration) run(ctx context.Context, maxTime time.Duration) error {
	w, err := newWorkload(&s.opts, s.model, s.platform, sampleCounts(s.train, s.test))
	if err != nil {
		return err
	}
	t, err := newTrainer(w, s.train, s.test, nil)
	if err != nil {
		return err
	}
	defer t.runner.Close()
	if s.times == nil {
		s.times = make([]execute.StepTimes, len(w.program.Graphs))
	}
	runtime.GC() // not while the workers have the cores
	for g := range w.program.Graphs {
		// The rarer graphs of the program get less time.
		steps, err := t.prepare(ctx, g, maxTime/time.Duration(1+min(g, 1)*5))
		if err != nil {
			return err
		}
		if err := execute.CalibrateInSitu(ctx, t.runner, execute.InSituOptions{Graph: g, Warmup: min(steps, warmupSteps), Steps: steps}, &s.times[g]); err != nil {
			return err
		}
	}
	s.putInto(s.platform)
	return nil
}

// Bounds of the steps that are measured in one run, and those that warm it up.
const (
	minMeasuredSteps, maxMeasuredSteps = 8, 400
	warmupSteps                        = 10
)

// prepare chooses how many steps of a graph run for about some time and hands the
// feeder their samples.
func (t *trainer) prepare(ctx context.Context, graph int, budget time.Duration) (steps int, err error) {
	predicted, err := t.w.simulateGraph(ctx, graph, 2)
	if err != nil {
		return 0, err
	}
	steps = int(max(minMeasuredSteps, min(maxMeasuredSteps, budget/max(1, stepTime(predicted)))))
	g := t.w.program.Graphs[graph]
	order := shuffled(t.train.Len(), batchOf(g)*steps, t.w.opts.Seed)
	if !isTraining(g) {
		order = cyclic(t.test.Len(), batchOf(g)*steps)
	}
	t.feeder.begin(order, batchOf(g), steps)
	return steps, nil
}

// putInto writes what was learnt into a platform. A call that several graphs make has
// the time of the first: the training step; so has what lies between calls.
func (s *stepCalibration) putInto(p *platform.Platform) {
	for g := range slices.Backward(s.times) {
		for _, m := range s.times[g].Models() {
			p.Models = execute.PutModel(p.Models, m)
		}
	}
	s.times[0].PutInto(&p.Devices[0])
}

// shuffled is n indices that go round a data set, each time in a new order, as
// training does: loading gathers them from all over it.
func shuffled(size, n int, seed uint64) []int32 {
	order := make([]int32, 0, n+size)
	pass := make([]int32, size)
	for epoch := 0; len(order) < n; epoch++ {
		nn.Shuffle(pass, seed, epoch)
		order = append(order, pass...)
	}
	return order[:n]
}

// cyclic is n indices that go round a data set as it lies, as evaluation does.
func cyclic(size, n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i % size)
	}
	return order
}

// writeTo writes a file under a temporary name and renames it.
func writeTo(path string, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return writeFile(path, b.Bytes())
}

// progressBar shows on a terminal how far a long measurement is.
type progressBar struct {
	w     io.Writer
	title string
	shown bool
}

func newProgressBar(w io.Writer, title string) *progressBar {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		w = nil
	}
	return &progressBar{w: w, title: title}
}

func (b *progressBar) set(done, total int, what string) {
	if b.w == nil || total == 0 {
		return
	}
	const width = 30
	n := width * done / total
	fmt.Fprintf(b.w, "\r\x1b[K%s [%s%s] %d/%d %.40s", b.title, bar[:n], space[:width-n], done, total, what)
	b.shown = true
}

func (b *progressBar) done() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

const (
	bar   = "##############################"
	space = "                              "
)

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
