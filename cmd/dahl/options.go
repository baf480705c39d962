package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/execute"
	"dahl/kernels"
	"dahl/naming"
	"dahl/nn"
	"dahl/plan/tiling"
	"dahl/platform"
)

// options are the flags that decide what a run computes. They are kept in the
// manifest, so that rerun can repeat it.
type options struct {
	Platform string `json:"platform,omitempty"`
	Devices  string `json:"devices,omitempty"`
	Model    string `json:"model,omitempty"`
	Graph    string `json:"graph,omitempty"`
	Lowering string `json:"lowering,omitempty"`
	Tile     int    `json:"tile,omitempty"` // samples per task of the busiest layer; 0: the default
	Plan     string `json:"plan,omitempty"`
	Policy   string `json:"policy"`
	Variant  string `json:"variant,omitempty"`
	DType    string `json:"dtype"`

	Clocks []string `json:"clocks,omitempty"` // "device=clock"

	// Precision is that of products: one of kernels.Precisions, "" for the finest.
	Precision string `json:"precision,omitempty"`

	Batch   int    `json:"batch,omitempty"`
	Steps   int    `json:"steps,omitempty"`
	Samples int    `json:"samples,omitempty"`
	Cuts    bool   `json:"cuts,omitempty"`
	Seed    uint64 `json:"seed"`

	Objective  string        `json:"objective,omitempty"`
	Budget     int           `json:"budget_nodes,omitempty"`
	BudgetTime time.Duration `json:"budget_ns,omitempty"`
	Deadline   time.Duration `json:"deadline_ns,omitempty"`     // of a step
	PowerCap   float64       `json:"power_cap_watts,omitempty"` // of the machine; 0: the platform's

	Data    string `json:"data,omitempty"`
	Epochs  int    `json:"epochs,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Offset  int    `json:"offset,omitempty"`
	Resize  string `json:"resize,omitempty"` // of pictures, "ROWSxCOLUMNS"
	Shuffle bool   `json:"shuffle,omitempty"`
	Workers int    `json:"workers,omitempty"`
	Init    string `json:"init,omitempty"`

	Optimizer   string   `json:"optimizer,omitempty"`
	LR          *float64 `json:"lr,omitempty"`
	Momentum    *float64 `json:"momentum,omitempty"`
	WeightDecay *float64 `json:"weight_decay,omitempty"`
	Nesterov    bool     `json:"nesterov,omitempty"`
	Schedule    string   `json:"schedule,omitempty"`

	Loss           string   `json:"loss,omitempty"`
	LabelSmoothing *float64 `json:"label_smoothing,omitempty"`
	ClipNorm       *float64 `json:"clip_norm,omitempty"`

	// Of a training by another program.
	Program string `json:"program,omitempty"`
	Python  string `json:"python,omitempty"`
	Setting string `json:"setting,omitempty"`

	Checkpoint string `json:"checkpoint,omitempty"` // how often the training is saved: every=N, or never

	// ContinueOnLoss is after how many training steps the weights are kept, so that the
	// training goes on from there when a device fails; 0: such a failure ends it.
	ContinueOnLoss int `json:"continue_on_loss,omitempty"`

	// ContinueOnNaN lets a training go on whose loss is NaN or infinite.
	ContinueOnNaN bool `json:"continue_on_nan,omitempty"`

	// Record is how many steps of every graph are recorded in an epoch; 0: as the devices
	// suggest.
	Record int `json:"record,omitempty"`

	// Stream is no flag: it says that the data did not fit the memory, so that whatever goes on
	// from the run or repeats it has the same task graph.
	Stream bool `json:"stream,omitempty"`

	args []string // the command line, for the manifest

	bar   *cli.ProgressBar // of a search; nil: none
	begun time.Time        // when its time began; zero: with it

	announce func() // says how long searches may take, once; nil: a terminal shows it

	anyClock bool // the clocks of processors and GPUs are set, or not asked for

	tiles tiling.Tiling // that a calibration measures; the zero value: by the flags
}

// checkRounds bounds --steps, --epochs and --samples: what is planned for each of them takes memory.
func checkRounds(flag string, value, least int) error {
	const most = 1_000_000
	if value < least || value > most {
		return cli.InputErrorf("--%s %d: want %d to %d", flag, value, least, most)
	}
	return nil
}

// checkData refuses numbers of images that there cannot be, and what is no size.
func (o *options) checkData() error {
	_, err := o.dataOptions()
	return cmp.Or(err, cli.CheckNotNegative("batch", o.Batch), cli.CheckNotNegative("limit", o.Limit), cli.CheckNotNegative("offset", o.Offset))
}

// dataOptions are what the flags say of the training data.
func (o *options) dataOptions() (opt nn.DataOptions, err error) {
	opt = nn.DataOptions{Limit: o.Limit, Offset: o.Offset}
	if o.Resize == "" {
		return opt, nil
	}
	h, w, _ := strings.Cut(strings.ReplaceAll(o.Resize, "×", "x"), "x")
	for i, text := range []string{h, w} {
		if opt.Resize[i], err = strconv.Atoi(text); err != nil || opt.Resize[i] < 1 {
			return opt, cli.InputErrorf("--resize %s: want height and width in pixels, as in 32x48", o.Resize)
		}
	}
	return opt, nil
}

// model loads the network, and says what is to be known of it.
func (o *options) model() (*nn.Model, error) {
	m, err := cli.LoadModel(o.Model)
	if err == nil {
		warnOf(o.Model, m.Notes)
	}
	return m, err
}

// warnOf says what is to be known of a file or a directory.
func warnOf(name string, notes []string) {
	for _, note := range notes {
		slog.Warn(note, "of", name)
	}
}

// addGraphFlags adds the flags that name a graph and a machine.
func addGraphFlags(cmd *cobra.Command, o *options) {
	f := cmd.Flags()
	f.StringVar(&o.Platform, "platform", "", "machine: a TOML `file`, or the name of one that ships with dahl")
	f.StringVar(&o.Model, "model", "", "network: a `name` (see dahl graph --list), a TOML model file, or an ONNX file with weights")
	f.StringVar(&o.Graph, "graph", "", "task graph instead of a network: a JSON or text `file`, or one that dahl import reads")
	f.StringVar(&o.Lowering, "lowering", "", "tiles and recomputation of the layers: a TOML `file`, or best: the default with the tiles that are fastest in simulation (default: tiles derived from the caches, whole layers on one GPU alone)")
	f.IntVar(&o.Tile, "tile", 0, "`samples` per task of the busiest layer, and of the others in proportion (0: the default's)")
	f.StringVar(&o.DType, "dtype", "float32", "element `type`: "+naming.OneOf(cli.RealTypes()))
	f.IntVar(&o.Batch, "batch", 0, "`images` per training step (default: the model's, or all images where they are fewer)")
	exclude(cmd, "model", "graph")
	exclude(cmd, "graph", "lowering")
	exclude(cmd, "tile", "lowering")
	exclude(cmd, "tile", "graph")
	exclude(cmd, "tile", "plan")
	before(cmd, o.checkLowering)
	before(cmd, func() error {
		if f.Changed("batch") && o.Batch < 1 { // 0 stands for what is derived
			return fmt.Errorf("--batch %d: want at least 1", o.Batch)
		}
		return cli.CheckNotNegative("tile", o.Tile)
	})
}

// checkLowering refuses a lowering that is neither a file nor the word for the best tiles.
func (o *options) checkLowering() error {
	if _, err := os.Stat(o.Lowering); o.Lowering != "" && o.Lowering != bestTiles && errors.Is(err, fs.ErrNotExist) {
		return cli.InputErrorf("--lowering %s: no such file; write a TOML file, or %s%s", o.Lowering, bestTiles, naming.DidYouMean(o.Lowering, []string{bestTiles}))
	}
	return nil
}

// addSimulateFlags adds the flags of what is simulated and where results go.
func addSimulateFlags(cmd *cobra.Command, o *options, out *output, dir string) {
	addWorkFlags(cmd, o)
	addDataFlags(cmd, o)
	addOptimizerFlags(cmd, o)
	addOutputFlags(cmd, out, dir)
	addPowerCapFlag(cmd, o)
	cmd.Flags().BoolVar(&out.verbose, "verbose", false, "also print graph, waits, critical path, memory and transfers")
	cmd.Flags().IntVar(&o.Steps, "steps", 0, "consecutive `steps` (default: 10 of a network, 1 of a graph file)")
	before(cmd, func() error {
		switch {
		case cmd.Flags().Changed("steps"):
		case o.Graph != "":
			o.Steps = 1
		default:
			o.Steps = 10
		}
		return nil
	})
}

// exclude refuses two flags that contradict each other.
func exclude(cmd *cobra.Command, a, b string) {
	before(cmd, func() error {
		if cmd.Flags().Changed(a) && cmd.Flags().Changed(b) {
			return fmt.Errorf("--%s and --%s exclude each other", a, b)
		}
		return nil
	})
}

// before adds a check of the flags.
func before(cmd *cobra.Command, check func() error) {
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil || next == nil {
			return err
		}
		return next(cmd, args)
	}
}

// addWorkFlags adds the flags that name a graph, a machine and a policy.
func addWorkFlags(cmd *cobra.Command, o *options) {
	addGraphFlags(cmd, o)
	f := cmd.Flags()
	f.Func("devices", "run on some devices: a `list` of names, kinds, gpu for all that are no processors, or cpu:4 for some units (default: all of the platform file, the processors of a machine that is detected)", func(list string) error {
		if o.Devices != "" { // a second list would replace the first
			return fmt.Errorf("it is given twice; write one list: %s,%s", o.Devices, list)
		}
		o.Devices = list
		return nil
	})
	f.Func("clock", "run a `device=clock` at one of its [[device.clock]] (repeat it for several devices; default: at its first)", func(setting string) error {
		device, clock, ok := strings.Cut(setting, "=")
		if !ok || device == "" || clock == "" {
			return fmt.Errorf("write the names of a device and of one of its clocks, such as gpu0=slow")
		}
		if slices.ContainsFunc(o.Clocks, func(c string) bool { return strings.HasPrefix(c, device+"=") }) {
			return fmt.Errorf("device %q is given two clocks; it keeps one for all of a run", device)
		}
		o.Clocks = append(o.Clocks, setting)
		return nil
	})
	f.StringVar(&o.Policy, "policy", bestPolicy, "`scheduler`: "+naming.OneOf(policyNames())+"; best takes the fastest plan that it finds on sets of the devices")
	f.StringVar(&o.Plan, "plan", "", "replay the decisions of a plan `file` instead of a policy")
	f.StringVar(&o.Variant, "variant", "", "kernel `variant` for all operations that have it, see dahl kernels (default: the fastest known within --precision)")
	f.StringVar(&o.Precision, "precision", kernels.FullPrecision, "`precision` of factors of products on tensor cores: full (never rounded), tf32 or bf16 (rounded to 11 or 8 bits where that is known to be faster)")
	f.Uint64Var(&o.Seed, "seed", 1, "`seed` of everything random")
	exclude(cmd, "plan", "policy")
	before(cmd, o.setPolicy)
}

// dataHelp says what a directory of data may be.
const dataHelp = `The path of --data is a directory of IDX files as MNIST names them, of CIFAR-10's binary files, or
of pictures (PNG, JPEG), in one of these ways:

  DIR/CLASS/…                 a directory for each class; pictures may lie further down
  DIR/train/CLASS/…           the same for training and test apart, as test/CLASS/…
  DIR/images/… and labels.csv lines "file,label" (or labels.txt): the name of a picture below images and
                              the name of its class, or for all of them its number from 0 on. A first line that
                              names no picture is a header. train and test may have both instead

Without train and test every fifth picture of each class, by name, is held out for the test. Pictures have one
size, or --resize 32x48 scales all to 32 rows and 48 columns. Grey ones among colours get three equal
channels. What is transparent lies over black, and the orientation that a camera notes (EXIF) is not looked at.`

// addDataFlags adds the flags that name the training data, whose size and shape
// are part of the graph.
func addDataFlags(cmd *cobra.Command, o *options) {
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "training data: digits, synthetic[:CxHxW[:N[:CLASSES]]], or a `path` (default: digits where the shape fits, else synthetic)")
	f.IntVar(&o.Limit, "limit", 0, "use at most `n` training images (0: all)")
	f.IntVar(&o.Offset, "offset", 0, "skip the first `n` training images")
	f.StringVar(&o.Resize, "resize", "", "scale pictures to `HxW` pixels, bilinear with antialias; height and width change by themselves (default: all must be of one size)")
}

// addTrainFlags adds the flags that say what is trained on and how.
func addTrainFlags(cmd *cobra.Command, o *options) {
	addDataFlags(cmd, o)
	f := cmd.Flags()
	f.IntVar(&o.Epochs, "epochs", 1, "`passes` over the training data")
	f.BoolVar(&o.Shuffle, "shuffle", true, "visit the images in a new seeded order in every epoch")
	f.IntVar(&o.Workers, "workers", 0, fmt.Sprintf("`cores` of the processor to use, at most %d for each that there is; the weights are equal with any number, but with --lowering best (default: all of the platform's)", execute.MaxWorkersPerCore))
	f.StringVar(&o.Init, "init", "", "initial weights: an .npz `file` with PyTorch's state_dict names, or uniform:A:B (default: PyTorch's distributions)")
	addOptimizerFlags(cmd, o)
}

func addOptimizerFlags(cmd *cobra.Command, o *options) {
	f := cmd.Flags()
	f.StringVar(&o.Optimizer, "optimizer", "", "`optimiser`: "+naming.OneOf(optimizerNames())+" (default: the model's)")
	f.Func("lr", "learning `rate` (default: the model's)", optional(&o.LR))
	f.Func("momentum", "SGD `momentum` (default: the model's)", optional(&o.Momentum))
	f.Func("weight-decay", "`penalty` on the weights: L2, or with adamw decoupled from the gradient (default: the model's)", optional(&o.WeightDecay))
	f.BoolVar(&o.Nesterov, "nesterov", false, "Nesterov's momentum")
	f.StringVar(&o.Loss, "loss", "", "`loss` to make small: "+naming.OneOf(lossNames())+" (default: the model's)")
	f.Func("label-smoothing", "`share` of each label that all classes have in equal parts, from 0 to 1; with cross_entropy (default: the model's)", optional(&o.LabelSmoothing))
	f.Func("clip-norm", "greatest `norm` of all gradients together, above which they are scaled down to it; 0: any (default: the model's)", optional(&o.ClipNorm))
	f.StringVar(&o.Schedule, "schedule", "", "`schedule` of the learning rate: "+naming.OneOf(scheduleNames())+" with settings, as in cosine,over=90epochs,min=1e-5,warmup=5epochs or step,every=500steps,gamma=0.5 or multistep,milestones=30/80epochs (default: the model's)")
}

// timeFlag is a time in a flag, with or without a space before its unit, as all quantities in flags are written.
type timeFlag time.Duration

// addTimeFlag adds a flag whose default is the value that is there.
func addTimeFlag(f *pflag.FlagSet, value *time.Duration, name, usage string) {
	f.Var((*timeFlag)(value), name, usage)
}

func (t *timeFlag) Set(text string) (err error) {
	read, err := platform.ParseTime(text)
	*t = timeFlag(read)
	return err
}

func (t *timeFlag) String() string {
	if *t == 0 {
		return "0"
	}
	return time.Duration(*t).String()
}

func (t *timeFlag) Type() string { return "duration" }

// optional reads a number whose flag may be missing: it is nil then.
func optional(value **float64) func(string) error {
	return func(s string) error {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || !(x >= 0 && x <= 1e9) {
			return fmt.Errorf("want a number from 0 to 1e9")
		}
		*value = &x
		return nil
	}
}

func lossNames() []string {
	return cli.Texts(nn.Losses(), func(l nn.LossInfo) string { return l.Name })
}

func scheduleNames() []string {
	return cli.Texts(nn.Schedules(), func(s nn.ScheduleInfo) string { return s.Name })
}

func optimizerNames() []string {
	return cli.Texts(nn.Optimizers(), func(o nn.OptimizerInfo) string { return o.Name })
}

// setPolicy takes the name of a scheduler in any case.
func (o *options) setPolicy() error {
	known := policyNames()
	i := slices.IndexFunc(known, func(n string) bool { return strings.EqualFold(n, o.Policy) })
	switch {
	case i < 0 && strings.EqualFold(o.Policy, "replay"): // as summaries name it
		return fmt.Errorf("--policy %s: a plan is replayed with --plan", o.Policy)
	case i < 0:
		return cli.CheckName("policy", o.Policy, known)
	}
	o.Policy = known[i]
	return nil
}
