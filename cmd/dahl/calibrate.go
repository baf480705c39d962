package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/inspect"
	"dahl/cmd/dahl/words"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/execute"
	"dahl/execute/calibrate"
	"dahl/execute/hardware"
	"dahl/kernels/calls"
	"dahl/naming"
	"dahl/nn"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/rundir/durable"
	"dahl/train"
)

// calibrateFlags are the flags of calibrate that are not in flags.Options, and the state of the
// measurement.
type calibrateFlags struct {
	out      string
	models   []string
	batches  []int
	perModel time.Duration
	joules   time.Duration
	sweep    bool
	force    bool
	clocks   bool // to be set

	units  map[string]int   // of the devices to measure
	energy train.CallEnergy // nil means no meters
	stderr io.Writer        // for progress
	file   *growingFile
	sum    calibrate.Result // of all networks
}

// What calibrate measures unless it is told otherwise, and about how long for each.
var calibratedModels = []string{"digits-cnn", "dahl-cnn", "lenet5", "mlp"}

const calibrationPerModel = 5 * time.Second

const calibrateHelp = `calibrate measures every kernel variant over the shapes that the given networks
need, alone and with all cores busy, with the operands of the call before, with
operands that the second-level cache has lost and with some that all caches have
lost; then the chosen variants inside real training steps; and the memory's
bandwidth, the cost of dispatching and handing over a task, and the caches. With
--sweep it measures the common operations over a grid of sizes instead, which needs no
network and answers for any through a fit with error bars.

A device with a memory of its own, a GPU or an emulated one, is measured alike: its
kernels as its own clock tells, by themselves and in steps that run on it alone; the
time between launches, to its copy engines, and from and to a core; what being timed adds to
a task, by steps that are recorded and others; copies by size and
direction, both at once and beside those of other devices, fitted by latency and bandwidth;
its memory's bandwidth and its speed; and what its first use costs, which is in no other
time. With a meter its powers are measured, and the joules of each class of kernels by
repeating a call for seconds. Limits are read and never set, and clocks only where
--set-clocks asks for that, as execute does: devices then run at the clock_frequency of
the file, and the watts of processors are also measured at every [[device.clock]] with a
frequency. An emulated device is what the platform file says: its speed, memory and links stay.

It writes a platform file for simulate and execute, at most once a second while it
grows: after an interruption, what was measured is in it, and the same command goes
on from there.
Models are kept until --force measures them anew; do so after a new version of dahl.
Calls whose times do not settle, or while others use the cores, are measured up to
five times and then marked as unsteady. With --lowering all the calls are measured of
all tilings: samples per task times powers of two, with several GPUs also parts of all
layers along each dimension. Single layers that are cut otherwise are not, so that dahl plan
takes for them only calls that occur in these. Where RAPL may be read, the power of a processor
is measured idle, and with a matrix product on one core and on all, each three times;
otherwise it is a guess unless the file is edited.

Under mpirun (or Slurm's srun), with a rank for each node of the cluster in --platform, it measures messages of 4 B to 4 MiB from each
node to the next and back, in the executor and with its waits, and nothing else. The file that it
writes is the cluster with the latencies and bandwidths of the measured links. The machines of
the cluster are measured before, each by itself, and are files of its nodes.`

func newCalibrate([]string) *cobra.Command {
	o := flags.Options{Epochs: 1}
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate --out FILE",
		Short: "measure this machine and write it as a platform file",
		Long:  calibrateHelp,
		Example: `  dahl calibrate --out here.toml --model lenet5 --model mlp --batch 32 --batch 64
  dahl calibrate --out here.toml --model lenet5 --batch 64 --lowering all
  dahl calibrate --out here.toml --sweep
  dahl calibrate --platform emulated --devices cpu:1,gpu --out here.toml --model lenet5
  mpirun -n 2 dahl calibrate --platform cluster.toml --out measured.toml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := joinRanks()
			if err != nil {
				return err
			}
			if n != nil {
				return f.measureMessages(cmd, n, o.Platform)
			}
			f.stderr, f.file = cmd.ErrOrStderr(), &growingFile{path: f.out, period: savePeriod}
			return f.run(cmd.Context(), cmd.OutOrStdout(), &o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.out, "out", "", "platform `file` to write, or to complete")
	fs.StringArrayVar(&f.models, "model", calibratedModels, "`network` whose shapes are measured, a name or a model file; repeat it for more")
	fs.IntSliceVar(&f.batches, "batch", nil, "batch `sizes`, such as 32,64 (default: each model's)")
	fs.StringVar(&o.DType, "dtype", "float32", "element `type`: "+naming.OneOf(cli.RealTypes()))
	fs.StringVar(&o.Lowering, "lowering", "", "tiles and recomputation of the layers: a TOML `file`, or all: the default with each of many sizes of tiles, among which dahl plan chooses")
	fs.StringVar(&o.Variant, "variant", "", "kernel `variant` to measure (default: all but the reference)")
	fs.StringVar(&o.Precision, "precision", calls.FullPrecision, "`precision` of the variants that are measured inside steps, as execute has it; all are measured by themselves")
	fs.StringVar(&o.Platform, "platform", "", "machine to measure: a TOML `file`, or the name of one that ships with dahl (default: this one, detected)")
	fs.StringVar(&o.Devices, "devices", "", "measure some devices: a `list` of names, kinds, gpu for all that are no processors, or cpu:4 for some units (default: all)")
	fs.IntVar(&o.Workers, "workers", 0, "`cores` of the processor to use (default: all)")
	f.perModel, f.joules = calibrationPerModel, 2*time.Second
	flags.AddTimeFlag(fs, &f.perModel, "time", "about how long to measure, a `time` for each model and batch (with --lowering all: and tile), or for the sweep")
	flags.AddTimeFlag(fs, &f.joules, "joules", "on a device with a meter, how long a `time` to repeat a call of each class of kernels, and on a processor a product, and to idle beside it, for joules and watts (0: neither)")
	fs.BoolVar(&f.sweep, "sweep", false, "measure the common operations over a grid of sizes, no network")
	fs.BoolVar(&f.clocks, "set-clocks", false, "set the clocks of processors and GPUs to the frequencies that the platform file says, measure the watts of processors at each of them, and give them back at the end (needs root)")
	fs.BoolVar(&f.force, "force", false, "measure what the file already holds again")
	flags.Exclude(cmd, "sweep", "model")
	flags.Exclude(cmd, "sweep", "batch")
	flags.Exclude(cmd, "sweep", "lowering")
	flags.Before(cmd, func() error { return o.CheckLowering(flags.DefaultTiles, flags.AllTiles) })
	flags.Exclude(cmd, "devices", "workers")
	flags.Before(cmd, func() error {
		if f.out == "" {
			return errors.New("name the file to write with --out, such as --out here.toml")
		}
		return nil
	})
	return cmd
}

func (f *calibrateFlags) run(ctx context.Context, stdout io.Writer, o *flags.Options) error {
	if err := f.check(o); err != nil {
		return err
	}
	recoverClocks()
	p, err := f.startingPoint(o)
	if err != nil {
		return err
	}
	if f.units, err = o.UnitsOf(p); err != nil {
		return err
	}
	if err := checkCores(p, f.units); err != nil {
		return err
	}
	meters := train.OpenGPUs(p)
	defer meters.Close()
	processors, noMeter := meter.OpenRAPL(meter.PowercapRoot)
	if noMeter == nil {
		if _, noMeter = inspect.Believed(meter.Metered{Of: energy.ProcessorsMeter, Meter: processors}); noMeter != nil {
			processors = nil
		}
	}
	f.energy, f.sum.Platform = train.MeasureEnergy(p, meters, processors, f.joules), p
	defer cli.Saving(ctx, "measuring ends, and what was measured is written")()
	if f.clocks {
		err = f.measureAtClocks(ctx, o)
	} else {
		err = f.measure(ctx, o)
	}
	if err = cmp.Or(err, f.file.close()); err != nil && f.file.models > 0 {
		return fmt.Errorf("%w; %s has the %d models measured so far, and the same command goes on from there", err, f.out, f.file.models)
	}
	if err != nil {
		return err
	}
	sum := &f.sum
	fmt.Fprintf(stdout, "%s: %s, %s, %s: %d measured by themselves, %d kept; repeat spread %.1f %% (of the median kernel)\n",
		f.out, sum.Platform.Name, naming.Count(len(sum.Platform.Workers), "worker"), naming.Count(len(sum.Platform.Models), "model"), sum.Measured, sum.Skipped, 100*sum.RepeatSpread)
	if sum.Unsteady > 0 {
		fmt.Fprintf(stdout, "%d of them never settled and are marked unsteady; measure them again with --force when the machine is quiet\n", sum.Unsteady)
	}
	if sum.TooLarge > 0 {
		fmt.Fprintf(stdout, "%d calls were not measured: a device does not hold their operands\n", sum.TooLarge)
	}
	if n := len(sum.Refused); n > 0 {
		fmt.Fprintf(stdout, "%d calls were not measured: their libraries refuse them, such as %v\n", n, sum.Refused[0])
	}
	if f.joules > 0 {
		words.PrintPowers(stdout, sum, f.units, noMeter)
	}
	for i := range sum.Devices {
		words.PrintDevice(stdout, sum.Platform, &sum.Devices[i], meters)
	}
	return nil
}

// check refuses flags that nothing can be measured with, before anything is.
func (f *calibrateFlags) check(o *flags.Options) error {
	if f.perModel <= 0 || f.joules < 0 {
		return cli.InputErrorf("--time %v, --joules %v: want a positive time, and one that is not negative", f.perModel, f.joules)
	}
	if len(f.batches) > 0 {
		if err := cli.CheckNumbers("batch", f.batches...); err != nil {
			return err
		}
	}
	_, realType := cli.RealType(o.DType)
	return cmp.Or(cli.CheckModels(f.models...), realType, flags.CheckVariant(o.Variant), flags.CheckPrecision(o.Precision), cli.AsInput(hardware.CheckVariant(o.Variant)), cli.CheckRegular(f.out), cli.CheckWritable(f.out))
}

// startingPoint returns the platform in the output file if it describes this machine, so that its
// models need not be measured again. Otherwise it returns the detected machine.
func (f *calibrateFlags) startingPoint(o *flags.Options) (*platform.Platform, error) {
	here, err := cli.Machine(o.Platform, o.Devices, true) // with all devices, whichever are asked for
	if err == nil {
		here, err = cli.WithWorkers(here, o.Workers)
	}
	if err != nil {
		return nil, err
	}
	if len(here.Nodes) > 0 {
		return nil, cli.InputErrorf("%s is a cluster; measure a machine of it by itself, and its network by mpirun -n %d dahl calibrate --platform %s --out FILE", o.Platform, len(execute.WorkingNodes(here)), o.Platform)
	}
	if clocks := here.ClocksInForce(); clocks != nil { // models without a clock would be taken for the first one's
		return nil, cli.InputErrorf("%s: calibrate measures devices at their first clocks; take clock_in_force (%s) out", o.Platform, strings.Join(clocks, ", "))
	}
	if f.force {
		return here, nil
	}
	p, err := platform.Load(f.out)
	if errors.Is(err, fs.ErrNotExist) {
		return here, nil
	}
	if err != nil {
		return nil, cli.AsInput(fmt.Errorf("%w; --force writes the file anew", err))
	}
	if !sameMachine(p, here) {
		return nil, cli.InputErrorf("%s is of %s with %s, this is %s with %s; choose another file, or --force to write it anew",
			f.out, p.Name, devicesText(p), here.Name, devicesText(here))
	}
	return p, nil
}

// sameMachine reports whether two platforms have the same name and devices.
func sameMachine(a, b *platform.Platform) bool {
	return a.Name == b.Name && slices.EqualFunc(a.Devices, b.Devices, func(d, e platform.Device) bool {
		return d.Name == e.Name && d.Kind == e.Kind && d.Count == e.Count && d.L2Bytes == e.L2Bytes
	})
}

func devicesText(p *platform.Platform) string {
	return strings.Join(cli.Texts(p.Devices, func(d platform.Device) string { return fmt.Sprintf("%d %s", d.Count, d.Name) }), ", ")
}

// checkCores refuses to measure more units of processors than this machine has: all of
// them at once, they would wait for each other.
func checkCores(p *platform.Platform, units map[string]int) error {
	here, err := hardware.Detect()
	if err != nil {
		return err
	}
	wanted, most := 0, here.Devices[0].Count
	for i := range p.Devices {
		if d := &p.Devices[i]; d.IsProcessor() {
			wanted += units[d.Name]
		}
	}
	if wanted > most {
		return cli.InputErrorf("%d cores of %q are to be measured, and this machine has %d; choose them with --devices, such as %s:%d", wanted, p.Name, most, here.Devices[0].Name, most)
	}
	return nil
}

// measure goes through the networks, or sweeps.
func (f *calibrateFlags) measure(ctx context.Context, o *flags.Options) error {
	if f.sweep {
		dtype, err := cli.RealType(o.DType)
		if err != nil {
			return err
		}
		return f.add("sweep", o, func(c calibrate.Options) (*calibrate.Result, error) { return calibrate.Sweep(ctx, dtype, c) })
	}
	batches := f.batches
	if len(batches) == 0 {
		batches = []int{0}
	}
	for _, model := range f.models {
		for _, batch := range batches {
			c := *o
			c.Model, c.Batch = model, batch
			if err := f.network(ctx, &c); err != nil {
				return err
			}
		}
	}
	return nil
}

// add runs one measurement, which starts from the models measured so far, and adds its result to
// the sum. The title is for the progress bar.
func (f *calibrateFlags) add(title string, o *flags.Options, measure func(calibrate.Options) (*calibrate.Result, error)) error {
	bar := cli.NewProgressBar(f.stderr, title)
	defer bar.Done()
	options := calibrate.Options{Platform: f.sum.Platform, Units: f.units, MaxTime: f.perModel, Far: true, Resume: !f.force, Energy: f.energy,
		Progress: bar.Set, Save: f.file.save}
	if o.Variant != "" {
		options.Variants = []string{o.Variant}
	}
	c, err := measure(options)
	if sum := &f.sum; c != nil {
		sum.Platform, sum.RepeatSpread = c.Platform, max(sum.RepeatSpread, c.RepeatSpread)
		sum.Measured, sum.Skipped, sum.Unsteady = sum.Measured+c.Measured, sum.Skipped+c.Skipped, sum.Unsteady+c.Unsteady
		sum.TooLarge, sum.Refused = sum.TooLarge+c.TooLarge, append(sum.Refused, c.Refused...)
		sum.Devices, sum.Powers = append(sum.Devices, c.Devices...), append(sum.Powers, c.Powers...)
	}
	return err
}

// network measures what one network needs, with one lowering or with all tiles.
func (f *calibrateFlags) network(ctx context.Context, o *flags.Options) error {
	m, d, err := flags.TrainingData(o)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("%s batch %d", m.Name, o.Batch)
	add := func(title string, c flags.Options) error {
		return f.add(title, o, func(how calibrate.Options) (*calibrate.Result, error) { return calibrateModel(ctx, &c, m, d, how) })
	}
	if o.Lowering != flags.AllTiles {
		return add(title, *o)
	}
	dtype, err := cli.RealType(o.DType)
	if err != nil {
		return err
	}
	t, err := (&train.Workload{Model: m, Platform: f.sum.Platform, Options: train.Options{Batch: o.Batch, Type: dtype}}).Tilings()
	if err != nil {
		return err
	}
	with := func(tiles tiling.Tiling, name string) error {
		c := *o
		c.Tiles = tiles
		return add(title+", "+name, c)
	}
	for _, b := range t.Scaled() {
		if err := with(tiling.Of(b), fmt.Sprintf("%s of %s", b, t.Layer)); err != nil {
			return err
		}
	}
	for _, tiles := range t.All() {
		if tiles.Kind == tiling.Parts {
			if err := with(tiles, tiles.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// calibrateModel measures what one training needs.
func calibrateModel(ctx context.Context, o *flags.Options, m *nn.Model, d train.Data, c calibrate.Options) (*calibrate.Result, error) {
	to, err := o.Training()
	if err != nil {
		return nil, err
	}
	return train.Calibrate(ctx, m, d, to, train.Calibration{Options: c, AllUnits: o.Workers != 0})
}

// growingFile is a platform file that is written while it grows.
type growingFile struct {
	path     string
	period   time.Duration      // the least time between two writes
	platform *platform.Platform // the last one given to save; nil means that it has been written
	written  time.Time
	models   int // in the file; 0 means that it was not written
}

// savePeriod is the least time between two writes of a calibration, and the most that an
// interruption loses.
const savePeriod = time.Second

func (f *growingFile) save(p *platform.Platform) error {
	f.platform = p
	if time.Since(f.written) < f.period {
		return nil
	}
	return f.close()
}

// close writes what has not been written yet.
func (f *growingFile) close() error {
	if f.platform == nil {
		return nil
	}
	if err := durable.Write(f.path, f.platform.WriteTOML); err != nil {
		return err
	}
	f.written, f.models, f.platform = time.Now(), len(f.platform.Models), nil
	return nil
}

// calibrationTime says what calibrate measures by default and about how long.
func calibrationTime() string {
	return fmt.Sprintf("dahl calibrate --out here.toml takes about %s for each of %s, and some for the memory and for watts; several times as long where other programs keep the cores busy, since calls are repeated until their times settle",
		cli.ShortTime(calibrationPerModel), strings.Join(calibratedModels, ", "))
}
