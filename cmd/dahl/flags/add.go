package flags

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/execute"
	"dahl/kernels/calls"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/rates"
	"dahl/nn/weights"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/platform/quantity"
)

// AddGraphFlags adds the flags that name a graph and a machine.
func AddGraphFlags(cmd *cobra.Command, o *Options) {
	f := cmd.Flags()
	f.StringVar(&o.Platform, "platform", "", "machine: a TOML `file`, or the name of one that ships with dahl")
	f.StringVar(&o.Model, "model", "", "network: a `name` (see dahl graph --list), a TOML model file, or an ONNX file with weights")
	f.StringVar(&o.Graph, "graph", "", "task graph instead of a network: a JSON or text `file`, or one that dahl import reads")
	f.StringVar(&o.Lowering, "lowering", "", "tiles and recomputation of the layers: a TOML `file`, or default for tiles that follow from the caches, whole layers on one GPU alone (without --policy: the fastest that a model of the layers finds for the machine, else default)")
	f.IntVar(&o.Tile, "tile", 0, "`samples` per task of the busiest layer, and of the others in proportion (0: the default's)")
	f.StringVar(&o.DType, "dtype", "float32", "element `type`: "+naming.OneOf(cli.RealTypes())+"; with bfloat16 activations and their gradients are, and weights and arithmetic are float32")
	f.IntVar(&o.Batch, "batch", 0, "`samples` per training step (default: the model's, or all samples where they are fewer)")
	Exclude(cmd, "model", "graph")
	Exclude(cmd, "graph", "lowering")
	Exclude(cmd, "tile", "lowering")
	Exclude(cmd, "tile", "graph")
	Exclude(cmd, "tile", "plan")
	Before(cmd, func() error { return o.CheckLowering(DefaultTiles) })
	Before(cmd, func() error {
		if f.Changed("batch") && o.Batch < 1 { // 0 stands for what is derived
			return fmt.Errorf("--batch %d: want at least 1", o.Batch)
		}
		return cli.CheckNotNegative("tile", o.Tile)
	})
}

// AddInferenceFlag adds the flag that asks for a step without training.
func AddInferenceFlag(cmd *cobra.Command, o *Options) {
	cmd.Flags().BoolVar(&o.Inference, "inference", false, "a step lets the network predict a batch of the test set, as dahl evaluate does, and trains nothing")
	for _, name := range []string{"graph", "optimizer", "lr", "momentum", "weight-decay", "nesterov", "clip-norm", "schedule"} {
		Exclude(cmd, "inference", name)
	}
}

// AddSimulateFlags adds the flags of what is simulated and where results go.
func AddSimulateFlags(cmd *cobra.Command, o *Options, out *Output, dir string) {
	AddWorkFlags(cmd, o)
	AddDataFlags(cmd, o)
	AddOptimizerFlags(cmd, o)
	AddInferenceFlag(cmd, o)
	AddOutputFlags(cmd, out, dir)
	addPowerCapFlag(cmd, o)
	cmd.Flags().BoolVar(&out.Verbose, "verbose", false, "also print graph, waits, critical path, memory and transfers")
	cmd.Flags().IntVar(&o.Steps, "steps", 0, "consecutive `steps` (default: 10 of a network, 1 of a graph file)")
	cmd.Flags().IntVar(&o.Epochs, "epochs", 0, "predict a whole training instead of steps: so many `passes` over the training data, each with its short last batch and the evaluation on the test data")
	Exclude(cmd, "epochs", "steps")
	Exclude(cmd, "epochs", "graph")
	Exclude(cmd, "epochs", "samples")
	Exclude(cmd, "epochs", "inference")
	Before(cmd, func() error {
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

// AddWorkFlags adds the flags that name a graph, a machine and a policy.
func AddWorkFlags(cmd *cobra.Command, o *Options) {
	AddGraphFlags(cmd, o)
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
	f.StringVar(&o.Policy, "policy", BestPolicy, policyHelp())
	f.StringVar(&o.Plan, "plan", "", "replay the decisions of a plan `file` instead of a policy")
	f.StringVar(&o.Variant, "variant", "", "kernel `variant` for all operations that have it, see dahl kernels (default: the fastest known within --precision)")
	f.StringVar(&o.Precision, "precision", calls.FullPrecision, "`precision` of factors of products on tensor cores: full (never rounded), tf32 or bf16 (rounded to 11 or 8 bits where that is known to be faster)")
	f.Uint64Var(&o.Seed, "seed", 1, "`seed` of everything random")
	Exclude(cmd, "plan", "policy")
	Before(cmd, o.setPolicy)
}

// DataHelp says what a directory of data may be.
const DataHelp = `The path of --data is a directory of IDX files as MNIST names them, of CIFAR-10's binary files, an
archive of NumPy's arrays (FILE.npz), or a directory of pictures (PNG, JPEG), in one of these ways:

  DIR/CLASS/…                 a directory for each class; pictures may lie further down
  DIR/train/CLASS/…           the same for training and test apart, as test/CLASS/…
  DIR/images/… and labels.csv lines "file,label" (or labels.txt): the name of a picture below images, or beside
                              labels.csv where there is no images, and the name of its class, or for all of them its
                              number from 0 on. A first line that names no picture is a header. train and test may
                              have both instead

Without train and test every fifth picture of each class, by name, is held out for the test. Pictures have one
size, or --resize 32x48 scales all to 32 rows and 48 columns. Grey ones among colours get three equal
channels. What is transparent lies over black, and the orientation that a camera notes (EXIF) is not looked at.

An archive has the samples as arrays x_train and x_test, or x of a training alone, and their classes as y_train, y_test
or y. A sample has any shape: bytes are pixels, divided by 255, float32 and float64 are taken as they are, and
int32 and int64 are tokens. Labels with further dimensions are of the positions of a sample, for a network whose outputs
have these dimensions, too.

A network of sequences is trained to say the token behind each of some tokens. A text (FILE.txt) has its characters as tokens, or with
--vocabulary bytes its bytes, or with --vocabulary DIR the pieces that the vocab.json and merges.txt in a directory make of it, as GPT-2's. Numbers are tokens, too: train.bin and val.bin of 16 bits in a directory, as nanoGPT writes
them, or an array of one dimension (train.npy, val.npy). Of a single file (also FILE.bin, FILE.npy) the last tenth is held
out for the test. The samples of an epoch are parts of the text that touch, in a new order and from another start on in each epoch. They
are read while the run goes on. The text named text is written by the program itself, by a grammar with agreement over some words.`

// AddDataFlags adds the flags of the training data. Size and shape of the data are part of the
// graph.
func AddDataFlags(cmd *cobra.Command, o *Options) {
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "training data: digits, text, synthetic[:SHAPE[:N[:CLASSES[:POSITIONS]]]] as in synthetic:3x32x32, tokens[:T[:N[:V]]], or a `path` (default: digits where the shape fits, text for a network of sequences, else synthetic)")
	f.IntVar(&o.Limit, "limit", 0, "use at most `n` training samples (0: all)")
	f.IntVar(&o.Offset, "offset", 0, "skip the first `n` training samples")
	f.StringVar(&o.Vocabulary, "vocabulary", "", "tokens of a text are its `"+strings.Join(data.VocabularyKinds(), "` or ")+", or the pieces of a directory with GPT-2's vocab.json and merges.txt (default: "+data.VocabularyKinds()[0]+")")
	f.StringVar(&o.Resize, "resize", "", "scale pictures to `HxW` pixels, bilinear with antialias; height and width change by themselves (default: all must be of one size)")
}

// AddTrainFlags adds the flags of the data and of the method of a training.
func AddTrainFlags(cmd *cobra.Command, o *Options) {
	AddDataFlags(cmd, o)
	f := cmd.Flags()
	f.IntVar(&o.Epochs, "epochs", 1, "`passes` over the training data")
	f.BoolVar(&o.Shuffle, "shuffle", true, "visit the samples in a new seeded order in every epoch")
	f.IntVar(&o.Workers, "workers", 0, fmt.Sprintf("`cores` of the processor to use, at most %d for each that there is; the weights are equal with any number, but with --lowering best (default: all of the platform's)", execute.MaxWorkersPerCore))
	f.StringVar(&o.Init, "init", "", "initial weights: a `file` ("+naming.OneOf(weights.Endings())+") with PyTorch's state_dict names, or uniform:A:B (default: PyTorch's distributions)")
	AddOptimizerFlags(cmd, o)
}

// AddOptimizerFlags adds the flags of the optimiser, the loss and the schedule of the learning rate. Where a flag is missing,
// the default of the model holds.
func AddOptimizerFlags(cmd *cobra.Command, o *Options) {
	f := cmd.Flags()
	f.StringVar(&o.Optimizer, "optimizer", "", "`optimiser`: "+naming.OneOf(OptimizerNames())+" (default: the model's)")
	f.Func("lr", "learning `rate` (default: the model's)", optional(&o.LR))
	f.Func("momentum", "SGD `momentum` (default: the model's)", optional(&o.Momentum))
	f.Func("weight-decay", "`penalty` on the weights: L2, or with adamw decoupled from the gradient (default: the model's)", optional(&o.WeightDecay))
	f.VarPF(optionalBool{&o.Nesterov}, "nesterov", "", "Nesterov's momentum, or with =false none (default: the model's)").NoOptDefVal = "true"
	f.StringVar(&o.Loss, "loss", "", "`loss` to make small: "+naming.OneOf(LossNames())+" (default: the model's)")
	f.Func("label-smoothing", "`share` of each label that all classes have in equal parts, from 0 to 1; with cross_entropy (default: the model's)", optional(&o.LabelSmoothing))
	f.Func("clip-norm", "greatest `norm` of all gradients together, above which they are scaled down to it; 0: any (default: the model's)", optional(&o.ClipNorm))
	f.StringVar(&o.Schedule, "schedule", "", "`schedule` of the learning rate: "+naming.OneOf(ScheduleNames())+" with settings, as in cosine,over=90epochs,min=1e-5,warmup=5epochs or step,every=500steps,gamma=0.5 or multistep,milestones=30/80epochs (default: the model's)")
}

// optionalBool is a flag that leaves the choice to the model where it is not given.
type optionalBool struct{ value **bool }

func (o optionalBool) Set(s string) error {
	yes, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("want true or false")
	}
	*o.value = &yes
	return nil
}

func (o optionalBool) String() string { return "" }
func (o optionalBool) Type() string   { return "bool" }

// timeFlag is a time in a flag, with or without a space before its unit, as all quantities in flags are written.
type timeFlag time.Duration

// AddTimeFlag adds a flag whose default is the present value.
func AddTimeFlag(f *pflag.FlagSet, value *time.Duration, name, usage string) {
	f.Var((*timeFlag)(value), name, usage)
}

func (t *timeFlag) Set(text string) (err error) {
	read, err := quantity.ParseTime(text)
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

// LossNames are the values of --loss.
func LossNames() []string {
	return cli.Texts(nn.Losses(), func(l nn.LossInfo) string { return l.Name })
}

// ScheduleNames are the values of --schedule without their settings.
func ScheduleNames() []string {
	return cli.Texts(rates.Schedules(), func(s rates.Info) string { return s.Name })
}

// OptimizerNames are the values of --optimizer.
func OptimizerNames() []string {
	return cli.Texts(nn.Optimizers(), func(o nn.OptimizerInfo) string { return o.Name })
}

// AddObjectiveFlags adds the flags of a search for the best plan.
func AddObjectiveFlags(cmd *cobra.Command, o *Options) {
	f := cmd.Flags()
	f.StringVar(&o.Objective, "objective", "", "look at all plans for the one that is least in `what`: "+naming.OneOf(problem.Objectives())+" (joules times seconds); with --plan, at all clocks of its tasks (default: the policy's plan)")
	f.Func("budget", fmt.Sprintf("parts of plans to look at, such as \"5000 `nodes`\", or a time, such as 30s, for the command with its search, with which equal runs may differ (default: %d nodes)", defaultBudget), func(text string) (err error) {
		counted := false
		o.BudgetTime = 0
		if o.Budget, counted = naming.ParseCount(text, "node"); !counted {
			if o.Budget, err = strconv.Atoi(text); err != nil {
				o.BudgetTime, err = quantity.ParseTime(text)
			}
		}
		if err != nil || o.Budget < 1 && o.BudgetTime <= 0 {
			return fmt.Errorf("write a number of nodes or a time, such as \"5000 nodes\" or 30s")
		}
		return nil
	})
	addDeadlineFlag(cmd, o)
	Exclude(cmd, "objective", "policy")
	Before(cmd, func() error {
		switch {
		case f.Changed("budget") && o.Objective == "":
			return fmt.Errorf("--budget bounds the search for an --objective; name one")
		case o.Objective == "":
			return nil
		case o.Budget == 0 && o.BudgetTime == 0:
			o.Budget = defaultBudget
		}
		return cli.CheckName("objective", o.Objective, problem.Objectives())
	})
}

// addPowerCapFlag adds the flag that caps the power of the machine.
func addPowerCapFlag(cmd *cobra.Command, o *Options) {
	cmd.Flags().Func("power-cap", "cap the power of the whole machine at every instant of the simulation at so many `watts`, such as 400W (default: the platform file's power_cap)", func(text string) (err error) {
		if o.PowerCap, err = platform.ParseWatts(text); err == nil && o.PowerCap == 0 {
			err = fmt.Errorf("write more than 0 W")
		}
		return err
	})
}

// addDeadlineFlag adds the flag that bounds the time of a step.
func addDeadlineFlag(cmd *cobra.Command, o *Options) {
	f := cmd.Flags()
	f.Func("deadline", "look at plans only whose step takes no longer than a `time`, such as 12ms", func(text string) (err error) {
		if o.Deadline, err = quantity.ParseTime(text); err != nil || o.Deadline <= 0 {
			err = fmt.Errorf("write a time above 0, such as \"12 ms\"")
		}
		return err
	})
	Before(cmd, func() error {
		if f.Changed("deadline") && o.Objective == "" {
			return fmt.Errorf("--deadline is kept by the search for an --objective; name one")
		}
		return nil
	})
}

// AddOutputFlags adds --out, whose default is dir, and --json.
func AddOutputFlags(cmd *cobra.Command, o *Output, dir string) {
	cmd.Flags().StringVar(&o.Dir, "out", dir, "`directory` for schedule, energy, figures and manifest")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object instead of text")
}

// AddSaveFlag adds the flag that keeps a network.
func AddSaveFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "save", "", "write the trained weights to a `file` that ends in "+naming.OneOf(weights.Endings())+", or the network with them to one that ends in "+ONNXEnding)
}

// ONNXEnding is the ending of files of networks with their weights.
const ONNXEnding = ".onnx"

// SaveEndings are the endings of files for --save.
func SaveEndings() []string { return append(weights.Endings(), ONNXEnding) }

// AddSamplesFlag adds the flag for further simulations with drawn durations.
func AddSamplesFlag(cmd *cobra.Command, o *Options) {
	cmd.Flags().IntVar(&o.Samples, "samples", 0, "also simulate `n` times with drawn durations and print an interval")
}

// AddCutsFlag adds the flag that asks for the table.
func AddCutsFlag(cmd *cobra.Command, o *Options) {
	cmd.Flags().BoolVar(&o.Cuts, "cuts", false, "also print what it costs to split each layer of a network in two")
	Before(cmd, func() error {
		if o.Cuts && o.Model == "" {
			return fmt.Errorf("--cuts is of the layers of a network; name one with --model")
		}
		return nil
	})
}

// ofDahlAlone are flags of trainings that no other program has.
var ofDahlAlone = []string{"graph", "lowering", "policy", "plan", "variant", "clock"}

// AddPeerFlags adds the flags of a training by another program.
func AddPeerFlags(cmd *cobra.Command, o *Options) {
	AddWorkFlags(cmd, o)
	AddTrainFlags(cmd, o)
	Exclude(cmd, "devices", "workers")
	f := cmd.Flags()
	f.IntVar(&o.Steps, "steps", 0, "at most `n` training steps per epoch (0: all)")
	cli.AddPythonFlag(cmd, &o.Python, "the program")
	f.StringVar(&o.Setting, "setting", "default", "`name` of a setting, such as tuned, or with a format, such as tuned: channels_last; or best")
	for _, name := range ofDahlAlone {
		cli.Must(f.MarkHidden(name))
	}
	Before(cmd, func() error {
		for _, name := range ofDahlAlone {
			if f.Changed(name) {
				return fmt.Errorf("--%s is of dahl alone; leave it out", name)
			}
		}
		return nil
	})
}

// ReadPaths lists the flags that name files or directories to be read, by the flag's name, or by command.flag.
// The function of a flag finds the path in its value. An empty path means that the value names no file.
func ReadPaths() map[string]func(string) string {
	path := func(value string) string { return value }
	unless := func(isName func(string) bool) func(string) string {
		return func(value string) string {
			if isName(value) {
				return ""
			}
			return value
		}
	}
	isData := func(value string) bool {
		kind, _, _ := strings.Cut(value, ":")
		return slices.Contains(data.Names(), kind)
	}
	return map[string]func(string) string{
		"data": unless(isData), "graph": path, "plan": path, "platform": path, "resume": path,
		"init":       unless(func(value string) bool { return strings.HasPrefix(value, UniformInit) }),
		"lowering":   unless(func(v string) bool { return v == DefaultTiles }),
		"model":      unless(func(value string) bool { return !cli.IsModelFile(value) }),
		"python":     unless(func(value string) bool { return !strings.ContainsRune(value, os.PathSeparator) }), // which is looked for where programs are
		"vocabulary": unless(func(value string) bool { return slices.Contains(data.VocabularyKinds(), value) }),
		"experiment run.data": func(value string) string {
			_, data, _ := strings.Cut(value, "=")
			return unless(isData)(data)
		},
	}
}
