package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/plan/problem"
	"dahl/plan/space"
)

// planOptions choose plans, and other ways to find plans that are compared with them.
type planOptions struct {
	dahl, devices                  string
	networks, machines, objectives []string
	batches                        []int
	budgets                        []string
	hand, climb                    int
	defaults                       bool
	seed                           uint64
	out                            string
}

func newPlan() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "plans beside their bounds, and beside the best of choices made by hand",
		Long: `plan runs dahl plan for each network on each machine, batch, objective and budget,
and lays the value of a steady step beside the bound that its certificate proves.

Beside it stands the best of --hand choices as somebody makes them who does not search:
a random set of devices that dahl plan chooses from, a policy, and the same tiles for all
layers. --climb N adds a random hill climb of N evaluations, from default tiles on all
devices: each changes some numbers of single layers or the units of some devices, HEFT
plans, and what is no worse is kept. The values of both are those of dahl plan: of a run
of 100 steps less one of 50, over 50. They are found by shorter runs.

--default adds what dahl simulate takes without a policy, and the seconds of the command and
of its processors beyond those of one with --policy heft: it decides for the least time.`,
		Example: "  dahl-bench plan --networks lenet5 --platforms server --batches 32 --budgets 15s,60s --out plan.md\n" +
			"  dahl-bench plan --objectives time --budgets 60s --hand 0 --default --out default.md",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dahl, "dahl", "bin/dahl", "the `program` that plans")
	f.StringSliceVar(&o.networks, "networks", []string{"mlp", "lenet5", "dahl-cnn", "cifar-cnn", "vgg11", "resnet18", "resnet50-224"}, "networks")
	f.StringSliceVar(&o.machines, "platforms", []string{"server"}, "machines")
	f.StringVar(&o.devices, "devices", "", "choose among these devices, as --devices of dahl plan (default: all)")
	f.StringSliceVar(&o.objectives, "objectives", []string{string(problem.Energy), string(problem.Time)}, "what is made small")
	f.IntSliceVar(&o.batches, "batches", []int{64, 32}, "batch sizes")
	f.StringSliceVar(&o.budgets, "budgets", []string{"15s", "60s"}, "how long to look for each plan, as --budget of dahl plan")
	f.IntVar(&o.hand, "hand", 200, "choices made by hand")
	f.IntVar(&o.climb, "climb", 0, "evaluations of a hill climb (0: none)")
	f.BoolVar(&o.defaults, "default", false, "also what simulate decides without a policy")
	f.Uint64Var(&o.seed, "seed", 1, "of choices and of the climb")
	f.StringVar(&o.out, "out", "", "also write the table as a Markdown `file`")
	return cmd
}

// check refuses what cannot be run.
func (o *planOptions) check() error {
	_, err := chosen("objectives", o.objectives, problem.Objectives())
	err = cmp.Or(err, cli.CheckModels(o.networks...), cli.CheckNumbers("batches", o.batches...), cli.CheckNotNegative("hand", o.hand), cli.CheckNotNegative("climb", o.climb))
	for _, name := range o.machines {
		if err == nil {
			_, err = machine(name, o.devices, 0)
		}
	}
	if err == nil {
		if _, missing := exec.LookPath(o.dahl); missing != nil {
			err = cli.InputErrorf("--dahl %s: %w; make bin/dahl builds it", o.dahl, missing)
		}
	}
	return cmp.Or(err, cli.CheckWritable(o.out))
}

func (o *planOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dahl-plan-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bar := cli.NewProgressBar(stderr, "plan")
	defer bar.Done()
	table, begun := planTable{planOptions: o}, time.Now()
	fmt.Fprint(stdout, table.head())
	all := len(o.machines) * len(o.networks) * len(o.batches)
	for i := range all {
		network, batch := o.networks[i/len(o.batches)%len(o.networks)], o.batches[i%len(o.batches)]
		machine := o.machines[i/len(o.batches)/len(o.networks)]
		bar.Set(i, all, network+" on "+machine)
		rows, err := o.rows(ctx, dir, machine, network, batch)
		if err != nil {
			return fmt.Errorf("%s on %s, batch %d: %w", network, machine, batch, err)
		}
		for _, row := range rows {
			fmt.Fprintln(stdout, table.format(row))
		}
		table.rows, table.took = append(table.rows, rows...), time.Since(begun)
		if err := table.save(); err != nil {
			return err
		}
	}
	fmt.Fprint(stdout, table.summary())
	return nil
}

// planRow is one line of the table. All values belong to a steady step, in seconds, joules or their product.
type planRow struct {
	machine, network string
	batch            int
	objective        problem.Objective
	budget           string
	plan             planned
	hand, climb      found
	byDefault        *simulated
}

// planned holds the figures that dahl plan prints of its plan, and the time of the command.
type planned struct {
	Chosen struct {
		space.Choice
		Figures struct {
			Value float64 `json:"value"`
		} `json:"figures"`
	} `json:"chosen"`
	Gap  *float64 `json:"gap"` // nil means that no bound covers the plan
	took cost
}

// cost is the time of a command, and the time of its processors.
type cost struct{ wall, processor time.Duration }

// bound is the least value that a plan can have.
func (p *planned) bound() float64 {
	if p.Gap == nil {
		return 0
	}
	return p.Chosen.Figures.Value / (1 + *p.Gap)
}

// simulated holds the figures of a run that dahl simulate prints.
type simulated struct {
	StepS  float64 `json:"step_s"`
	beyond cost    // of the command, less those with HEFT
}

// rows plans for a network on a machine, by objective and budget.
func (o *planOptions) rows(ctx context.Context, dir, machine, network string, batch int) ([]planRow, error) {
	c, err := newContender(machine, o.devices, network, batch)
	if err != nil {
		return nil, err
	}
	hand, err := c.byHand(ctx, o.hand, o.seed)
	if err != nil {
		return nil, err
	}
	of := []string{"--platform", machine, "--devices", o.devices, "--model", network, "--batch", fmt.Sprint(batch), "--json", "--out", filepath.Join(dir, "run")}
	var byDefault *simulated
	if o.defaults {
		if byDefault, err = o.simulate(ctx, of); err != nil {
			return nil, err
		}
	}
	var rows []planRow
	for _, objective := range o.objectives {
		row := planRow{machine: machine, network: network, batch: batch, objective: problem.Objective(objective)}
		if row.hand, err = c.least(ctx, row.objective, hand); err != nil {
			return nil, err
		}
		if row.climb, err = c.climb(ctx, row.objective, o.climb, o.seed); err != nil {
			return nil, err
		}
		if row.objective == problem.Time {
			row.byDefault = byDefault
		}
		for _, row.budget = range o.budgets {
			of := append([]string{"plan", "--objective", objective, "--budget", row.budget}, of...)
			row.plan = planned{} // rows share no pointers
			if row.plan.took, err = o.runDahl(ctx, &row.plan, of...); err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// simulate simulates the default decision, and HEFT's for the time of its command.
func (o *planOptions) simulate(ctx context.Context, of []string) (*simulated, error) {
	var heft, own simulated
	of = append([]string{"simulate", "--steps", "100"}, of...)
	without, err := o.runDahl(ctx, &heft, append(of, "--policy", "heft")...)
	if err != nil {
		return nil, err
	}
	with, err := o.runDahl(ctx, &own, of...)
	own.beyond = cost{with.wall - without.wall, with.processor - without.processor}
	return &own, err
}

// runDahl runs a command and reads its output.
func (o *planOptions) runDahl(ctx context.Context, said any, args ...string) (took cost, err error) {
	cmd, began := exec.CommandContext(ctx, o.dahl, args...), time.Now()
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if took.wall = time.Since(began); err == nil {
		took.processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		err = json.Unmarshal(out, said)
	}
	if err != nil {
		return took, fmt.Errorf("dahl %s: %w: %s", strings.Join(args, " "), err, errors.Bytes())
	}
	return took, nil
}
