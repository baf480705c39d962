package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/dag"
	"dahl/exchange"
	"dahl/naming"
	"dahl/rundir/durable"
)

// importFlags are the flags of import.
type importFlags struct {
	exchange.Options
	format, out string
}

func newImport([]string) *cobra.Command {
	var f importFlags
	var lines strings.Builder
	for _, of := range exchange.Formats() {
		fmt.Fprintf(&lines, "\n\n  %-10s %s (%s)\n             %s\n             %s", of.Name, of.Doc, strings.Join(of.Extensions, ", "), of.Source, of.Takes)
	}
	cmd := &cobra.Command{
		Use:   "import FILE --out FILE",
		Short: "make a graph file of a task graph in another format",
		Long: `import reads a task graph in a format of others and writes it as a graph file, for
--graph of simulate, plan and graph. These are the formats, and what becomes what:` + lines.String() + `

A time of communication becomes the bytes that a link of 1 GB/s carries in it: a
platform with such links and no latencies charges what the file says.

A profile of PipeDream's becomes a step of a training: a forward and a backward pass for
each layer, and an update of its weights, which takes no time. The next step waits for
these, as in a training of one device. With --stash a forward pass takes the weights as
they are and keeps a copy for its backward pass, as PipeDream does, so that steps may
overlap as a pipeline. With --minibatches a step has several mini-batches, which replicas
of a layer may share; they exchange gradients directly, part by part, and update the
weights once.`,
		Example: `  dahl import rand0000.stg --out graph.json
  dahl import daggen.dot --out graph.json
  dahl import vgg16.txt --stash --out vgg16.json
  dahl simulate --platform laptop --graph graph.json`,
		Args: cli.WantArgs(1, 1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.out == "" {
				return cli.InputErrorf("name the graph file to write with --out, such as --out graph.json")
			}
			if cmd.Flags().Changed("unit") && f.Unit <= 0 {
				return cli.InputErrorf("--unit %v: want a time above 0, such as 1ms", f.Unit)
			}
			if f.Minibatches < 1 {
				return cli.InputErrorf("--minibatches %d: want at least 1", f.Minibatches)
			}
			return importGraph(cmd.OutOrStdout(), args[0], &f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.format, "format", "", "`format` of the file: "+naming.OneOf(importFormats())+" (default: recognised)")
	fs.StringVar(&f.out, "out", "", "the graph `file` to write, .json")
	flags.AddTimeFlag(fs, &f.Unit, "unit", fmt.Sprintf("`time` that one unit stands for in a file without units (default %v)", exchange.DefaultUnit))
	fs.IntVar(&f.Minibatches, "minibatches", 1, "`number` of mini-batches in a step of a training")
	fs.BoolVar(&f.Stash, "stash", false, "let a step of a training take the weights as they are, and keep a copy, instead of waiting for the step before")
	return cmd
}

func importFormats() []string {
	return cli.Texts(exchange.Formats(), func(of exchange.Format) string { return of.Name })
}

// importGraph writes the graph file and says what is in it.
func importGraph(stdout io.Writer, path string, f *importFlags) error {
	if f.format != "" {
		if err := cli.CheckName("format", f.format, importFormats()); err != nil {
			return err
		}
	}
	if !strings.EqualFold(filepath.Ext(f.out), ".json") {
		return cli.InputErrorf("--out %q: end the name in .json", f.out)
	}
	if err := cmp.Or(cli.CheckGraph(path), cli.CheckWritable(f.out)); err != nil {
		return err
	}
	g, took, err := readForeign(path, f)
	if err != nil {
		return cli.AsInput(err)
	}
	if err := durable.Write(f.out, g.WriteJSON); err != nil {
		return err
	}
	edges, moved := 0, int64(0)
	for t := range g.Tasks {
		edges += len(g.Preds(dag.TaskID(t)))
	}
	for i := range g.Buffers {
		if g.Buffers[i].Role == dag.Activation {
			moved += g.Buffers[i].Bytes()
		}
	}
	fmt.Fprintf(stdout, "%s: %s tasks, %s edges, %s along them; %s\n", f.out, naming.Thousands(g.NumTasks()), naming.Thousands(edges), cli.ShortBytes(moved), took)
	fmt.Fprintf(stdout, "next: dahl simulate --platform server --graph %s\n", f.out)
	return nil
}

// readForeign reads a file in the format of the flag. Without the flag it recognises the format.
func readForeign(path string, f *importFlags) (*dag.Graph, string, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	var of exchange.Format
	if f.format != "" {
		of, err = exchange.FormatByName(f.format)
	} else {
		of, err = exchange.FormatOf(path, src)
	}
	if err != nil {
		return nil, "", err
	}
	g, took, err := of.Read(src, path, f.Options)
	if err == nil {
		took = of.Name + " with " + took
	}
	return g, took, err
}

// readGraph reads a task graph in a form of dahl, or in one of others that the file shows.
func readGraph(r io.Reader, name string) (*dag.Graph, error) {
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if of, err := exchange.FormatOf(name, src); err == nil {
		g, _, err := of.Read(src, name, exchange.Options{})
		return g, err
	}
	if strings.EqualFold(filepath.Ext(name), ".txt") {
		return dag.ParseText(bytes.NewReader(src), name)
	}
	return dag.ReadJSON(bytes.NewReader(src), name)
}
