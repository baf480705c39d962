package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/train/peer"
)

// peersOptions are the options of a comparison with other programs.
type peersOptions struct {
	python     string
	named      []string // programs
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
	out        string
}

func newPeers() *cobra.Command {
	var p peersOptions
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "training and inference beside PyTorch and JAX, in samples per second",
		Long: `peers runs dahl and other programs alternately in one run: float32, the same network,
batch, optimiser, first weights and samples. Equal losses of the first steps prove
that it is the same network. The programs are PyTorch, eagerly and by torch.compile,
and JAX with a step as one compiled function. Each runs in its best setting: every
environment (such as default, tuned, AVX-512, threads of BLAS) with every memory format
is tried first, for inference in eager PyTorch also as frozen TorchScript, and the best
two of each program then alternate with dahl. The figures are medians; a ratio is
dahl's over the best of a program. A program that is not installed is left out and said.

With --device cuda all run on the first GPU, in each of --precisions, dahl by its own
kernels, or with --platform by whatever was measured to be fastest in that precision. The
samples of the others lie in the GPU's memory as float32; dahl's lie there as bytes, which
it gathers and converts in every step. PyTorch reads its losses after the last step. A
setting that does not run here is left out and said.

dahl gathers its samples in the shuffled order of training, converts them from bytes
and fetches its loss in every step; the others get ready float32 tensors, or tokens. A repetition in which other processes needed the cores is
done again, within limits; each row says how many cores others kept busy.

GODEBUG=cpu.avx512f=off in front keeps all of them to AVX2, as on a processor without AVX-512.`,
		Example: "  dahl-bench peers --python /usr/bin/python3 --models lenet5 --batches 64 --threads 2",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.python, "python", "python3", "Python `interpreter` that has NumPy and the programs")
	f.StringSliceVar(&p.named, "programs", names(peer.Programs()), "programs beside dahl")
	f.StringVar(&p.platform, "platform", "", "this machine: a platform `file` that calibrate wrote (default: detected)")
	f.StringSliceVar(&p.models, "models", []string{"dahl32", "dahl-cnn", "lenet5", "mlp", "cifar-cnn", "digits-cnn"}, "networks")
	f.IntSliceVar(&p.batches, "batches", []int{32, 64, 128}, "batch sizes")
	f.IntSliceVar(&p.threads, "threads", []int{1, 2}, "numbers of CPU cores")
	f.StringVar(&p.device, "device", platform.CPU, "cpu, or cuda for the first GPU, where --threads says nothing")
	f.StringSliceVar(&p.precisions, "precisions", []string{precisionFloat32, calls.TF32Precision}, "of the products on a GPU")
	f.StringSliceVar(&p.modes, "modes", []string{peer.ModeTrain, peer.ModeInfer}, "train, infer or both")
	f.StringSliceVar(&p.settings, "settings", nil, "settings to try, by their names in the report (default: all)")
	f.IntVar(&p.repeats, "repeats", 5, "repetitions of each contestant")
	p.repetition = 300 * time.Millisecond
	flags.AddTimeFlag(f, &p.repetition, "repetition", "about how long one repetition runs")
	flags.AddTimeFlag(f, &p.energy, "energy", "also count the joules of training, where there is a meter, in windows of about so long (several seconds)")
	f.StringVar(&p.out, "out", "", "also write the tables as a Markdown `file`")
	return cmd
}

// precisionFloat32 is the precision of products whose factors are not rounded.
const precisionFloat32 = "float32"

// peerUnit is the hardware under the contestants of a cell: a number of CPU cores, or a GPU with a
// precision.
type peerUnit struct {
	Device    string
	Threads   int
	Precision string
}

func (u peerUnit) String() string {
	if u.Device == platform.CUDA {
		return "GPU, " + u.Precision
	}
	return fmt.Sprintf("%d cores", u.Threads)
}

// units are those that the options name.
func (p *peersOptions) units() []peerUnit {
	var all []peerUnit
	if p.device == platform.CUDA {
		for _, precision := range p.precisions {
			all = append(all, peerUnit{Device: platform.CUDA, Threads: 1, Precision: precision})
		}
		return all
	}
	for _, n := range p.threads {
		all = append(all, peerUnit{Device: platform.CPU, Threads: n, Precision: precisionFloat32})
	}
	return all
}

// peerBench is a run of the command: its contestants and measurements.
type peerBench struct {
	opts     *peersOptions
	programs []peer.Program
	dir      string // of the workers' programs, weights and data
	stderr   io.Writer
	report   peerReport
}

func (p *peersOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	programs, err := p.check()
	if err != nil {
		return err
	}
	defer cli.Saving(ctx, "the other programs are ended, and the tables so far are written")()
	dir, err := os.MkdirTemp("", "dahl-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &peerBench{opts: p, programs: programs, dir: dir, stderr: stderr, report: peerReport{Build: cli.ThisBuild()}}
	if err := peer.Unpack(dir); err != nil {
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
	return errors.Join(b.report.print(stdout), failed)
}

// check refuses options that no cell of the tables could have, before anything runs.
func (p *peersOptions) check() (programs []peer.Program, err error) {
	if p.repetition <= 0 || p.energy < 0 {
		return nil, cli.InputErrorf("--repetition %v, --energy %v: want a positive time, and one that is not negative", p.repetition, p.energy)
	}
	_, device := chosen("device", []string{p.device}, []string{platform.CPU, platform.CUDA})
	_, precision := chosen("precisions", p.precisions, []string{precisionFloat32, calls.TF32Precision})
	_, mode := chosen("modes", p.modes, []string{peer.ModeTrain, peer.ModeInfer})
	programs, program := p.programs()
	err = cmp.Or(cli.CheckNumbers("repeats", p.repeats), cli.CheckNumbers("batches", p.batches...), cli.CheckNumbers("threads", p.threads...),
		cli.CheckModels(p.models...), cli.CheckWritable(p.out), device, precision, mode, program, p.checkSettings(programs))
	if err != nil {
		return nil, err
	}
	if n := slices.Max(p.threads); n > runtime.NumCPU() {
		return nil, cli.InputErrorf("--threads %d: this machine has %d cores", n, runtime.NumCPU())
	}
	if n := slices.Max(p.batches); n > peerSamples {
		return nil, cli.InputErrorf("--batches %d: want at most %d, the samples that both sides hold", n, peerSamples)
	}
	if p.platform != "" {
		_, err = cli.LoadPlatform(p.platform)
	}
	return programs, err
}

// on measures all networks and batches on a unit, with one process per setting of a program.
// What goes wrong in a cell does not end the others.
func (b *peerBench) on(ctx context.Context, u peerUnit) (failed, err error) {
	workers, err := b.startAll(ctx, u)
	defer func() {
		for _, w := range workers {
			w.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, model := range b.opts.models {
		for _, batch := range b.opts.batches {
			err := b.cell(ctx, model, batch, u, workers)
			if ctx.Err() != nil {
				return nil, errors.Join(context.Cause(ctx), b.report.save(b.opts.out)) // the workers are gone, too
			}
			if err != nil {
				failed = errors.Join(failed, b.leaveOutCell(model, batch, u, err))
			}
			if err := b.report.save(b.opts.out); err != nil {
				return failed, err
			}
		}
	}
	return failed, nil
}

// leaveOut notes what the tables lack, and why.
func (b *peerBench) leaveOut(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if why := cli.OneLine(err); !slices.Contains(b.report.LeftOut, why) {
		b.report.LeftOut = append(b.report.LeftOut, why)
		fmt.Fprintln(b.stderr, "left out:", why)
	}
	return err
}

func (b *peerBench) leaveOutCell(model string, batch int, u peerUnit, err error) error {
	return b.leaveOut(fmt.Sprintf("%s, batch %d, %v", model, batch, u), err)
}

// cell measures one network, batch and unit.
func (b *peerBench) cell(ctx context.Context, model string, batch int, u peerUnit, workers []*peer.Worker) error {
	ours, err := newOurSide(ctx, b.opts, model, batch, u)
	if err != nil {
		return err
	}
	defer ours.Close()
	twin, err := peer.Describe(ours.Workload)
	if err != nil {
		return err
	}
	if err := twin.Export(b.dir, ours.Weights(), ours.Workload, 0); err != nil {
		return err
	}
	var pids []int
	var theirs []*contestant
	for _, w := range workers {
		pids = append(pids, w.PID())
		c, err := contestants(w, twin, peer.Formats(ours.Workload.Model))
		if err != nil {
			_ = b.leaveOutCell(model, batch, u, err) // the other settings go on
			continue
		}
		theirs = append(theirs, c...)
	}
	load := func() func() host.Load { return host.StartLoad(pids...).Load }
	for _, mode := range b.opts.modes {
		if err := b.row(peerRow{Model: model, Batch: batch, peerUnit: u, Mode: mode}, ours, theirs, load); err != nil {
			return err
		}
	}
	return nil
}

// row measures a mode.
func (b *peerBench) row(row peerRow, ours *ourSide, theirs []*contestant, load func() func() host.Load) error {
	theirs = slices.DeleteFunc(slices.Clone(theirs), func(c *contestant) bool {
		return (c.mode == peer.ModeTrain) != (row.Mode == peer.ModeTrain)
	})
	best, err := b.alternate(&row, ours, theirs, load)
	if err != nil {
		return err
	}
	if row.Mode == peer.ModeTrain && b.opts.energy > 0 {
		row.Energy, err = measureEnergy(ours.Workload.Platform, row.Batch, b.opts.energy, best)
	}
	b.report.Rows = append(b.report.Rows, row) // its rates also without joules
	if err != nil {
		return err
	}
	fmt.Fprintf(b.stderr, "%s, batch %d, %v, %s: dahl %.0f samples/s", row.Model, row.Batch, row.peerUnit, row.Mode, row.Ours)
	for _, program := range b.programs {
		if f := row.best(program.Name); f != nil {
			fmt.Fprintf(b.stderr, "; %s %.0f, ratio %.2f", program.Name, f.SamplesPerS, row.Ours/f.SamplesPerS)
		}
	}
	fmt.Fprintln(b.stderr)
	return nil
}

// finalists is how many settings of each program alternate with dahl; the search that chooses them is short.
const finalists = 2

// bestOf returns the first n contestants of each program, of a list from the fastest to the slowest.
func bestOf(sorted []*contestant, n int) (best []*contestant) {
	count := map[string]int{}
	for _, c := range sorted {
		if count[c.program]++; count[c.program] <= n {
			best = append(best, c)
		}
	}
	return best
}

// alternate compares the losses, finds the best settings and alternates them with
// dahl. It returns dahl and the best of each of the others.
func (b *peerBench) alternate(row *peerRow, side *ourSide, theirs []*contestant, load func() func() host.Load) (best []*contestant, err error) {
	ours := side.contestant(row.Mode)
	theirs, err = sameNetwork(row, side.sameLosses(row.Mode), ours, theirs, func(err error) {
		_ = b.leaveOutCell(row.Model, row.Batch, row.peerUnit, err) // the other settings go on
	})
	if err != nil {
		return nil, err
	}
	if err := newWatch(load, row.Threads, len(theirs)).search(theirs, b.opts.repetition/3); err != nil {
		return nil, err
	}
	theirs = bestOf(theirs, finalists)
	all := append([]*contestant{ours}, theirs...)
	if row.OtherLoad, err = newWatch(load, row.Threads, b.opts.repeats*len(all)).alternate(all, b.opts.repeats, b.opts.repetition); err != nil {
		return nil, err
	}
	slices.SortStableFunc(theirs, func(x, y *contestant) int { return cmp.Compare(y.rate(row.Batch), x.rate(row.Batch)) })
	row.Ours, row.OursSpread = ours.rate(row.Batch), spread(ours.took)
	for _, c := range theirs {
		row.Finalists = append(row.Finalists, finalist{Program: c.program, Setting: c.label, SamplesPerS: c.rate(row.Batch), Spread: spread(c.took)})
	}
	return append([]*contestant{ours}, bestOf(theirs, 1)...), nil
}
