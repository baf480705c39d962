package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/dag"
)

func newBench(*app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure dahl itself",
		Long: `bench measures dahl: its speed beside others, what its tasks cost, and how near its
predictions come. Leave the machine alone meanwhile.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchAccuracy(), newBenchTasks(), newBenchSoak())
	cmd.AddCommand(newBenchPeers(), newBenchGranularity(), newBenchBatch())
	return cmd
}

// checkNumbers refuses the values of a flag of whole numbers that are below 1.
func checkNumbers(flag string, values ...int) error {
	if len(values) == 0 || slices.Min(values) < 1 {
		return inputErrorf("--%s %s: want at least 1", flag, strings.Trim(fmt.Sprint(values), "[]"))
	}
	return nil
}

// checkNotNegative refuses the value of a flag that is below 0.
func checkNotNegative(flag string, value int) error {
	if value < 0 {
		return inputErrorf("--%s %d: want at least 0", flag, value)
	}
	return nil
}

// checkModels refuses networks that there are not.
func checkModels(names ...string) error {
	if len(names) == 0 {
		return inputErrorf("name a network")
	}
	for _, name := range names {
		if _, err := loadModel(name); err != nil {
			return err
		}
	}
	return nil
}

// checkRealType refuses element types that no network has.
func checkRealType(name string) error {
	if t, err := dag.ParseDType(name); err != nil || t != dag.Float32 && t != dag.Float64 {
		return inputErrorf("--dtype %q: want float32 or float64", name)
	}
	return nil
}

// checkPolicies refuses names that no policy has.
func checkPolicies(names ...string) error {
	for _, name := range names {
		if !slices.Contains(policyNames(), name) {
			return inputErrorf("--policies %q: want %s", name, oneOf(policyNames()))
		}
	}
	return nil
}

// firstError is the first that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
