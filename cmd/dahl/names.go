package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/nn"
)

func optimizerNames() []string {
	return cli.Texts(nn.Optimizers(), func(o nn.OptimizerInfo) string { return o.Name })
}

// setPolicy takes the name of a scheduler in any case.
func (o *options) setPolicy() error {
	names := cli.PolicyNames()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, o.Policy) })
	if i < 0 {
		return fmt.Errorf("--policy %q: want one of %s; a plan is replayed with --plan%s", o.Policy, strings.Join(names, ", "), cli.DidYouMean(o.Policy, names))
	}
	o.Policy = names[i]
	return nil
}

// wantArgs refuses a wrong number of arguments and says which there should be.
func wantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s wants %s; there are %d arguments", cmd.Name(), what, len(args))
		}
		return nil
	}
}
