package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/execute"
	"dahl/kernels"
)

// peersOptions say what is measured beside PyTorch.
type peersOptions struct {
	python     string
	platform   string
	models     []string
	batches    []int
	threads    []int
	device     string
	precisions []string
	modes      []string
	settings   []string
	repeats    int
	repetition time.Duration
	energy     time.Duration
	layers     bool
	out        string
	json       bool
}

func newPeers() *cobra.Command {
	var p peersOptions
	cmd := measurement(&cobra.Command{
		Use:   "peers",
		Short: "training and inference beside PyTorch, in images per second",
		Long: `peers runs dahl and PyTorch alternately in one run: float32, the same network,
batch, optimiser, first weights and images. Equal losses of the first steps prove
that it is the same network. PyTorch runs in its best setting: every environment
(default, tuned, AVX-512, threads of BLAS) with every memory format is tried first,
for inference eagerly and as frozen TorchScript, and the best three then alternate
with dahl. The figures are medians; the ratio is dahl's over the best of these.

With --device cuda both run on the first GPU, in each of --precisions, dahl by its own
kernels, or with --platform by whatever was measured to be fastest in that precision. The best
eager setting of PyTorch and the best compiled one alternate with it. PyTorch's images
lie in the GPU's memory as float32; dahl's lie there as bytes, which it gathers and
converts in every step. PyTorch reads its losses after the last step. A setting that does
not run here is left out and said.

dahl gathers its images in the shuffled order of training, converts them from bytes
and fetches its loss in every step; PyTorch gets ready float32 tensors. A repetition in which other processes needed the cores is
done again, within limits; each row says how many cores others kept busy.`,
		Example: "  dahl-bench peers --python /usr/bin/python3 --models lenet5 --batches 64 --threads 2",
	}, p.run)
	f := cmd.Flags()
	f.StringVar(&p.python, "python", "python3", "Python `interpreter` that has PyTorch and NumPy")
	f.StringVar(&p.platform, "platform", "", "this machine: a platform `file` that calibrate wrote (default: detected)")
	f.StringSliceVar(&p.models, "models", []string{"dahl32", "dahl-cnn", "lenet5", "mlp", "cifar-cnn", "digits-cnn"}, "networks")
	f.IntSliceVar(&p.batches, "batches", []int{32, 64, 128}, "batch sizes")
	f.IntSliceVar(&p.threads, "threads", []int{1, 2}, "numbers of CPU cores")
	f.StringVar(&p.device, "device", kernels.DeviceCPU, "cpu, or cuda for the first GPU, where --threads says nothing")
	f.StringSliceVar(&p.precisions, "precisions", []string{precisionFloat32, kernels.TF32Precision}, "of the products on a GPU")
	f.StringSliceVar(&p.modes, "modes", []string{modeTrain, modeInfer}, "train, infer or both")
	f.StringSliceVar(&p.settings, "settings", nil, "PyTorch's settings to try, by their names in the report (default: all)")
	f.IntVar(&p.repeats, "repeats", 5, "repetitions of each contestant")
	f.DurationVar(&p.repetition, "repetition", 300*time.Millisecond, "about how long one repetition runs")
	f.DurationVar(&p.energy, "energy", 0, "also count the joules of training, where there is a meter, in windows of about so long (several seconds)")
	f.BoolVar(&p.layers, "layers", false, "also say how near every operation of the training step comes to the machine's limits")
	f.StringVar(&p.out, "out", "", "also write the tables as a Markdown `file`")
	f.BoolVar(&p.json, "json", false, "print one JSON object instead of tables")
	return cmd
}

// precisionFloat32 is that of products where none rounds their factors.
const precisionFloat32 = "float32"

// peerUnit is what the contestants of a cell run on: a number of CPU cores, or a GPU
// with a precision.
type peerUnit struct {
	Device    string `json:"device"`
	Threads   int    `json:"threads"`
	Precision string `json:"precision"`
}

func (u peerUnit) String() string {
	if u.Device == kernels.CUDA {
		return "GPU, " + u.Precision
	}
	return fmt.Sprintf("%d cores", u.Threads)
}

// units are those that the options name.
func (p *peersOptions) units() []peerUnit {
	var all []peerUnit
	if p.device == kernels.CUDA {
		for _, precision := range p.precisions {
			all = append(all, peerUnit{Device: kernels.CUDA, Threads: 1, Precision: precision})
		}
		return all
	}
	for _, n := range p.threads {
		all = append(all, peerUnit{Device: kernels.DeviceCPU, Threads: n, Precision: precisionFloat32})
	}
	return all
}

// peerBench is a run of the command: its workers and what it has measured.
type peerBench struct {
	opts   *peersOptions
	dir    string // of the worker's program, weights and data
	script string
	stderr io.Writer
	report peerReport
}

func (p *peersOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := p.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dahl-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &peerBench{opts: p, dir: dir, script: filepath.Join(dir, "torch_worker.py"), stderr: stderr, report: peerReport{Build: cli.ThisBuild()}}
	if err := os.WriteFile(b.script, workerProgram, 0o666); err != nil {
		return err
	}
	var failed error
	for _, u := range p.units() {
		cells, err := b.on(ctx, u)
		if err != nil {
			return err
		}
		failed = errors.Join(failed, cells)
	}
	if p.json {
		err = cli.PrintJSON(stdout, &b.report)
	} else {
		err = b.report.print(stdout)
	}
	return errors.Join(err, failed)
}

// check refuses options that no cell of the tables could have, before anything runs.
func (p *peersOptions) check() error {
	if p.repetition <= 0 || p.energy < 0 {
		return cli.InputErrorf("--repetition %v, --energy %v: want a positive time, and one that is not negative", p.repetition, p.energy)
	}
	_, device := chosen("device", []string{p.device}, []string{kernels.DeviceCPU, kernels.CUDA})
	_, precision := chosen("precisions", p.precisions, []string{precisionFloat32, kernels.TF32Precision})
	_, mode := chosen("modes", p.modes, []string{modeTrain, modeInfer})
	_, setting := chosen("settings", p.settings, settingsOn(p.device))
	if setting != nil {
		setting = fmt.Errorf("%w with --device %s", setting, p.device)
	}
	err := cmp.Or(cli.CheckNumbers("repeats", p.repeats), cli.CheckNumbers("batches", p.batches...), cli.CheckNumbers("threads", p.threads...),
		cli.CheckModels(p.models...), cli.CheckWritable(p.out), device, precision, mode, setting)
	if err != nil {
		return err
	}
	if n := slices.Max(p.threads); n > runtime.NumCPU() {
		return cli.InputErrorf("--threads %d: this machine has %d cores", n, runtime.NumCPU())
	}
	if n := slices.Max(p.batches); n > peerSamples {
		return cli.InputErrorf("--batches %d: want at most %d, the images that both sides hold", n, peerSamples)
	}
	if p.platform != "" {
		_, err = cli.LoadPlatform(p.platform)
	}
	return err
}

// on measures all networks and batches on a unit, with one PyTorch process per setting.
// What goes wrong in a cell does not end the others.
func (b *peerBench) on(ctx context.Context, u peerUnit) (failed, err error) {
	var workers []*torchWorker
	defer func() {
		for _, w := range workers {
			w.close()
		}
	}()
	for _, s := range settingsFor(u, b.opts.settings) {
		w, err := startTorch(ctx, b.opts.python, b.script, s, u.Threads)
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
		said, err := w.ask(torchRequest{Do: "describe"})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx) // which ends the worker, too
		}
		if err != nil {
			return nil, cli.InputErrorf("%w; name an interpreter that has PyTorch and NumPy with --python", err)
		}
		if s.compile == "" {
			b.report.torchVersion = said.torchVersion
		}
		setting := settingReport{Name: s.name, Doc: s.doc, Capability: said.Capability}
		if !slices.Contains(b.report.Settings, setting) {
			b.report.Settings = append(b.report.Settings, setting)
		}
	}
	for _, model := range b.opts.models {
		for _, batch := range b.opts.batches {
			err := b.cell(ctx, model, batch, u, workers)
			if ctx.Err() != nil {
				return nil, errors.Join(context.Cause(ctx), b.report.save(b.opts.out)) // the workers are gone, too
			}
			if err != nil {
				failed = errors.Join(failed, b.leaveOut(model, batch, u, err))
			}
			if err := b.report.save(b.opts.out); err != nil {
				return failed, err
			}
		}
	}
	return failed, nil
}

// leaveOut notes what the tables lack, and why.
func (b *peerBench) leaveOut(model string, batch int, u peerUnit, err error) error {
	err = fmt.Errorf("%s, batch %d, %v: %w", model, batch, u, err)
	b.report.LeftOut = append(b.report.LeftOut, err.Error())
	fmt.Fprintln(b.stderr, "left out:", err)
	return err
}

// cell measures one network, batch and unit.
func (b *peerBench) cell(ctx context.Context, model string, batch int, u peerUnit, workers []*torchWorker) error {
	ours, err := newOurSide(ctx, b.opts, model, batch, u)
	if err != nil {
		return err
	}
	defer ours.Close()
	open, err := ours.export(b.dir)
	if err != nil {
		return err
	}
	var pids []int
	for _, w := range workers {
		pids = append(pids, w.cmd.Process.Pid)
	}
	load := func() func() execute.Load { return execute.StartLoad(pids...).Load }
	var theirs []*contestant
	for _, w := range workers {
		c, err := w.contestants(ours.Workload.Model, open)
		if err != nil {
			_ = b.leaveOut(model, batch, u, err) // the other settings go on
			continue
		}
		theirs = append(theirs, c...)
	}
	for _, mode := range b.opts.modes {
		other := func(c *contestant) bool { return (c.mode == modeTrain) != (mode == modeTrain) }
		row := peerRow{Model: model, Batch: batch, peerUnit: u, Mode: mode}
		best, err := b.row(&row, ours.contestant(mode), slices.DeleteFunc(slices.Clone(theirs), other), load)
		if err != nil {
			return err
		}
		if mode == modeTrain && b.opts.energy > 0 {
			row.Energy, err = measureEnergy(ours.Workload.Platform, batch, b.opts.energy, best)
		}
		b.report.Rows = append(b.report.Rows, row) // its rates also without joules
		if err != nil {
			return err
		}
		fmt.Fprintf(b.stderr, "%s, batch %d, %v, %s: %.0f and %.0f images/s, ratio %.2f\n", model, batch, u, mode, row.Ours, row.Torch, row.Ratio)
	}
	if !b.opts.layers || u.Device != kernels.DeviceCPU {
		return nil
	}
	layers, err := ours.layers()
	b.report.Layers = append(b.report.Layers, layers...)
	return err
}

// finalists is how many of PyTorch's settings alternate with dahl on cores; the search
// that chooses them is short.
const finalists = 3

// finalistsOf are those that alternate with dahl, of settings the fastest of which comes
// first: on cores some, on a GPU the best of each kind.
func finalistsOf(u peerUnit, theirs []*contestant) []*contestant {
	if u.Device == kernels.DeviceCPU {
		return theirs[:min(finalists, len(theirs))]
	}
	return bestOfKinds(theirs)
}

// bestOfKinds is the first contestant of each kind.
func bestOfKinds(sorted []*contestant) (best []*contestant) {
	for _, kind := range []string{kindEager, kindCompiled} {
		if i := slices.IndexFunc(sorted, func(c *contestant) bool { return c.kind == kind }); i >= 0 {
			best = append(best, sorted[i])
		}
	}
	return best
}

// row compares the losses, finds PyTorch's best settings and alternates them with
// dahl. It returns dahl and the best of the others, of each kind.
func (b *peerBench) row(row *peerRow, ours *contestant, theirs []*contestant, load func() func() execute.Load) (best []*contestant, err error) {
	theirs, err = sameNetwork(row, ours, theirs, func(err error) {
		_ = b.leaveOut(row.Model, row.Batch, row.peerUnit, err) // the other settings go on
	})
	if err != nil {
		return nil, err
	}
	if err := newWatch(load, row.Threads, len(theirs)).search(theirs, b.opts.repetition/3); err != nil {
		return nil, err
	}
	for _, c := range theirs {
		row.Searched = append(row.Searched, searchedSetting{c.label, float64(row.Batch) / c.step.Seconds()})
	}
	theirs = finalistsOf(row.peerUnit, theirs)
	all := append([]*contestant{ours}, theirs...)
	if row.OtherLoad, err = newWatch(load, row.Threads, b.opts.repeats*len(all)).alternate(all, b.opts.repeats, b.opts.repetition); err != nil {
		return nil, err
	}
	slices.SortStableFunc(theirs, func(x, y *contestant) int { return cmp.Compare(y.rate(row.Batch), x.rate(row.Batch)) })
	row.Ours, row.OursSpread = ours.rate(row.Batch), spread(ours.took)
	for _, c := range theirs {
		row.Finalists = append(row.Finalists, finalist{Kind: c.kind, Setting: c.label, ImagesPerS: c.rate(row.Batch), Spread: spread(c.took)})
	}
	first := row.Finalists[0]
	row.Torch, row.TorchSpread, row.Setting, row.Ratio = first.ImagesPerS, first.Spread, first.Setting, row.Ours/first.ImagesPerS
	return append([]*contestant{ours}, bestOfKinds(theirs)...), nil
}
