package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/plan"
	"dahl/schedule"
)

func newPlan(args []string) *cobra.Command {
	o := options{args: args}
	var out output
	cmd := &cobra.Command{
		Use:   "plan --platform FILE (--model NAME|FILE | --graph FILE | --instances DIR)",
		Short: "decide where and in which order tasks run, and write it down",
		Long: `plan lets a policy decide where and in which order the tasks of a step run, and
writes the decisions as plan.json into a run directory, beside the schedule that
the simulator predicts for them. With several memories they are also what every copy
engine moves in which order, what leaves a memory and comes back, and where everything
lies. simulate and execute replay the file with --plan, to the letter; they refuse one
that contradicts itself or the graph.
A plan holds for one graph: give them the same --model, --batch, --dtype, --data
and --limit. The granularity of the layers is taken from the plan.

A plan written by hand needs a format, and for each worker its tasks in order:

  {"format": "dahl-plan 1", "devices": {"cpu.0": ["a", "b"], "gpu0": ["c"]},
   "clocks": {"b": "slow"}, "sleeps": {"c": "deep"}}

clocks and sleeps may be left out. The former gives tasks another clock than the one in
force; the latter lets the unit of a task enter a sleep state as soon as it has ended.
Both are states that the platform file describes.

` + bestPolicyHelp + `

With --objective it looks for the plan of a step that takes the least time, joules or
joules times seconds, and says whether that is proven, or how far the value may be above
the least. The step is one that runs alone (--steps 1), or a steady one: what one step
more adds to a long run. Of one alone of up to 64 tasks it looks at all plans: for each
task every worker and every clock, for each worker every order, as far as --budget goes.
Of others it takes the best plan of all policies on all devices and on parts of them.
Where it has not looked at all plans, certificate.json proves the bound, and dahl verify
adds it up again in exact arithmetic. --clock holds a device to one clock; the bound of
a certificate is then that of all clocks.

` + instancesHelp + `

` + bestTilesHelp,
		Example: `  dahl plan --platform laptop --model lenet5 --batch 64 --out lenet5-plan
  dahl simulate --platform laptop --model lenet5 --batch 64 --plan lenet5-plan/plan.json
  dahl plan --platform node.toml --graph small.json --objective energy
  dahl plan --instances graphs --objective time --budget 30s --out plans`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.instances != "" {
				if !cmd.Flags().Changed("out") {
					out.dir += "s" // beside the one of a single plan
				}
				return planInstances(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), &o, &out)
			}
			return runSimulation(cmd.Context(), "plan", cmd.OutOrStdout(), &o, &out)
		},
	}
	addSimulateFlags(cmd, &o, &out, "dahl-plan")
	addObjectiveFlags(cmd, &o)
	addInstancesFlag(cmd, &o)
	return cmd
}

// printAssignment prints what a plan gives to each worker that has a task.
func (w *workload) printAssignment(out io.Writer, decided *schedule.Plan, o *plan.Totals) {
	busy, unused := plan.BusyPerStep(o.Main, len(w.Platform.Workers)), 0
	fmt.Fprintf(out, "\n%-12s %7s %12s %7s  %s\n", "worker", "tasks", "busy/step", "share", "operations")
	for i := range w.Platform.Workers {
		if i >= len(decided.Order) || len(decided.Order[i]) == 0 {
			unused++
			continue
		}
		count, states := map[string]int{}, map[string]int{}
		for _, t := range decided.Order[i] {
			task := &w.Program.Graphs[0].Tasks[t]
			count[task.Op]++
			if clock := decided.Clocks[task.Name]; clock != "" {
				states["at clock "+clock]++
			}
			if state := decided.Sleeps[task.Name]; state != "" {
				states["then asleep in "+state]++
			}
		}
		text := mostFrequent(count, 4)
		if len(states) > 0 {
			text += "; " + mostFrequent(states, len(states))
		}
		fmt.Fprintf(out, "%-12s %7d %12s %6.1f%%  %s\n", w.Platform.Workers[i].Name, len(decided.Order[i]),
			cli.ShowTime(busy[i]), 100*cli.Ratio(busy[i]*float64(o.Main.Steps), o.Main.Makespan.Seconds()), text)
	}
	if unused > 0 {
		fmt.Fprintf(out, "%d workers get no task\n", unused)
	}
	printEngines(out, decided)
	fmt.Fprintln(out)
}

// printEngines prints what a plan gives to each copy engine.
func printEngines(out io.Writer, plan *schedule.Plan) {
	for i, engine := range plan.Transfers {
		if i == 0 {
			fmt.Fprintf(out, "\n%-12s %7s %12s  %s\n", "engine", "copies", "bytes/step", "reasons")
		}
		var bytes int64
		count := map[string]int{}
		for _, c := range engine.Copies {
			bytes += c.Bytes
			count[string(c.Reason)]++
		}
		fmt.Fprintf(out, "%-12s %7d %12s  %s\n", engine.Engine, len(engine.Copies), cli.ShortBytes(bytes), mostFrequent(count, len(count)))
	}
}

// mostFrequent names the n most frequent operations and how often each occurs.
func mostFrequent(count map[string]int, n int) string {
	ops := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a, b))
	})
	var parts []string
	for _, op := range ops {
		parts = append(parts, fmt.Sprintf("%d %s", count[op], op))
	}
	if len(parts) > n {
		parts = append(parts[:n], "…")
	}
	return strings.Join(parts, ", ")
}
