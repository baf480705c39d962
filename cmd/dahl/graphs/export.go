package graphs

import (
	"io"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/inspect"
	"dahl/dag"
	"dahl/exchange"
	"dahl/naming"
	"dahl/nn/files"
	"dahl/train"
)

// graphExports are the files that a graph is written to, by the end of their names.
var graphExports = []struct {
	ending string
	write  func(*train.Workload, io.Writer) error
}{
	{".simgrid.dot", timed(exchange.WriteSimGridDOT)}, {".dot", ofGraph((*dag.Graph).WriteDOT)},
	{".wf.json", timed(exchange.WriteWfCommons)}, {".json", ofGraph((*dag.Graph).WriteJSON)},
	{".txt", ofGraph((*dag.Graph).WriteText)}, {".rec", timed(exchange.WriteStarpuTasks)},
	{".xml", func(w *train.Workload, out io.Writer) error {
		if len(w.Platform.Devices) == 0 {
			return cli.InputErrorf("--export of a machine: name it with --platform")
		}
		return exchange.WriteSimGrid(out, w.Platform)
	}},
	{".toml", func(w *train.Workload, out io.Writer) error {
		if w.Lowering == nil {
			return cli.InputErrorf("--export: a graph from a file has no lowering")
		}
		return files.WriteLowering(out, *w.Lowering)
	}},
}

func ofGraph(write func(*dag.Graph, io.Writer) error) func(*train.Workload, io.Writer) error {
	return func(w *train.Workload, out io.Writer) error { return write(w.Program.Graphs[0], out) }
}

// timed writes a graph in a format with times, on the machine of the workload or, without one, by the graph itself.
func timed(write func(io.Writer, *dag.Graph, exchange.Time) error) func(*train.Workload, io.Writer) error {
	return func(w *train.Workload, out io.Writer) error {
		g := w.Program.Graphs[0]
		if len(w.Platform.Devices) == 0 {
			return write(out, g, exchange.TimeOf(g))
		}
		times, err := inspect.Times(w)
		if err != nil {
			return err
		}
		return write(out, g, times)
	}
}

// ExportTo chooses how a workload's graph, machine or lowering is written, by the end of the file's name; nil for no file.
func ExportTo(path string) (func(*train.Workload, io.Writer) error, error) {
	if path == "" {
		return nil, nil
	}
	var endings []string
	for _, of := range graphExports {
		if strings.HasSuffix(strings.ToLower(path), of.ending) {
			return of.write, nil
		}
		endings = append(endings, of.ending)
	}
	return nil, cli.InputErrorf("--export %q: end the name in %s", path, naming.OneOf(endings))
}
