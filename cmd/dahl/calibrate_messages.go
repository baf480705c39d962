package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/words"
	"dahl/execute"
	"dahl/execute/calibrate"
	"dahl/platform"
	"dahl/rundir/durable"
)

// measureMessages is calibrate in one of several ranks: it measures the messages between the nodes of a cluster, and rank 0 writes the
// platform of the cluster with them.
func (f *calibrateFlags) measureMessages(cmd *cobra.Command, n *execute.Ranks, file string) (err error) {
	defer func() { err = n.Close(err) }()
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "platform" && flag.Name != "out" {
			err = cli.InputErrorf("--%s: several ranks measure the messages between them, and nothing else; leave it out", flag.Name)
		}
	})
	if err == nil && file == "" {
		err = cli.InputErrorf("several ranks measure the messages of a cluster; name it, such as --platform cluster.toml")
	}
	if err != nil {
		return err
	}
	p, err := cli.LoadPlatform(file)
	if err != nil {
		return err
	}
	if err := cmp.Or(execute.CheckRanks(p, n.Size), cli.CheckWritable(f.out)); err != nil {
		return cli.AsInput(err)
	}
	program, err := programFact()
	if err := n.Agree([]execute.Fact{program, {What: "platform", Hash: p.Hash()}}, err); err != nil {
		return cli.AsInput(err)
	}
	q, ways, err := calibrate.Messages(cmd.Context(), p, n)
	if err != nil || n.Rank > 0 {
		return err
	}
	if err := durable.Write(f.out, q.WriteTOML); err != nil {
		return err
	}
	printWays(cmd.OutOrStdout(), f.out, q, ways)
	return nil
}

// printWays prints what was measured of messages, and how far from it the links of the platform are.
func printWays(out io.Writer, file string, p *platform.Platform, ways []platform.MeasuredWay) {
	fmt.Fprintf(out, "%s: %s, the links on %d measured ways\n", file, p.Name, len(ways))
	for i := range ways {
		w := &ways[i]
		fmt.Fprintf(out, "  %s to %s  %s\n", p.Memories[w.From].Name, p.Memories[w.To].Name, words.FitText(&w.Fit))
	}
}
