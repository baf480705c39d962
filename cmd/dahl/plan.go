package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/naming"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/rundir"
	"dahl/schedule"
)

var planHelp = `plan lets a policy choose the place and the order of the tasks of a step. It writes the decisions
as plan.json into a run directory, with the schedule predicted by the simulator. With several
memories plan.json also has the transfers of every copy engine in their order, the evictions and
reloads, and the offsets of all buffers. simulate and execute replay the file with --plan, to the
letter; they refuse a plan that contradicts itself or the graph. eager, lws, dmda, dmdar and dmdas
decide at run time where all tasks run in one memory; the file then has the resulting order. For
several memories they plan before the run, over expected times, and the plan is replayed. For the
shortest step, --policy best compares plans of all policies.
A plan holds for one graph: give them the same --model, --batch, --dtype, --data
and --limit. A plan with --inference is of a step that lets the network predict a batch; simulate takes it
with --inference, and dahl evaluate executes it. The granularity of the layers is taken from the plan.

With --cuts it prints for each layer of a network the time on one unit of each kind of device,
and the extra time if the layer is split in two along samples, outputs, inputs, rows or columns:
halos, smaller tasks, dispatches, sums of parts. cuts.csv has all of it.

A plan written by hand needs a format, and for each worker its tasks in order:

  {"format": "dahl-plan 1", "devices": {"cpu.0": ["a", "b"], "gpu0": ["c"]},
   "clocks": {"b": "slow"}, "sleeps": {"c": "deep"}}

clocks and sleeps may be left out. The former gives tasks another clock than the one in
force; the latter lets the unit of a task enter a sleep state as soon as it has ended.
Both are states that the platform file describes.

` + flags.BestPolicyHelp + `

` + flags.StrategyHelp + `

With --objective it looks for the plan of a step with the least time, joules or joules times
seconds. It proves the plan optimal, or bounds its distance from the optimum. The step runs
alone (--steps 1), or it is a steady step: the time or the joules that one more step adds to a
long run. The search chooses devices and numbers of their units, tilings of a network's
layers, and the place, order and clock of every task. It goes on in rounds of growing effort
until the budget is spent, so that with more nodes its plan is never worse. In each round it
plans for the next choices in the rank of a model of the layers, with sets of devices and cuts
of each layer. From the best ones it goes on to similar choices: other samples, outputs,
inputs, rows or columns of the tasks of single layers in the forward pass and both gradients,
other accumulators or micro-batches, other numbers of units. Where a memory is too small, so that
there is no plan or contents are evicted and reloaded, it joins the loss with the last layer,
recomputes layers, and takes more micro-batches, and a line says which. With several GPUs a layer may
also be divided into one part for each. The first round plans for up to 25 strategies (on eight
GPUs 50, and so on) exactly as --policy gives them, as far as the budget goes: replicas, weights or
images in parts, pipelines with one, two or four micro-batches for each device, and their products, over all
devices that are no processors, or else over the cores. It leaves out those that a bound of
their time excludes, and a line names those that the budget did not suffice for. Further
rounds plan for more. From the best pipeline it goes on to other micro-batches and other first layers of
stages. Where the plan has a strategy, the line of the choice names it as --policy takes it, and
the line of the stages says which layers each device has. All policies plan for the best choices. A tiling named
"4 samples per task; fc1: 60 inputs; fc1: 2 accumulators" has 4 samples per task, except that
tasks of fc1 have 60 inputs, and two accumulators take their sums. "fc1: 30 gradient outputs"
speaks of the weight gradient, and "conv2: 7 input-gradient rows" of the input gradient. Where
the platform file has measured calls, the search tries tilings with measured calls only. Other
times are estimated, and the line of the step says how much of it is. Local search improves
the best plans. For a single step of up to 64 tasks the search visits all plans, as far as
--budget goes. Where it has not, certificate.json proves two bounds. One is for the chosen
tiles on sets of devices (up to exchange of equal ones; 1, 2, 4, 8, 12, 16, 24, 36, 40 or all
units, equal numbers of processors of one kind), with any number of versions of buffers. The
other one, mostly less, is for all lowerings, whatever their numbers, on all sets of devices.
dahl verify checks both again in exact arithmetic. --devices, --lowering, --tile and --clock
restrict the choices. Devices without tasks leave the chosen set.
The command explains its choice in words. It gives the cost of the next best plan, of spare
devices, and of leaving out chosen ones, where local search has made at least half as many
moves or bounds say that no plan there is better; of other devices and tiles it says nothing. On a
calibrated platform it also gives the range of the objective for durations drawn from the
measured distributions (with --seed).

A signal (Ctrl-C) or a lost terminal ends the search: the best plan so far is written with
the bound that is proved by then, and the exit code is 128 + the signal's number; rerun
does not repeat it. A SIGINT or SIGTERM after that ends it at once and writes nothing.

For a graph file and the least time of a steady step it also looks for plans whose steps overlap
as a pipeline: a worker then has tasks of several steps in progress, and buffers have as many
versions as that takes ("lags" and "copies" in plan.json). The plans of all policies and
published strategies are where it begins. Its bound holds however many steps overlap; there is
no certificate of it. A graph file can be simulated, and not executed; plans of a network that have
lags, such as those of 1f1b with stashed weights, are executed.

With a --plan and an --objective the tasks of the file stay where they are, in their order, and
get the clocks that are best for them, by linear programming. It says how far these may be from
the best ones. front.csv then has clocks from the shortest step to the least joules.

With --epochs the last lines are of a whole training by the plan, as in simulate; the file is of its main step.

With --what-if it also plans for another platform, with the same options and the same budget again, and says what a step takes
there in time and joules: whether a ninth node is worth it, for instance. That plan is a run of its own, in the
directory of --out with -what-if at its end.

--deadline excludes plans with a longer step; --power-cap lets tasks wait while the
machine would draw more. front.csv and front.svg show all simulated plans by time
and energy, and mark the plans that no other beats in both.

dahl experiment run plans for several machines, graphs or networks: command = "plan" in [run], and
lists of them in [grid], such as platform = ["laptop", "server"] or graph = ["graphs/*.stg"].`

func newPlan(args []string) *cobra.Command {
	o := flags.Options{Args: args}
	var out flags.Output
	cmd := &cobra.Command{
		Use:   "plan --platform FILE (--model NAME|FILE | --graph FILE)",
		Short: "decide where and in which order tasks run, and write it down",
		Long:  planHelp,
		Example: `  dahl plan --platform laptop --model lenet5 --batch 64 --out lenet5-plan
  dahl simulate --platform laptop --model lenet5 --batch 64 --plan lenet5-plan/plan.json
  dahl plan --platform node.toml --graph small.json --objective energy
  dahl plan --platform node.toml --graph small.json --plan order.json --objective energy --deadline 12ms
  dahl plan --platform server --model mlp --objective energy --deadline 12ms --power-cap 900W
  dahl plan --platform eight.toml --what-if nine.toml --model resnet18 --batch 576`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Bar, o.Begun = cli.NewProgressBar(cmd.ErrOrStderr(), "search"), time.Now()
			if !o.Bar.Shown() {
				o.Announce = sync.OnceFunc(func() { fmt.Fprintf(cmd.ErrOrStderr(), "dahl: %s\n", o.SearchText()) })
			}
			return runPlan(cmd.Context(), cmd.OutOrStdout(), &o, &out)
		},
	}
	flags.AddSimulateFlags(cmd, &o, &out, "dahl-plan")
	flags.AddObjectiveFlags(cmd, &o)
	flags.AddCutsFlag(cmd, &o)
	addDumpFlag(cmd, &out)
	cmd.Flags().StringVar(&o.WhatIf, "what-if", "", "also plan for this other `platform` with the same options, and compare its time and joules")
	return cmd
}

// runPlan plans a run, and writes its directory. What a search has found is written also when ctx ends. With --what-if another one follows.
func runPlan(ctx context.Context, stdout io.Writer, o *flags.Options, out *flags.Output) error {
	other := *o
	if other.Platform, other.WhatIf = o.WhatIf, ""; o.WhatIf != "" {
		if _, _, err := other.Machine(); err != nil { // before the search
			return fmt.Errorf("--what-if: %w", err)
		}
	}
	if out.Dump == "" {
		if err := record.CheckRun(out.Dir); err != nil {
			return err
		}
	}
	p, err := planFor(ctx, o)
	if err != nil {
		return err
	}
	if out.Dump != "" {
		return p.w.dump(stdout, out.Dump)
	}
	interrupted, err := p.write(ctx, out.Dir)
	if err != nil {
		return err
	}
	if !out.JSON {
		p.print(stdout, out)
	}
	said := struct {
		*record.Summary
		WhatIf *whatIf `json:"what_if,omitempty"`
	}{p.summary, nil}
	if o.WhatIf != "" && interrupted == nil {
		if said.WhatIf, err = p.whatIf(ctx, other, out.Dir+"-what-if"); err != nil {
			return fmt.Errorf("--what-if: %w", err)
		}
	}
	if out.JSON {
		return cmp.Or(cli.PrintJSON(stdout, said), interrupted)
	}
	if said.WhatIf != nil {
		said.WhatIf.print(stdout, p)
	}
	p.printEnd(stdout, p.path)
	return interrupted
}

// planned is a plan with its prediction.
type planned struct {
	*prediction
	found *best.Result // by a search; nil means that there was none
	cuts  []plan.CutCost
	path  string // of its directory, once it is written
}

// planFor plans a run.
func planFor(ctx context.Context, o *flags.Options) (*planned, error) {
	w, err := undecidedWorkload(ctx, o)
	if err != nil {
		return nil, err
	}
	p := &planned{}
	if o.Cuts {
		if p.cuts, err = w.CutCosts(ctx); err != nil {
			return nil, cli.AsInput(err)
		}
	}
	if o.Objective != "" {
		defer cli.Saving(ctx, "the search ends, and the best plan so far is written")()
	}
	if p.found, err = w.choosePlan(ctx); err != nil {
		return nil, err
	}
	whole := ctx
	if p.found != nil {
		whole = context.WithoutCancel(ctx)
	}
	if p.prediction, err = w.predicted(whole, ctx); err != nil {
		return nil, err
	}
	p.summary.Cuts = p.cuts
	return p, addObjective(ctx, p.summary, o, p.found)
}

// write writes the directory of the plan. interrupted is why it is only the best so far.
func (p *planned) write(ctx context.Context, dir string) (interrupted, err error) {
	m := p.w.newManifest("plan")
	m.Args, m.Options.WhatIf = record.ArgsWithout(m.Args, "what-if"), "" // another run
	if m.Interrupted = p.found != nil && ctx.Err() != nil; m.Interrupted {
		interrupted = fmt.Errorf("the plan in %s is the best so far: %w", dir, ctx.Err())
	}
	p.path, err = p.prediction.write(m, dir, func(d *rundir.Dir) error { return p.w.writePlan(d, p.summary, p.found, p.cuts) })
	return interrupted, err
}

// print prints the plan and what it rests on.
func (p *planned) print(stdout io.Writer, out *flags.Output) {
	p.prediction.print(stdout, out)
	words.PrintCuts(stdout, p.cuts)
	p.w.printAssignment(stdout, p.w.Decision.PlanOf(0, p.result.Main), p.result)
	if p.found != nil {
		p.w.printFound(stdout, p.summary, p.found)
	}
}

// whatIf is a plan of the same for another platform, and its step relative to the one here.
type whatIf struct {
	Platform  string   `json:"platform"`
	Directory string   `json:"directory"`
	StepS     float64  `json:"step_s"`
	Times     float64  `json:"times"`
	StepJ     *float64 `json:"step_j,omitempty"`
	TimesJ    *float64 `json:"times_j,omitempty"`
}

// whatIf plans with options for another platform, as long as for this one, and writes that run into a directory of its own.
func (p *planned) whatIf(ctx context.Context, o flags.Options, dir string) (*whatIf, error) {
	o.Begun = time.Now()
	o.Args = append(record.ArgsWithout(o.Args, "platform", "what-if"), "--platform", o.Platform)
	other, err := planFor(ctx, &o)
	if err != nil {
		return nil, err
	}
	interrupted, err := other.write(ctx, dir)
	if err := cmp.Or(err, interrupted); err != nil {
		return nil, err
	}
	here, there := p.w.figures(p.result), other.w.figures(other.result)
	is := &whatIf{Platform: other.w.Platform.Name, Directory: other.path, StepS: there.StepS, Times: there.StepS / here.StepS}
	if here.JoulesPerStep > 0 && there.JoulesPerStep > 0 {
		times := there.JoulesPerStep / here.JoulesPerStep
		is.StepJ, is.TimesJ = &there.JoulesPerStep, &times
	}
	return is, nil
}

// print says how the step compares with the one of a plan.
func (is *whatIf) print(stdout io.Writer, than *planned) {
	here := than.w.figures(than.result)
	fmt.Fprintf(stdout, "what-if   on %s a step takes %s, %s times the %s on %s", is.Platform, cli.ShowTime(is.StepS), cli.ThreeDigits(is.Times), cli.ShowTime(here.StepS), than.w.Platform.Name)
	if is.StepJ != nil {
		fmt.Fprintf(stdout, ", and %s, %s times the %s", cli.ShortJoules(*is.StepJ), cli.ThreeDigits(*is.TimesJ), cli.ShortJoules(here.JoulesPerStep))
	}
	fmt.Fprintf(stdout, "\n          its plan is in %s\n", is.Directory)
}

// printFound prints what a search has found, and why.
func (w *workload) printFound(stdout io.Writer, s *record.Summary, found *best.Result) {
	o := w.opts
	if found.Covered.Clocks || found.Covered.Lags {
		words.PrintOptimum(stdout, o, found)
		return
	}
	e := &words.Explained{Explanation: s.Explanation, Objective: problem.Objective(o.Objective), Covered: found.Covered, Machine: w.fullPlatform, Out: stdout, More: record.SummaryFile}
	e.PrintChosen()
	words.PrintOptimum(stdout, o, found)
	if o.BudgetTime > 0 {
		words.PrintClauses(stdout, "budget", fmt.Sprintf("of %s it took %s, with what comes before the search, the explanation and the files", cli.ShortTime(o.BudgetTime), cli.ShortTime(time.Since(o.Begun))))
	}
	e.Print()
}

// writePlan writes what a search has found, and the costs of cuts.
func (w *workload) writePlan(dir *rundir.Dir, s *record.Summary, found *best.Result, cuts []plan.CutCost) error {
	if found != nil {
		if err := w.writeProof(dir, s, found); err != nil {
			return err
		}
	}
	if len(cuts) == 0 {
		return nil
	}
	return dir.Write(words.CutsFile, func(out io.Writer) error { return words.WriteCuts(out, cuts) })
}

// printAssignment prints the tasks that a plan gives to each worker. A cluster has a table of its nodes instead.
func (w *workload) printAssignment(out io.Writer, decided *schedule.Plan, o *plan.Totals) {
	if len(w.Platform.Nodes) > 0 {
		return
	}
	busy, unused := plan.BusyPerStep(o.Main, len(w.Platform.Workers)), 0
	fmt.Fprintf(out, "\n%-12s %7s %12s %7s  %s\n", "worker", "tasks", "busy/step", "share", "operations")
	for i := range w.Platform.Workers {
		if i >= len(decided.Order) || len(decided.Order[i]) == 0 {
			unused++
			continue
		}
		count, states := map[string]int{}, map[string]int{}
		device := &w.Platform.Devices[w.Platform.Workers[i].Device]
		for _, t := range decided.Order[i] {
			task := &w.Program.Graphs[0].Tasks[t]
			count[task.Op]++
			if decided.Clocks != nil && decided.Clocks[t] != platform.InForce {
				states["at clock "+device.ClockAt(decided.Clocks[t]).Name]++
			}
			if decided.Sleeps != nil && decided.Sleeps[t] > 0 {
				states["then asleep in "+device.Sleeps[decided.Sleeps[t]-1].Name]++
			}
		}
		text := words.MostFrequent(count, 4)
		if len(states) > 0 {
			text += "; " + words.MostFrequent(states, len(states))
		}
		fmt.Fprintf(out, "%-12s %7d %12s %6.1f%%  %s\n", w.Platform.Workers[i].Name, len(decided.Order[i]),
			cli.ShowTime(busy[i]), 100*cli.Ratio(busy[i], o.Counted.StepS()), text)
	}
	if unused > 0 {
		fmt.Fprintf(out, "without a task: %s of %s\n", naming.Thousands(unused), naming.Count(len(w.Platform.Workers), "worker"))
	}
	words.PrintEngines(out, decided)
	fmt.Fprintln(out)
}
