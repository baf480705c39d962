package flags

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

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/files"
	"dahl/plan/problem"
	"dahl/plan/strategy"
	"dahl/plan/tiling"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train"
)

// Options are the flags that decide the results of a run. They are kept in the manifest, so that
// rerun can repeat it.
type Options struct {
	Platform string `json:"platform,omitempty"`
	Devices  string `json:"devices,omitempty"`
	Model    string `json:"model,omitempty"`
	Graph    string `json:"graph,omitempty"`
	Lowering string `json:"lowering,omitempty"`
	Tile     int    `json:"tile,omitempty"` // samples per task of the busiest layer; 0 means the default
	Plan     string `json:"plan,omitempty"`
	Policy   string `json:"policy"`
	Variant  string `json:"variant,omitempty"`
	DType    string `json:"dtype"`

	Clocks []string `json:"clocks,omitempty"` // "device=clock"

	// Precision of the factors of products, one of [dahl/kernels/calls.Precisions]. Empty means the finest.
	Precision string `json:"precision,omitempty"`

	Batch   int  `json:"batch,omitempty"`
	Steps   int  `json:"steps,omitempty"`
	Samples int  `json:"samples,omitempty"`
	Cuts    bool `json:"cuts,omitempty"`

	Inference bool `json:"inference,omitempty"` // the test set goes through the network, and nothing is trained
	Outputs   bool `json:"-"`                   // all outputs of an inference are kept

	Seed uint64 `json:"seed"`

	WhatIf string `json:"what_if,omitempty"` // another platform, whose plan is compared

	Objective  string        `json:"objective,omitempty"`
	Budget     int           `json:"budget_nodes,omitempty"`
	BudgetTime time.Duration `json:"budget_ns,omitempty"`
	Deadline   time.Duration `json:"deadline_ns,omitempty"`     // of a step
	PowerCap   float64       `json:"power_cap_watts,omitempty"` // of the machine; 0 means the platform's

	Data   string `json:"data,omitempty"`
	Epochs int    `json:"epochs,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Offset int    `json:"offset,omitempty"`
	Resize string `json:"resize,omitempty"` // of pictures, "ROWSxCOLUMNS"

	Vocabulary string `json:"vocabulary,omitempty"` // kind of the tokens of a text, one of data.VocabularyKinds, or a directory with merges

	Shuffle bool   `json:"shuffle,omitempty"`
	Workers int    `json:"workers,omitempty"`
	Init    string `json:"init,omitempty"`

	Optimizer   string   `json:"optimizer,omitempty"`
	LR          *float64 `json:"lr,omitempty"`
	Momentum    *float64 `json:"momentum,omitempty"`
	WeightDecay *float64 `json:"weight_decay,omitempty"`
	Nesterov    *bool    `json:"nesterov,omitempty"`
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
	// training goes on from there when a device fails; 0 means that such a failure ends it.
	ContinueOnLoss int `json:"continue_on_loss,omitempty"`

	// ContinueOnNaN lets a training go on whose loss is NaN or infinite.
	ContinueOnNaN bool `json:"continue_on_nan,omitempty"`

	// Record is how many steps of every graph are recorded in an epoch; 0 means as the devices
	// suggest.
	Record int `json:"record,omitempty"`

	// Stream is no flag: it says that the data did not fit the memory, so that whatever goes on
	// from the run or repeats it has the same task graph.
	Stream bool `json:"stream,omitempty"`

	Args []string `json:"-"` // the command line, for the manifest

	Bar   *cli.ProgressBar `json:"-"` // of a search; nil means none
	Begun time.Time        `json:"-"` // when its time began; zero: with it

	Announce func() `json:"-"` // says how long searches may take, once; nil means a terminal shows it

	AnyClock bool `json:"-"` // the clocks of processors and GPUs are set, or not asked for

	Tiles tiling.Tiling `json:"-"` // that a calibration measures; the zero value: by the flags

	Tokens *data.Vocabulary `json:"-"` // of the text that a trained network knows; nil means by the data

	Recorded *dag.Lowering `json:"-"` // of a training that goes on; nil means by the flags
}

// CheckRounds bounds --steps, --epochs and --samples: what is planned for each of them takes memory.
func CheckRounds(flag string, value, least int) error {
	const most = 1_000_000
	if value < least || value > most {
		return cli.InputErrorf("--%s %d: want %d to %d", flag, value, least, most)
	}
	return nil
}

// CheckData refuses impossible numbers of samples, and a --resize without two sizes.
func (o *Options) CheckData() error {
	_, err := o.dataOptions()
	return cmp.Or(err, cli.CheckNotNegative("batch", o.Batch), cli.CheckNotNegative("limit", o.Limit), cli.CheckNotNegative("offset", o.Offset))
}

// dataOptions returns the options of the training data that the flags set.
func (o *Options) dataOptions() (opt data.Options, err error) {
	opt = data.Options{Limit: o.Limit, Offset: o.Offset}
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

// dataOptionsOf are the options of the training data for a network.
func (o *Options) dataOptionsOf(m *nn.Model) (data.Options, error) {
	opt, err := o.dataOptions()
	opt.Positions, opt.MaskToken = train.Window(m), m.Defaults.MaskToken
	switch {
	case err != nil:
	case o.Tokens != nil:
		opt.Vocabulary = *o.Tokens
	default:
		if opt.Vocabulary, err = data.VocabularyOf(o.Vocabulary); err != nil {
			err = cli.InputErrorf("--vocabulary: %w", err)
		}
	}
	return opt, err
}

// model loads the network, and says what is to be known of it.
func (o *Options) model() (*nn.Model, error) {
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

// CheckLowering refuses a lowering that is neither a file nor one of some words for tiles.
func (o *Options) CheckLowering(words ...string) error {
	if o.Lowering == "" || slices.Contains(words, o.Lowering) {
		return nil
	}
	if _, err := os.Stat(o.Lowering); errors.Is(err, fs.ErrNotExist) {
		return cli.InputErrorf("--lowering %s: no such file; write a TOML file or %s%s", o.Lowering, naming.OneOf(words), naming.DidYouMean(o.Lowering, words))
	}
	return nil
}

// Exclude refuses two flags that contradict each other.
func Exclude(cmd *cobra.Command, a, b string) {
	Before(cmd, func() error {
		if cmd.Flags().Changed(a) && cmd.Flags().Changed(b) {
			return fmt.Errorf("--%s and --%s exclude each other", a, b)
		}
		return nil
	})
}

// Before adds a check of the flags.
func Before(cmd *cobra.Command, check func() error) {
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil || next == nil {
			return err
		}
		return next(cmd, args)
	}
}

// setPolicy takes the name of a scheduler in any case. A lowering file that names the order of its stages takes the place of best.
func (o *Options) setPolicy() error {
	if o.Policy == BestPolicy && o.Lowering != "" {
		if l, err := files.LoadLowering(o.Lowering); err == nil && l.Order != "" {
			o.Policy = l.Order
		}
	}
	known := append([]string{BestPolicy}, cli.PolicyNames()...)
	i := slices.IndexFunc(known, func(n string) bool { return strings.EqualFold(n, o.Policy) })
	first, _, _ := strings.Cut(strings.ToLower(o.Policy), strategy.Times)
	first, _, numbered := strings.Cut(first, ":")
	_, unknown := strategy.Line(first)
	switch {
	case i >= 0:
		o.Policy = known[i]
	case unknown == nil:
		return o.setStrategy()
	case numbered && slices.Contains(known, first):
		return fmt.Errorf("--policy %s: %s takes no numbers", o.Policy, first)
	case strings.EqualFold(o.Policy, "replay"): // as summaries name it
		return fmt.Errorf("--policy %s: a plan is replayed with --plan", o.Policy)
	default:
		return cli.CheckName("policy", o.Policy, PolicyNames())
	}
	return nil
}

// setStrategy takes a strategy, or a product of such, in any case.
func (o *Options) setStrategy() error {
	o.Policy = strings.ToLower(o.Policy)
	of, err := strategy.ByName(o.Policy)
	if err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	if of.OfNetworks() && o.Model == "" {
		return fmt.Errorf("--policy %s: the strategy lowers a network; name one with --model", o.Policy)
	}
	return nil
}

// BestPolicyHelp is the paragraph about it in the help of the commands that have it.
var BestPolicyHelp = fmt.Sprintf(`Without --policy the run takes the fastest predicted step that a brief search finds among the
sets of --devices and, without --lowering and --tile, among ways to cut the layers, which a model of the layers ranks
first, the best pipeline and the best other strategy by this model among them. Lines name the set and the tiles or the strategy, and their
advantage over all devices and over default tiles. Local search improves the plan of a network of a few hundred tasks at most. Where a memory is too small it also tries to join the loss
with the last layer, to recompute layers, and micro-batches; the line of the tiles says which. The tiles are chosen
for all units that the platform file gives the devices, at their first clocks. So weights are the same with
any --workers, but may differ in their last bits on another platform file or with other --devices;
--lowering %s keeps to tiles that follow from caches. A detected machine has guessed rates, and is not searched:
--policy %s plans for all, with default tiles. A --lowering file with stages that names their order is planned in that order.`, DefaultTiles, ListPolicy)

// BestPolicy is the --policy that chooses among the plans of all policies on sets of the devices.
const BestPolicy = "best"

// ListPolicy is the one that plans for a given set of devices in the place of bestPolicy.
var ListPolicy = policy.HEFT.Doc().Name

// BestNodes bounds its search after the model has ranked tiles: a tenth of a second for a small network, and the first plan of a deep one.
const BestNodes = 4_000

// PolicyNames are the values of --policy, without numbers.
func PolicyNames() []string {
	names := append([]string{BestPolicy}, cli.PolicyNames()...)
	for _, s := range strategy.All() {
		if name := s.Doc().Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// StrategyHelp is the paragraph about published strategies.
var StrategyHelp = func() string {
	text := [2]string{`--policy also takes published strategies. Of a network they make stages: layers in their order, on a device or on several that share
them, the accelerators of --devices first. A plus sign stands between the strategies of a product: a pipeline, and one that shares its
stages, as in tensor-parallel:2+1f1b:2x8. The closed formula of a paper is printed as model_s beside the simulated time, with a for the latency and B for
the bandwidth of the slowest hop between two of the p devices:
`, `

Others are for the graph of a training or of an inference. They place its layers, let steps overlap as far as the
graph allows, and have a cost model of their paper:
`}
	for _, s := range strategy.All() {
		at := 1
		if s.OfNetworks() {
			at = 0
		}
		text[at] += fmt.Sprintf("\n  %s\n      %s\n      %s\n      model: %s\n", s.Form(), s.Doc().Sentence, s.Doc().Paper, s.Says)
	}
	return strings.TrimSuffix(text[0], "\n") + strings.TrimSuffix(text[1], "\n")
}()

// policyHelp is the help of --policy.
func policyHelp() string {
	orders := naming.List(policy.Pipelines(), func(p schedule.Policy) string { return p.Doc().Name })
	return "`scheduler`: " + naming.OneOf(PolicyNames()) + "; best takes the fastest plan that it finds on sets of the devices; " + naming.OneOf(orders) +
		" order the stages of a --lowering file, and strategies with numbers make stages, as in 1f1b:4x8"
}

// DefaultTiles is the --lowering for tiles that follow from caches alone, and AllTiles the one of calibrate for all sizes of tiles.
const DefaultTiles, AllTiles = "default", "all"

// defaultBudget is how many parts of plans a search looks at.
const defaultBudget = 200_000

// ObjectiveUnit returns the unit of the objective's values.
func (o *Options) ObjectiveUnit() string {
	unit := map[problem.Objective]string{problem.Time: "s", problem.Energy: "J", problem.EDP: "J·s"}[problem.Objective(o.Objective)]
	if o.Steps > 1 {
		unit += " per step"
	}
	return unit
}

// SearchText says how long a search may take.
func (o *Options) SearchText() string {
	if o.BudgetTime > 0 {
		return fmt.Sprintf("the search may take %s", cli.ShortTime(o.BudgetTime))
	}
	return fmt.Sprintf("the search looks at up to %s nodes, which takes seconds for a small graph and minutes for a large one; --budget \"30 s\" bounds the time", naming.Thousands(o.Budget))
}

// Output says where results go.
type Output struct {
	Dir     string
	JSON    bool
	Verbose bool
	Dump    string // the pass after which --dump prints the state; empty means that the run is made
}
