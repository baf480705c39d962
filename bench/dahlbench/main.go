// Command dahl-bench compares the speed of dahl with other programs. What came out is kept in the folder above, with
// command, machine and commit.
package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/platform"
	"dahl/stats"
	"dahl/train"
)

func main() { cli.Main(newRoot) }

func newRoot([]string) *cobra.Command {
	root := &cobra.Command{
		Use:   "dahl-bench",
		Short: "measure dahl beside others",
		Long:  `dahl-bench measures the speed of dahl beside others. Leave the machine alone meanwhile.`,
	}
	root.AddCommand(newPeers(), newPlan())
	return root
}

// network loads a network and its training samples. Zero means no limit.
func network(name string, limit int) (*nn.Model, train.Data, error) {
	m, err := cli.LoadModel(name)
	if err != nil {
		return nil, train.Data{}, err
	}
	d, err := train.OpenDataAs(train.DefaultData(m), data.Options{Limit: limit, Positions: train.Window(m), MaskToken: m.Defaults.MaskToken})
	if err != nil {
		return nil, d, err
	}
	m, err = train.Fit(m, d.Train)
	return m, d, err
}

// machine is a platform file, or without one this machine, with the devices of a list or a number
// of cores. Empty and zero mean all of its processors.
func machine(file, devices string, workers int) (*platform.Platform, error) {
	p, err := cli.Machine(file, devices, false)
	if err == nil && devices != "" {
		p, err = p.Select(devices)
		err = cli.AsInput(err)
	}
	if err != nil || workers == 0 {
		return p, err
	}
	return cli.WithWorkers(p, workers)
}

// names are the entries of a table as texts.
func names[T any](table []T) (all []string) {
	for _, entry := range table {
		all = append(all, fmt.Sprint(entry))
	}
	return all
}

// chosen are the entries of a table that a flag names.
func chosen[T any](flag string, wanted []string, table []T) (entries []T, err error) {
	known := names(table)
	for _, name := range wanted {
		if err := cli.CheckName(flag, name, known); err != nil {
			return nil, err
		}
		entries = append(entries, table[slices.Index(known, name)])
	}
	return entries, nil
}

// spread is how far values lie apart, as a fraction of their median.
func spread[T time.Duration | float64](values []T) float64 {
	return cli.Ratio(float64(slices.Max(values)-slices.Min(values)), float64(stats.Median(values)))
}
