package main

import "github.com/spf13/cobra"

func newBench(*app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure dahl itself",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newBenchAccuracy(), newBenchTasks(), newBenchSoak())
	cmd.AddCommand(newBenchPeers(), newBenchGranularity(), newBenchBatch())
	return cmd
}
