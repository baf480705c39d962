package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dahl/execute"
	"dahl/nn"
	"dahl/platform"
)

func newCalibrate(*app) *cobra.Command {
	o := options{Policy: "heft", Epochs: 1}
	var models []string
	var batches []int
	var out string
	var perModel time.Duration
	cmd := &cobra.Command{
		Use:   "calibrate --out FILE",
		Short: "measure this machine and write it as a platform file",
		Long: `calibrate measures every kernel variant over the shapes that the given networks
need, alone and with all cores busy, then the chosen variants inside real training
steps; and the memory's bandwidth, the cost of dispatching a task and the caches.
It writes a platform file for simulate and execute. Powers are guesses unless the
file is edited: no sensor is read.`,
		Example: "  dahl calibrate --out here.toml --model lenet5 --model mlp --batch 32 --batch 64",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return calibrateFile(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), &o, models, batches, perModel, out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "platform `file` to write")
	f.StringArrayVar(&models, "model", []string{"digits-cnn", "dahl-cnn", "lenet5", "mlp"}, "network whose shapes are measured; repeat for more")
	f.IntSliceVar(&batches, "batch", nil, "batch sizes (default: each model's)")
	f.StringVar(&o.DType, "dtype", "float32", "element type: float32 or float64")
	f.StringVar(&o.Lowering, "lowering", "", "granularity per layer: a TOML `file`")
	f.IntVar(&o.Workers, "workers", 0, "CPU cores to use (0: all)")
	f.DurationVar(&perModel, "time", 5*time.Second, "about how long to measure for each model and batch")
	must(cmd.MarkFlagRequired("out"))
	return cmd
}

// must is for errors that only a mistake in the program can cause.
func must(err error) {
	if err != nil {
		panic("dahl: " + err.Error())
	}
}

func calibrateFile(ctx context.Context, stdout, stderr io.Writer, o *options, models []string, batches []int, perModel time.Duration, out string) error {
	if err := checkWritable(out); err != nil {
		return err
	}
	p, err := thisMachine(o)
	if err != nil {
		return err
	}
	if len(batches) == 0 {
		batches = []int{0}
	}
	var spread float64
	for _, model := range models {
		for _, batch := range batches {
			c := *o
			c.Model, c.Batch = model, batch
			m, train, test, err := trainingData(&c)
			if err != nil {
				return err
			}
			bar := newProgressBar(stderr, fmt.Sprintf("%s batch %d", m.Name, c.Batch))
			result, err := calibrate(ctx, &c, m, p, train, test, perModel, bar.set)
			bar.done()
			if err != nil {
				return err
			}
			p, spread = result.Platform, max(spread, result.RepeatSpread)
		}
	}
	if err := writeTo(out, p.WriteTOML); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: %s, %d workers, %d models; repeat spread at most %.1f %% (median of a model's kernels)\n",
		out, p.Name, len(p.Workers), len(p.Models), 100*spread)
	return nil
}

// inSituShare is the part of a calibration spent in real steps, for each number
// of workers.
const inSituShare = 0.2

// calibrate measures what one training needs: every variant of its kernels by
// itself, which chooses among them, then the chosen ones inside real steps, which
// is what predicts best. The platform it returns has both.
func calibrate(ctx context.Context, o *options, m *nn.Model, p *platform.Platform, train, test *nn.Dataset, maxTime time.Duration, progress func(done, total int, what string)) (*execute.Calibration, error) {
	n := sampleCounts(train, test)
	w, err := newWorkload(o, m, p, n)
	if err != nil {
		return nil, err
	}
	var variants []string
	if o.Variant != "" {
		variants = []string{o.Variant}
	}
	alone, err := execute.Calibrate(ctx, w.program.Graphs, execute.CalibrateOptions{
		Platform: p, Variants: variants, MaxTime: time.Duration(float64(maxTime) * (1 - 2*inSituShare)), Progress: progress,
	})
	if err != nil {
		return nil, err
	}
	result := &execute.Calibration{Platform: alone.Platform, RepeatSpread: alone.RepeatSpread}
	for _, workers := range inSituWorkers(o, alone.Platform) {
		c := *o
		c.Workers = workers
		q, err := withWorkers(alone.Platform, workers)
		if err != nil {
			return nil, err
		}
		models, spread, err := measureSteps(ctx, &c, m, q, train, test, time.Duration(float64(maxTime)*inSituShare))
		if err != nil {
			return nil, err
		}
		for _, model := range models {
			result.Platform.Models = execute.PutModel(result.Platform.Models, model)
		}
		result.RepeatSpread = spread
	}
	return result, result.Platform.Complete()
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

// measureSteps trains for a while and takes each kernel's times from the steps.
func measureSteps(ctx context.Context, o *options, m *nn.Model, p *platform.Platform, train, test *nn.Dataset, maxTime time.Duration) ([]platform.Model, float64, error) {
	w, err := newWorkload(o, m, p, sampleCounts(train, test))
	if err != nil {
		return nil, 0, err
	}
	t, err := newTrainer(w, train, test, nil)
	if err != nil {
		return nil, 0, err
	}
	defer t.runner.Close()
	var models []platform.Model
	var spread float64
	for g := range w.program.Graphs {
		s, err := w.simulateGraph(ctx, g, 2)
		if err != nil {
			return nil, 0, err
		}
		// The rarer graphs of the program get less time.
		budget := maxTime / time.Duration(1+min(g, 1)*5)
		steps := int(max(8, min(200, budget/max(1, stepTime(s)))))
		graph := w.program.Graphs[g]
		batch := batchOf(graph)
		data := train.Len()
		if !isTraining(graph) {
			data = test.Len()
		}
		t.feeder.begin(cyclic(data, batch*steps), batch, steps)
		measured, sp, err := execute.CalibrateInSitu(ctx, t.runner, execute.InSituOptions{Graph: g, Warmup: min(steps, 10), Steps: steps})
		if err != nil {
			return nil, 0, err
		}
		models = append(models, measured...)
		if g == 0 {
			spread = sp
		}
	}
	return models, spread, nil
}

// cyclic is n indices that go round a data set.
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
