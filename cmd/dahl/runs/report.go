package runs

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/energy"
	"dahl/naming"
	"dahl/plan"
	"dahl/plots"
	"dahl/plots/report"
	"dahl/rundir"
	"dahl/rundir/durable"
)

// NewReport makes the command dahl report: it writes runs as one HTML page, and prints its path.
func NewReport([]string) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report DIR…",
		Short: "write runs as one HTML page that opens offline",
		Long: `report reads run directories and writes one self-contained HTML file, which asks
for nothing from any network: network, machine, time, joules, the error of the
prediction and the distance to the bound; a timeline of every task, copy and gap that
pans and zooms, each step below its prediction where a run has both; power, energy,
clocks and memory on the same axis; energy as in energy.json, kernels, and where the
run came from. A click on a task shows what it waited for and which of that was the
cause, and leads from cause to cause. Several runs come with a table, and their fronts of time against
energy over each other; a run without a search of plans is a point there.
The page of one run lies in its directory, as its figures do.`,
		Example: "  dahl report dahl-demo\n  dahl report dahl-simulate dahl-execute --out both.html",
		Args:    cli.WantArgs(1, 100, "the directories of runs"),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return reportRuns(cmd.OutOrStdout(), dirs, out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`file` to write (default: report.html, of one run in its directory)")
	return cmd
}

// reportRuns writes the report and prints its path.
func reportRuns(stdout io.Writer, dirs []string, out string) error {
	inRun := out == "" && len(dirs) == 1
	switch {
	case inRun:
		out = filepath.Join(dirs[0], record.ReportFile)
	case out == "":
		out = record.ReportFile
	}
	if !inRun {
		if err := cli.CheckWritable(out); err != nil {
			return err
		}
	}
	var runs []report.Run
	var summaries []*record.Summary
	for _, dir := range dirs {
		r, s, err := reportedRun(dir)
		if err != nil {
			return err
		}
		runs, summaries = append(runs, *r), append(summaries, s)
	}
	if len(runs) > 1 {
		for i := range runs {
			runs[i].Front = pointAmong(&runs[i], summaries[i])
		}
	}
	title := "dahl: " + filepath.Clean(dirs[0])
	if len(dirs) > 1 {
		title = fmt.Sprintf("dahl: %d runs", len(dirs))
	}
	write := func(w io.Writer) error { return report.Write(w, title, runs) }
	var err error
	if inRun {
		err = record.ExtendRun(dirs[0], func(d *rundir.Dir) error { return d.Write(record.ReportFile, write) })
	} else {
		err = durable.Write(out, write)
	}
	if err == nil {
		fmt.Fprintln(stdout, out)
	}
	return err
}

// reportedRun reads a run directory for a report.
func reportedRun(dir string) (*report.Run, *record.Summary, error) {
	l, err := record.LoadRun(dir)
	if err != nil {
		return nil, nil, err
	}
	r := &report.Run{Name: filepath.Clean(dir), Provenance: provenance(l)}
	if r.Energy, err = l.Energy(); err != nil {
		return nil, nil, cli.AsInput(err)
	}
	if r.Shown, r.Predicted, err = l.Plots(); err != nil {
		return nil, nil, cli.AsInput(err)
	}
	r.Row, r.Head = reportRow(l), head(l, r.Predicted)
	r.Waits = []*plan.Waits{plan.WaitsOf(r.Shown.Problem, l.Schedule)}
	predicted := l.Schedule
	if r.Predicted != nil {
		predicted = r.Predicted.Schedule
		r.Waits = append(r.Waits, plan.WaitsOf(r.Predicted.Problem, predicted))
	}
	r.Kernels = plan.Kernels(l.Problem, predicted, l.Schedule)
	if l.Manifest.Lists(record.FrontFile) {
		r.Front, err = rundir.ReadAs(filepath.Join(dir, record.FrontFile), record.ReadFront)
	}
	return r, l.Summary, cli.AsInput(err)
}

// pointAmong is where a run lies among the fronts of others: its own front, else its step.
func pointAmong(r *report.Run, s *record.Summary) []plots.FrontPoint {
	joules := s.JoulesPerStep()
	if r.Front != nil || s.StepS <= 0 || math.IsNaN(joules) {
		return r.Front
	}
	return []plots.FrontPoint{{Seconds: s.StepS, Joules: joules, Label: r.Name, Front: true, Chosen: true}}
}

// head is the first screen of a run and of its prediction, if it has one.
func head(l *record.LoadedRun, predicted *plots.Run) report.Head {
	s := l.Summary
	h := report.Head{Title: fmt.Sprintf("%s on %s", cmp.Or(s.Network, s.Graph, "a graph"), l.Manifest.Platform.Name)}
	add := func(value, of string) { h.Numbers = append(h.Numbers, report.Fact{Name: value, Value: of}) }
	if s.StepS > 0 {
		add(cli.ShowTime(s.StepS), "a step, "+string(s.World))
	}
	if s.SamplesPerS != nil {
		add(cli.WholeNumber(*s.SamplesPerS), "samples a second")
	}
	switch joules := s.JoulesPerStep(); {
	case math.IsNaN(joules) || s.StepS == 0:
	case s.EnergyJ.PerSample > 0:
		add(cli.ShortJoules(s.EnergyJ.PerSample), "a sample, "+s.EnergyBy())
	default:
		add(cli.ShortJoules(joules), "a step, "+s.EnergyBy())
	}
	add(cli.ShowTime(s.MakespanS), "the run, "+naming.Count(s.Steps, "step"))
	if s.TestAccuracy != nil {
		add(cli.ShowShare(*s.TestAccuracy), "of the test samples are right")
	}
	if text := predictionText(l, predicted); text != "" {
		h.Says = append(h.Says, report.Fact{Name: "Prediction", Value: text})
	}
	if o := s.ObjectiveSummary; o != nil && o.LowerBoundOf != "" {
		h.Says = append(h.Says, report.Fact{Name: "Bound", Value: words.GapText(s)})
	} else {
		h.Says = append(h.Says, report.Fact{Name: "Bound", Value: words.BoundText("the run takes", cli.Seconds(s.MakespanS), cli.Seconds(s.LowerBoundS), s.World, words.Bounded(s.Network != "", l.Problem.Graph.NumTasks()))})
	}
	return h
}

// predictionText says how far a measured run is off its prediction, or how far the times of a simulated one are known.
func predictionText(l *record.LoadedRun, predicted *plots.Run) string {
	s := l.Summary
	if predicted == nil {
		if s.Models == nil {
			return ""
		}
		return "the step is predicted" + words.ErrorBar(s.Models)
	}
	before, after := predicted.Schedule.Makespan.Seconds()/float64(predicted.Schedule.Steps), l.Schedule.Makespan.Seconds()/float64(l.Schedule.Steps)
	if s.Trained != nil && s.Trained.PredictedStepS > 0 {
		before, after = s.Trained.PredictedStepS, s.StepS
	}
	off := plan.ErrorPercent(before, after)
	return fmt.Sprintf("%s a step, measured %s: %+.1f %%%s", cli.ShowTime(before), cli.ShowTime(after), off, CausesText(ErrorCauses(off, l.Problem, l.Schedule, s)))
}

// provenance says where a run came from.
func provenance(r *record.LoadedRun) []report.Fact {
	m, o := r.Manifest, &r.Manifest.Options
	build := m.Build.Commit
	if m.Build.Dirty {
		build += ", with changes"
	}
	facts := []report.Fact{
		{Name: "command", Value: "dahl " + strings.Join(m.Args, " ")},
		{Name: "dahl", Value: cmp.Or(m.Build.Version, "of no version") + ", commit " + build},
		{Name: "host", Value: fmt.Sprintf("%s/%s, %d CPUs, %s", m.Host.OS, m.Host.Arch, m.Host.CPUs, m.Host.Go)},
		{Name: "platform", Value: m.Platform.Name + ", SHA-256 " + m.Platform.SHA256},
	}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, report.Fact{Name: name, Value: value})
		}
	}
	add("network", m.Model)
	add("method", r.Summary.Method)
	for _, g := range m.Graphs {
		add("graph", g.Name+", SHA-256 "+g.SHA256)
	}
	if m.Data != nil {
		add("data", m.Data.Name+", SHA-256 "+m.Data.SHA256)
	}
	for _, in := range m.Inputs {
		add("input", in.Name+", SHA-256 "+in.SHA256)
	}
	for i := range r.Summary.Ranks {
		n := &r.Summary.Ranks[i]
		add("rank "+n.Node, words.RankText(n))
	}
	add("policy", r.Summary.Policy)
	add("seed", strconv.FormatUint(o.Seed, 10))
	add("element type", o.DType)
	add("clocks", strings.Join(r.Summary.Clocks, ", "))
	add("weights", m.WeightsHash)
	for _, g := range m.GPUs {
		add("GPU "+g.Device, fmt.Sprintf("%+v", g.GPU))
	}
	return facts
}

// reportRow is the row of a run in the table of runs.
func reportRow(r *record.LoadedRun) []report.Cell {
	s := r.Summary
	row := []report.Cell{{Name: "world", Text: string(s.World)}, {Name: "network", Text: cmp.Or(r.Manifest.Model, s.Graph)},
		{Name: "platform", Text: r.Manifest.Platform.Name}, {Name: "policy", Text: s.Policy}}
	add := func(name string, v float64, show func(float64) string) {
		if record.IsFinite(v) {
			row = append(row, report.Cell{Name: name, Text: show(v), Number: &v})
		}
	}
	add("steps", float64(s.Steps), cli.WholeNumber)
	add("run", s.MakespanS, cli.ShowTime)
	if s.Trained != nil && s.Trained.PredictedS > 0 {
		add("run, predicted", s.Trained.PredictedS, cli.ShowTime)
	}
	if s.StepS > 0 {
		add("step", s.StepS, cli.ShowTime)
	}
	if s.SamplesPerS != nil {
		add("samples/s", *s.SamplesPerS, cli.WholeNumber)
	}
	if s.EnergyJ.Basis != energy.Unavailable {
		add("energy of the run, modelled", s.EnergyJ.Total, cli.ShortJoules)
		if s.Trained != nil && s.Trained.PredictedJoules > 0 {
			add("energy of the run, predicted", s.Trained.PredictedJoules, cli.ShortJoules)
		}
	}
	if joules := s.JoulesPerStep(); !math.IsNaN(joules) {
		if s.EnergyJ.PerSample > 0 {
			add("energy per sample", s.EnergyJ.PerSample, cli.ShortJoules)
		} else {
			add("energy per step", joules, cli.ShortJoules)
		}
	}
	row = append(row, report.Cell{Name: "energy by", Text: s.EnergyBy()})
	if s.TrainingLoss != nil {
		add("training loss", float64(*s.TrainingLoss), cli.ThreeDigits)
	}
	if s.TestAccuracy != nil {
		add("test accuracy", *s.TestAccuracy, cli.ShowShare)
	}
	host := r.Problem.Platform.Memories[r.Problem.Platform.HostMemory()].Name
	add("live peak in "+host, float64(s.LivePeakBytes[host]), func(b float64) string { return cli.ShortBytes(int64(b)) })
	return row
}
