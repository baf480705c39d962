package graphs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/dag"
	"dahl/exchange"
	"dahl/exchange/recording"
	"dahl/naming"
	"dahl/platform"
	"dahl/rundir/durable"
)

// importFlags are the flags of import.
type importFlags struct {
	exchange.Options
	format, out, extents string
}

// NewImport is the command import.
func NewImport([]string) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:     "import FILE… [--out FILE]",
		Short:   "read a task graph or a machine in the format of others",
		Long:    importText + formatLines() + importTextBehind,
		Example: importExamples,
		Args:    cli.WantArgs(1, maxFiles, "files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			return importGraph(cmd.OutOrStdout(), args, &f)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// The help of import, around the list of formats.
const (
	importText = `import reads a task graph or a machine in a format of others. It says what the file is,
what became of it, and counts what it leaves out. With --out it writes a graph file for
--graph of simulate, plan and graph, or a platform file for --platform. A file that
describes both becomes a graph file, and a platform file beside it that ends in .toml.
These are the formats, and what becomes what:`
	importTextBehind = `

A time of communication becomes the bytes that a link of 1 GB/s carries in it: a
platform with such links and no latencies charges what the file says.

A profile of PipeDream's becomes a step of a training: a forward and a backward pass for
each layer, and an update of its weights, which takes no time. The next step waits for
these, as in a training of one device. With --stash a forward pass takes the weights as
they are and keeps a copy for its backward pass, as PipeDream does, so that steps may
overlap as a pipeline. With --minibatches a step has several mini-batches, which replicas
of a layer may share; they exchange gradients directly, part by part, and update the
weights once.

A recording of PyTorch's profiler becomes all its steps as one graph, and the machine that it
ran on. On that machine it takes as long as recorded. On another --platform the times follow the
rooflines of both machines, and a line counts what is kept as recorded. --step takes one step, in
the memory that three steps need. Give one file for each rank, or --ranks and the file of one:
exchanges between ranks are then copies between GPUs. The same holds for Chakra's traces, whose
files name.0.et, name.1.et and so on are the ranks. An execution trace of the same run beside each recording gives it the shapes
that it lacks; alone it becomes a graph without host time.

A profile of Perseus' becomes a machine with a GPU for each stage, whose clocks are the
frequencies, and a step of a pipeline with a forward and a backward pass for each stage
and mini-batch, in the order 1F1B. "dahl plan --objective energy --deadline TIME" chooses
the clock of each pass. --wait-power says what a GPU draws while it waits for another.`
	importExamples = `  dahl import rand0000.stg
  dahl import rand0000.stg --out graph.json
  dahl import daggen.dot --out graph.json
  dahl import vgg16.txt --stash --out vgg16.json
  dahl import recording.json.gz --out recording.json
  dahl import rank0.json.gz --step 16 --alone --ranks 2 --out two.json
  dahl import gpt3+a100.csv --minibatches 12 --wait-power 70W --out gpt3.json
  dahl simulate --platform laptop --graph graph.json`
)

// formatLines lists the formats for the help.
func formatLines() string {
	var lines strings.Builder
	for _, of := range exchange.Formats() {
		fmt.Fprintf(&lines, "\n\n  %-10s %s (%s)\n             %s\n             %s", of.Name, of.Doc, strings.Join(of.Extensions, ", "), of.Source, of.Takes)
		if len(of.Flags) > 0 {
			fmt.Fprintf(&lines, "\n             with --%s", strings.Join(of.Flags, ", --"))
		}
	}
	return lines.String()
}

// check checks the values of the flags.
func (f *importFlags) check(fs *pflag.FlagSet) error {
	if fs.Changed("unit") && f.Unit <= 0 {
		return cli.InputErrorf("--unit %v: want a time above 0, such as 1ms", f.Unit)
	}
	if f.Ranks < 0 || f.Ranks > maxRanks {
		return cli.InputErrorf("--ranks %d: want a number from 0 to %d", f.Ranks, maxRanks)
	}
	if f.extents != "" {
		var err error
		if f.Extents, err = recording.ParseExtents(f.extents); err != nil {
			return cli.InputErrorf("--extents: %w", err)
		}
	}
	if f.Minibatches < 1 {
		return cli.InputErrorf("--minibatches %d: want at least 1", f.Minibatches)
	}
	return nil
}

// add adds the flags to a set.
func (f *importFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.format, "format", "", "`format` of the file: "+naming.OneOf(FormatNames())+" (default: recognised)")
	fs.StringVar(&f.out, "out", "", "the `file` to write: .json for a graph, .toml for a machine (default: none)")
	flags.AddTimeFlag(fs, &f.Unit, "unit", fmt.Sprintf("`time` that one unit stands for in a file without units (default %v)", exchange.DefaultUnit))
	fs.IntVar(&f.Minibatches, "minibatches", 1, "`number` of mini-batches in a step of a training")
	fs.IntVar(&f.Ranks, "ranks", 0, "`number` of ranks of a training, of which the only recording stands for all (default: one for each recording)")
	fs.BoolVar(&f.Alone, "alone", false, "leave out work of older steps that delays the step of --step")
	fs.StringVar(&f.extents, "extents", "", "`pairs` of extents of shapes in a recording and what they shall be, such as 32=64 for other samples")
	fs.Func("wait-power", "`watts` of a GPU that waits, such as \"70 W\", for a profile of clocks (default 0 W)", func(text string) (err error) {
		f.WaitWatts, err = platform.ParseWatts(text)
		return err
	})
	fs.StringVar(&f.Step, "step", "", "`name` of the step of a recording that becomes the graph (default: all as one)")
	fs.BoolVar(&f.Stash, "stash", false, "let a step of a training take the weights as they are, and keep a copy, instead of waiting for the step before")
}

const (
	maxFiles = 4096 // of the recordings of one training
	maxRanks = 4096 // of one training
)

// FormatNames are the formats of others that are read.
func FormatNames() []string {
	return cli.Texts(exchange.Formats(), func(of exchange.Format) string { return of.Name })
}

// importGraph writes the graph file and says what is in it.
func importGraph(stdout io.Writer, paths []string, f *importFlags) error {
	if f.format != "" {
		if err := cli.CheckName("format", f.format, FormatNames()); err != nil {
			return err
		}
	}
	if e := strings.ToLower(filepath.Ext(f.out)); f.out != "" && e != ".json" && e != ".toml" {
		return cli.InputErrorf("--out %q: end the name in .json for a graph or .toml for a machine", f.out)
	}
	for _, path := range paths {
		if err := cli.CheckRegular(path); err != nil {
			return err
		}
	}
	if err := checkOut(f.out); err != nil {
		return err
	}
	in, err := readForeign(paths, f)
	if err != nil {
		return cli.AsInput(err)
	}
	if err := writeImported(in, f.out); err != nil {
		return err
	}
	sayImported(stdout, in, strings.Join(paths, " "), f.out)
	return nil
}

// checkOut reports whether a file may be written; an empty name may.
func checkOut(out string) error {
	if out == "" {
		return nil
	}
	return cli.CheckWritable(out)
}

// writeImported writes what a file became. An empty name writes nothing.
func writeImported(in *exchange.Imported, out string) error {
	if out == "" {
		return nil
	}
	graph, want := in.Graph != nil, ".toml"
	if graph {
		want = ".json"
	}
	if !strings.EqualFold(filepath.Ext(out), want) {
		return cli.InputErrorf("--out %q: the file describes a %s; end the name in %s", out, map[bool]string{true: "graph", false: "machine"}[graph], want)
	}
	if in.Recorded {
		in.Graph.RecordedOn = filepath.Base(besideGraph(out))
	}
	if graph && in.Platform != nil {
		if err := checkBeside(out); err != nil {
			return err
		}
	}
	if graph { // before the machine, which is small: a full disk leaves both as they were
		if err := durable.Write(out, in.Graph.WriteJSON); err != nil {
			return err
		}
	}
	if in.Platform == nil {
		return nil
	}
	return durable.Write(besideGraph(out), in.Platform.WriteTOML)
}

// checkBeside refuses a graph file if its machine could not be written, or would replace a file of another origin. An import before this
// one has left a graph and a machine.
func checkBeside(out string) error {
	beside := besideGraph(out)
	if err := cli.CheckWritable(beside); err != nil {
		return err
	}
	if _, err := os.Lstat(beside); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := os.Stat(out)
	if err == nil {
		_, err = platform.Load(beside)
	}
	if err != nil {
		return cli.InputErrorf("--out %q: the machine goes into %s, and the file there is not one that an import wrote beside a graph; name another graph file", out, beside)
	}
	return nil
}

// besideGraph is the name of the platform file that goes with a graph file, or of the platform file itself.
func besideGraph(out string) string {
	if strings.EqualFold(filepath.Ext(out), ".toml") {
		return out
	}
	return strings.TrimSuffix(out, filepath.Ext(out)) + ".toml"
}

// sayImported prints the result of an import, what was left out, and how to go on.
func sayImported(stdout io.Writer, in *exchange.Imported, path, out string) {
	var parts []string
	next, extension := "dahl simulate", ".toml"
	if g := in.Graph; g != nil {
		edges, moved := 0, int64(0)
		for t := range g.Tasks {
			edges += len(g.Preds(dag.TaskID(t)))
		}
		for i := range g.Buffers {
			if g.Buffers[i].Role == dag.Activation {
				moved += g.Buffers[i].Bytes()
			}
		}
		parts = append(parts, fmt.Sprintf("%s tasks, %s edges, %s along them", naming.Thousands(g.NumTasks()), naming.Thousands(edges), cli.ShortBytes(moved)))
		extension = ".json"
	}
	if p := in.Platform; p != nil {
		parts = append(parts, fmt.Sprintf("a machine of %s, %s and %s", naming.Count(len(p.Devices), "device"), naming.Count(len(p.Links), "link"), naming.Count(len(p.Models), "model")))
		next += " --platform " + besideGraph(out)
	} else {
		next += " --platform server"
	}
	if in.Graph != nil {
		next += " --graph " + out
	} else {
		next += " --model lenet5"
	}
	fmt.Fprintf(stdout, "%s: %s; %s with %s\n", cmp.Or(out, path), strings.Join(parts, "; "), in.Format, in.Took)
	for _, note := range in.Notes {
		fmt.Fprintln(stdout, note)
	}
	for i, l := range in.Left {
		fmt.Fprintf(stdout, "%s%s %s", map[bool]string{true: "left out: ", false: ", "}[i == 0], naming.Thousands(l.Count), l.What)
	}
	if len(in.Left) > 0 {
		fmt.Fprintln(stdout)
	}
	if out == "" {
		next = "dahl import " + path + " --out NAME" + extension
	}
	fmt.Fprintf(stdout, "next: %s\n", next)
}

// readForeign reads files in the format of the flag. Without the flag it recognises the format.
func readForeign(paths []string, f *importFlags) (*exchange.Imported, error) {
	files := make([]exchange.File, len(paths))
	for i, path := range paths {
		in, err := durable.Open(path)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		files[i] = exchange.File{Name: path, In: in}
	}
	f.Room = room()
	return exchange.ReadFiles(files, f.format, f.Options)
}
