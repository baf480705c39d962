package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/exchange"
	"dahl/rundir"
	"dahl/train"
)

const instancesHelp = `With --instances it plans every graph of a directory, one after the other, and prints a
line for each, and how many were solved and proved. The directory holds graph files (JSON,
text, or what dahl import reads, with 1 ms as the unit of time where a file has none) with
one platform.toml beside them, or directories of one such file and its platform.toml.
--platform takes the place of both, and --budget is for each. Each plan goes into a run
directory of its own below --out (default: dahl-plans). A graph that cannot be planned does
not end the others: what is wrong with it goes to standard error, and the exit code is 1, or
2 where none could be planned for what was given.`

// addInstancesFlag adds the flag that plans a directory.
func addInstancesFlag(cmd *cobra.Command, o *options) {
	cmd.Flags().StringVar(&o.instances, "instances", "", "plan every graph of a `directory` for an --objective")
	for _, other := range []string{"model", "graph", "lowering"} {
		exclude(cmd, "instances", other)
	}
	before(cmd, func() error {
		if o.instances != "" && o.Objective == "" {
			return fmt.Errorf("--instances wants to know what to make small; name an --objective")
		}
		return nil
	})
}

// readGraph reads a task graph in a form of dahl, or in one of others that the file shows.
func readGraph(r io.Reader, name string) (*dag.Graph, error) {
	if strings.EqualFold(filepath.Ext(name), ".txt") {
		return dag.ParseText(r, name)
	}
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if of, err := exchange.FormatOf(name, src); err == nil {
		g, _, err := of.Read(src, name, 0)
		return g, err
	}
	return dag.ReadJSON(bytes.NewReader(src), name)
}

// isGraphFile reports whether a file is a graph by its name.
func isGraphFile(name string) bool {
	extensions := []string{".json", ".txt"}
	for _, of := range exchange.Formats() {
		extensions = append(extensions, of.Extensions...)
	}
	return slices.Contains(extensions, strings.ToLower(filepath.Ext(name)))
}

// instance is a graph of a directory, and the machine that it is for.
type instance struct {
	name, graph, platform string
	err                   error // there is no such graph or machine
}

// findInstances lists the instances of a directory by name, without the directory of their results.
func findInstances(dir, machine, out string) ([]instance, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cli.InputErrorf("--instances: %w", err)
	}
	var list []instance
	for _, e := range entries {
		in := instance{name: e.Name(), graph: filepath.Join(dir, e.Name())}
		info, err := os.Stat(in.graph)
		switch {
		case strings.HasPrefix(in.name, ".") || sameFile(in.graph, out):
			continue
		case err == nil && info.IsDir():
			in.graph, in.err = graphIn(in.graph)
		case !isGraphFile(in.name):
			continue
		}
		if in.platform = machine; machine == "" {
			in.platform = filepath.Join(filepath.Dir(in.graph), rundir.PlatformFile)
			if _, err := os.Stat(in.platform); err != nil && in.err == nil {
				in.err = cli.InputErrorf("%s: there is no %s beside it; add it, or name the machine with --platform", in.graph, rundir.PlatformFile)
			}
		}
		list = append(list, in)
	}
	if list == nil {
		return nil, cli.InputErrorf("--instances %s: it holds no graph file and no directory of one", dir)
	}
	return list, nil
}

// graphIn is the graph file of a directory: the only one, or graph.json.
func graphIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dir, cli.AsInput(err)
	}
	var found []string
	for _, e := range entries {
		if e.Name() == rundir.GraphFile {
			return filepath.Join(dir, e.Name()), nil
		}
		if isGraphFile(e.Name()) {
			found = append(found, e.Name())
		}
	}
	if len(found) != 1 {
		return filepath.Join(dir, rundir.GraphFile), cli.InputErrorf("%s holds %d graph files and none of the name %s; keep one", dir, len(found), rundir.GraphFile)
	}
	return filepath.Join(dir, found[0]), nil
}

// instanceResult is what --json says of an instance.
type instanceResult struct {
	Name      string  `json:"name"`
	Graph     string  `json:"graph"`    // file
	Platform  string  `json:"platform"` // file
	Error     string  `json:"error,omitempty"`
	Tasks     int     `json:"tasks"`
	Objective string  `json:"objective"`
	Unit      string  `json:"unit"` // of value and bound
	Value     number  `json:"value"`
	Bound     number  `json:"lower_bound"`
	BoundOf   string  `json:"lower_bound_of,omitempty"` // the plans of which none is below
	Gap       number  `json:"gap"`
	Proven    bool    `json:"proven"`
	Nodes     int     `json:"nodes"`
	WallS     float64 `json:"wall_s"`
	Dir       string  `json:"dir"`

	err error
}

// planInstances plans the graphs of a directory. When ctx ends it prints those that are done.
func planInstances(ctx context.Context, stdout, stderr io.Writer, o *options, out *output) error {
	if o.Platform != "" {
		if _, err := cli.LoadPlatform(o.Platform); err != nil {
			return err // once, and not for each
		}
	}
	if run, ok := rundir.Within(filepath.Join(out.dir, "any")); ok {
		return cli.InputErrorf("--out %s: %s holds a run; name another directory", out.dir, run)
	}
	list, err := findInstances(o.instances, o.Platform, out.dir)
	if err != nil {
		return err
	}
	width := len("instance")
	for _, in := range list {
		width = max(width, len(in.name))
	}
	unit := o.objectiveUnit()
	if !out.json {
		fmt.Fprintf(stdout, "%-*s %6s %12s %12s %9s %6s %10s %9s\n", width, "instance", "tasks", o.Objective+" "+unit, "bound "+unit, "gap", "proved", "nodes", "took")
	}
	defer cli.Saving(ctx, "the search ends, and the plans so far are written")()
	results := []instanceResult{}
	for _, in := range list {
		r := in.plan(ctx, o, filepath.Join(out.dir, in.name))
		if r.err != nil && ctx.Err() != nil {
			break
		}
		results = append(results, r)
		switch {
		case r.err != nil:
			fmt.Fprintf(stderr, "dahl: %s\n", r.Error)
		case !out.json:
			fmt.Fprintf(stdout, "%-*s %6d %12.6g %12.6g %9s %6s %10d %9s\n", width, in.name, r.Tasks, float64(r.Value), float64(r.Bound), gapText(float64(r.Gap)),
				map[bool]string{true: "yes", false: "no"}[r.Proven], r.Nodes, cli.ShowTime(r.WallS))
		}
	}
	if out.json {
		err = cli.PrintJSON(stdout, results)
	} else {
		printCounts(stdout, results, len(list))
	}
	return cmp.Or(err, endOfInstances(ctx, results, len(list)))
}

// plan plans an instance as plan --graph does.
func (in *instance) plan(ctx context.Context, o *options, dir string) instanceResult {
	r := instanceResult{Name: in.name, Graph: in.graph, Platform: in.platform, Objective: o.Objective, Unit: o.objectiveUnit(), Dir: dir, err: in.err}
	begun := time.Now()
	if r.err == nil {
		one := *o
		one.Graph, one.Platform, one.begun = in.graph, in.platform, begun
		one.args = append(argsWithout(o.args, "instances", "platform"), "--graph", in.graph, "--platform", in.platform)
		var done *simulation
		if done, r.err = simulateInto(ctx, "plan", &one, dir); r.err == nil {
			of := done.found
			r.Tasks, r.Value, r.Bound, r.Gap = done.w.Program.Graphs[0].NumTasks(), number(of.Value), number(of.Bound), number(of.Gap())
			r.BoundOf, r.Proven, r.Nodes = coveredText(of.Covered), of.Proven, of.Nodes
		}
	}
	r.WallS = time.Since(begun).Seconds()
	if r.err != nil {
		if r.Error = cli.OneLine(r.err); !strings.Contains(r.Error, in.graph) && !strings.Contains(r.Error, in.platform) {
			r.Error = in.graph + ": " + r.Error
		}
	}
	return r
}

func gapText(gap float64) string {
	if !isFinite(gap) {
		return "-"
	}
	return fmt.Sprintf("%.3g %%", 100*gap)
}

// printCounts prints how many were solved and proved, and the mean of the gaps that are known.
func printCounts(out io.Writer, results []instanceResult, of int) {
	solved, proved, bounded, sum := 0, 0, 0, 0.0
	for i := range results {
		r := &results[i]
		if r.err != nil {
			continue
		}
		solved++
		if r.Proven {
			proved++
		}
		if gap := float64(r.Gap); isFinite(gap) {
			bounded, sum = bounded+1, sum+gap
		}
	}
	fmt.Fprintf(out, "%d of %d solved, %d proved", solved, of, proved)
	if bounded > 0 {
		fmt.Fprintf(out, ", mean gap %s", gapText(sum/float64(bounded)))
	}
	if bounded < solved {
		fmt.Fprintf(out, " of %d with a bound", bounded)
	}
	fmt.Fprintln(out)
}

// endOfInstances is how planning a directory ends: nil where all were planned.
func endOfInstances(ctx context.Context, results []instanceResult, of int) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%d of %d instances were tried: %w", len(results), of, ctx.Err())
	}
	failed, input := 0, 0
	for i := range results {
		if results[i].err != nil {
			failed++
		}
		if errors.As(results[i].err, new(train.InputError)) {
			input++
		}
	}
	switch {
	case failed == 0:
		return nil
	case input == of:
		return cli.InputErrorf("none of the %d instances can be planned", of)
	}
	return fmt.Errorf("%d of %d instances were not planned", failed, of)
}
