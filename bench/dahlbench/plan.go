package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/nn"
	"dahl/plan/best"
	"dahl/plan/exact"
	"dahl/platform"
	"dahl/schedule"
	"dahl/train"
)

// planOptions say which plans are laid beside what the policies do.
type planOptions struct {
	networks, machines, objectives []string
	batch, sets                    int
	budget                         time.Duration
	out                            string
}

// oneClock ends the name of a machine whose devices keep only the clock in force.
const oneClock = ":one-clock"

func newPlan() *cobra.Command {
	var o planOptions
	cmd := measurement(&cobra.Command{
		Use:   "plan",
		Short: "plans beside the bounds of their certificates and the best that any policy does",
		Long: `plan looks for the plan of a steady step of each network on each machine, as dahl plan
does, and checks its certificate. Beside it stands the least of every policy on every
set of devices that dahl plan chooses from, each with all tiles that --lowering best
tries there, the default and whole layers among them. Both are simulated by
this program: a run of 100 steps less one of 50, over 50.

A policy's run is first looked at over few steps, and over all of them where it then is
within a tenth of the least. --sets N takes N sets, spread over all; the table says
how many there are. The file of --out is written after each row.

A machine is a platform file or a name, and NAME` + oneClock + ` is the same without clocks
beside the one in force.`,
		Example: "  dahl-bench plan --networks lenet5 --platforms laptop,server --budget 30s --out plan.md",
	}, o.run)
	f := cmd.Flags()
	f.StringSliceVar(&o.networks, "networks", []string{"dahl-cnn", "mlp", "lenet5", "cifar-cnn"}, "networks")
	f.StringSliceVar(&o.machines, "platforms", []string{"laptop" + oneClock, "laptop", "manycore", "emulated", "server"}, "machines")
	f.StringSliceVar(&o.objectives, "objectives", []string{string(exact.Energy), string(exact.Time)}, "what is made small: "+naming.OneOf(exact.Objectives()))
	f.IntVar(&o.batch, "batch", 64, "images per step")
	f.DurationVar(&o.budget, "budget", 30*time.Second, "about how long to look for each plan")
	f.IntVar(&o.sets, "sets", 0, "sets of devices on which the policies run (0: all)")
	f.StringVar(&o.out, "out", "", "also write the table as a Markdown `file`")
	return cmd
}

func (o *planOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	err := cmp.Or(cli.CheckModels(o.networks...), cli.CheckNumbers("batch", o.batch), cli.CheckNotNegative("sets", o.sets))
	if err == nil && o.budget <= 0 {
		err = cli.InputErrorf("--budget %v: want a positive time", o.budget)
	}
	if err == nil {
		_, err = chosen("objectives", o.objectives, exact.Objectives())
	}
	var machines []*platform.Platform
	for _, name := range o.machines {
		if err == nil {
			var p *platform.Platform
			p, err = planMachine(name)
			machines = append(machines, p)
		}
	}
	if err = cmp.Or(err, cli.CheckWritable(o.out)); err != nil {
		return err
	}
	bar := cli.NewProgressBar(stderr, "plan")
	defer bar.Done()
	table := planTable{path: o.out, budget: o.budget}
	fmt.Fprint(stdout, planHead)
	for i, p := range machines {
		for j, network := range o.networks {
			bar.Set(i*len(o.networks)+j, len(machines)*len(o.networks), network+" on "+o.machines[i])
			rows, err := o.rows(ctx, network, o.machines[i], p)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", network, o.machines[i], err)
			}
			for _, row := range rows {
				fmt.Fprintln(stdout, row.format())
				if err := table.add(row); err != nil {
					return err
				}
			}
		}
	}
	fmt.Fprint(stdout, table.summary())
	return nil
}

// planMachine loads a machine, without clocks but one where its name says so.
func planMachine(name string) (*platform.Platform, error) {
	file, single := strings.CutSuffix(name, oneClock)
	p, err := cli.LoadPlatform(file)
	if err == nil && single {
		c := *p
		c.Devices = slices.Clone(p.Devices)
		for i := range c.Devices {
			if d := &c.Devices[i]; len(d.Clocks) > 0 {
				d.Clocks = d.Clocks[:1:1] // in force is the first in every file
			}
		}
		p = &c
	}
	if err != nil {
		return nil, err
	}
	return train.Within(p, "", "")
}

// planRow is one line of the table: values are of a steady step, in seconds, joules or their product.
type planRow struct {
	machine, network string
	objective        exact.Objective
	found            *best.Result
	value            float64       // of the plan, simulated anew
	took             time.Duration // of the search
	certificate      string        // what its check says
	least            planRun       // of all policies
	leastValue       float64
	sets, allSets    int
	runs             int
}

// rows are those of a network on a machine, by objective.
func (o *planOptions) rows(ctx context.Context, network, machine string, p *platform.Platform) ([]*planRow, error) {
	w, n, err := planWorkload(network, p, o.batch)
	if err != nil {
		return nil, err
	}
	tiles, err := w.Tiles()
	if err != nil {
		return nil, err
	}
	s, err := w.Space(n, p, "", tiles...)
	if err != nil {
		return nil, err
	}
	var rows []*planRow
	for _, objective := range o.objectives {
		r := &planRow{machine: machine, network: network, objective: exact.Objective(objective)}
		if err := r.plan(ctx, s, o.budget); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	sets := spreadOver(s.Devices, o.sets)
	runs, err := policyRuns(ctx, s, sets)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.least, err = leastOf(ctx, s, runs, r.objective); err != nil {
			return nil, err
		}
		r.leastValue = r.objective.Of(r.least.span, r.least.joules)
		r.sets, r.allSets, r.runs = len(sets), len(s.Devices), len(runs)
	}
	return rows, nil
}

// planWorkload is a network on a machine that is elsewhere, as dahl plan has it.
func planWorkload(network string, p *platform.Platform, batch int) (*train.Workload, train.Samples, error) {
	m, err := cli.LoadModel(network)
	if err != nil {
		return nil, train.Samples{}, err
	}
	d, err := nn.OpenData(train.DefaultData(m), nn.DataOptions{Split: nn.Train, Limit: batch})
	if err != nil {
		return nil, train.Samples{}, err
	}
	if m, err = train.Fit(m, d); err != nil {
		return nil, train.Samples{}, err
	}
	n := train.Samples{Train: batch, Divisor: d.Divisor}
	w := &train.Workload{Options: train.Options{Elsewhere: true, Batch: batch}, Model: m, Platform: p}
	return w, n, w.Lower(n)
}

// plan looks for the plan, simulates it anew and checks its certificate.
func (r *planRow) plan(ctx context.Context, s *train.Space, budget time.Duration) error {
	began := time.Now()
	found, err := best.Find(ctx, &s.Space, best.Options{Options: exact.Options{Objective: r.objective, Nodes: math.MaxInt}, Steady: true, Time: budget})
	if err != nil {
		return err
	}
	r.found, r.took, r.certificate = found, time.Since(began), "none"
	priced, err := s.Price(found.Choice)
	if err != nil {
		return err
	}
	again := planRun{choice: found.Choice}
	if err := again.simulate(ctx, priced, schedule.Choice{Plans: []*schedule.Plan{found.Plan}}, steadyRun); err != nil {
		return err
	}
	r.value = r.objective.Of(again.span, again.joules)
	if found.Certificate != nil {
		if r.certificate = "ok"; found.Certificate.Check(&s.Space) != nil {
			r.certificate = "refused"
		}
	}
	return nil
}

// spreadOver are n entries of a list at equal distances, the last among them; 0: all.
func spreadOver(list []string, n int) []string {
	if n == 0 || n >= len(list) {
		return list
	}
	var some []string
	for i := range n {
		some = append(some, list[(i+1)*len(list)/n-1])
	}
	return some
}
