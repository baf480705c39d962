package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/plan/best"
	"dahl/plan/exact"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/rundir/durable"
	"dahl/schedule"
	"dahl/train"
)

// cutsOptions say which networks are cut for which machines.
type cutsOptions struct {
	networks, machines []string
	devices            string
	batch, nodes       int
	out                string
}

func newCuts() *cobra.Command {
	var o cutsOptions
	cmd := &cobra.Command{
		Use:   "cuts",
		Short: "steps of networks cut along one dimension, beside the best mixture of cuts",
		Long: `cuts plans a steady step of each network on each machine several times, as dahl plan
--objective time does: with whole layers, with all layers cut along one dimension into
equal parts for as many devices as is best, and with any cut of any layer. Each plan is
looked for with the same number of nodes, but the last with those of all others together,
on any of the devices of --devices. Time, joules and bytes are a run of 100 steps less one
of 50, over 50, and memory is the most that one memory holds at a time.`,
		Example: "  dahl-bench cuts --networks mlp,cifar-cnn --platforms server,nvlink --batch 512 --out cuts.md",
	}
	measurement(cmd, o.run)
	f := cmd.Flags()
	f.StringSliceVar(&o.networks, "networks", []string{"dahl-cnn", "digits-cnn", "mlp", "lenet5", "cifar-cnn"}, "networks")
	f.StringSliceVar(&o.machines, "platforms", []string{"server", "nvlink"}, "machines")
	f.StringVar(&o.devices, "devices", "gpu", "devices to choose from, as dahl plan takes them")
	f.IntVar(&o.batch, "batch", 512, "images per step")
	f.IntVar(&o.nodes, "nodes", 100_000, "how far to look for each plan along one dimension")
	f.StringVar(&o.out, "out", "", "also write the tables as a Markdown `file`")
	return cmd
}

func (o *cutsOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	err := cmp.Or(cli.CheckModels(o.networks...), cli.CheckNumbers("batch", o.batch), cli.CheckNumbers("nodes", o.nodes), cli.CheckWritable(o.out))
	if err != nil {
		return err
	}
	bar := cli.NewProgressBar(stderr, "cuts")
	defer bar.Done()
	table := fmt.Sprintf("dahl %s, commit %s; %d nodes for a plan, batch %d.\n", cli.Version(), cli.ThisBuild().Commit, o.nodes, o.batch)
	add := func(lines string) error {
		fmt.Fprint(stdout, lines)
		if table += lines; o.out == "" {
			return nil
		}
		return durable.Write(o.out, func(w io.Writer) error {
			_, err := io.WriteString(w, table)
			return err
		})
	}
	for i, machine := range o.machines {
		p, err := planMachine(machine)
		if err == nil {
			err = add(fmt.Sprintf("\n%s:\n\n%s", machine, cutHead))
		}
		for j, network := range o.networks {
			if err != nil {
				return err
			}
			bar.Set(i*len(o.networks)+j, len(o.machines)*len(o.networks), network+" on "+machine)
			rows, failed := o.rows(ctx, network, p)
			if failed != nil {
				return fmt.Errorf("%s on %s: %w", network, machine, failed)
			}
			err = add(strings.Join(cli.Texts(rows, func(r *cutRow) string { return r.format(rows) + "\n" }), ""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cutRow is the best plan of a network that was found with some cuts.
type cutRow struct {
	network, cut string
	planRun
}

// The cuts of a table beside those along one dimension.
const (
	wholeCut = "whole layers"
	mixture  = "best mixture"
)

// rows are those of a network on a machine.
func (o *cutsOptions) rows(ctx context.Context, network string, p *platform.Platform) ([]*cutRow, error) {
	w, n, err := planWorkload(network, p, o.batch)
	if err != nil {
		return nil, err
	}
	tiles, err := w.Tiles()
	if err != nil {
		return nil, err
	}
	t, err := train.Tilings(w.Model, p, o.batch, w.Options.Type)
	if err != nil {
		return nil, err
	}
	all, err := w.Space(n, p, o.devices, tiles...)
	if err != nil {
		return nil, err
	}
	whole := t.OfBatch(1)
	rows, err := o.row(ctx, nil, o.nodes, network, wholeCut, uniform(all, map[tiling.Tiling]dag.Lowering{tiling.Of(tiling.Base{Kind: tiling.Whole}): whole}))
	for _, along := range []dag.Dimension{dag.AlongSamples, dag.AlongOutputs, dag.AlongInputs, dag.AlongRows} {
		lowerings := map[tiling.Tiling]dag.Lowering{}
		for parts := 2; parts <= t.MostParts; parts *= 2 {
			if l := t.Uniform(parts, along); !maps.Equal(l.Layers, whole.Layers) {
				lowerings[tiling.InParts(parts, along)] = l
			}
		}
		if len(lowerings) > 0 && err == nil {
			rows, err = o.row(ctx, rows, o.nodes, network, along.String(), uniform(all, lowerings))
		}
	}
	if err != nil {
		return nil, err
	}
	return o.row(ctx, rows, len(rows)*o.nodes, network, mixture, &all.Space)
}

// row adds the best plan that is found in a space with so many nodes.
func (o *cutsOptions) row(ctx context.Context, rows []*cutRow, nodes int, network, cut string, s *space.Space) ([]*cutRow, error) {
	of := best.Options{Options: exact.Options{Objective: exact.Time, Nodes: nodes}, Steady: true, Unproven: true}
	found, err := best.Find(ctx, s, of)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cut, err)
	}
	priced, err := s.Price(found.Choice)
	if err != nil {
		return nil, err
	}
	r := &cutRow{network: network, cut: cut, planRun: planRun{choice: found.Choice}}
	return append(rows, r), r.simulate(ctx, priced, schedule.Choice{Plans: []*schedule.Plan{found.Plan}}, steadyRun)
}

// uniform is a space with some lowerings, and with the sets of devices of another one.
func uniform(of *train.Space, lowerings map[tiling.Tiling]dag.Lowering) *space.Space {
	tiles := slices.SortedFunc(maps.Keys(lowerings), func(a, b tiling.Tiling) int { return cmp.Compare(a.Number, b.Number) })
	return &space.Space{Devices: of.Devices, Tiles: tiles, Price: func(c space.Choice) (*schedule.Priced, error) {
		w, err := of.At(space.Choice{Devices: c.Devices, Tiles: tiling.Of(tiling.Base{Kind: tiling.Whole})})
		if err != nil {
			return nil, err
		}
		return w.PriceAs(lowerings[c.Tiles])
	}}
}

const cutHead = "| network | cut | step, ms | joules, mJ | moved, MB | peak memory, MB | devices and tiles |\n| --- | --- | ---: | ---: | ---: | ---: | --- |\n"

// format is the row as a line of the table; the shortest step of the network stands in bold.
func (r *cutRow) format(rows []*cutRow) string {
	step := fmt.Sprintf("%.5g", 1e3*r.span.Seconds())
	if !slices.ContainsFunc(rows, func(other *cutRow) bool { return other.span < r.span }) {
		step = "**" + step + "**"
	}
	return fmt.Sprintf("| %s | %s | %s | %.4g | %.4g | %.4g | %s |", r.network, r.cut, step, 1e3*r.joules, r.movedBytes/1e6, float64(r.peakBytes)/1e6, r.choice)
}
