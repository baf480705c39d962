package record

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"dahl/cmd/cli"
	"dahl/energy"
	"dahl/execute/hardware"
	"dahl/naming"
	"dahl/plan"
	"dahl/plots"
	"dahl/plots/paper"
	"dahl/rundir"
	"dahl/schedule"
)

// The files of a run directory that package rundir does not name.
const (
	SummaryFile = "summary.json"
	WeightsFile = "weights.npz"
	StepsFile   = "steps.csv"
	EpochsFile  = "epochs.csv"
	CompareFile = "compare.svg"
	ReportFile  = "report.html"
)

// Draw writes a figure into a run.
func Draw(d *rundir.Dir, f plots.Figure, in plots.Input, p paper.Page) error {
	var drawn bytes.Buffer
	if err := f.Draw(&drawn, p, in); err != nil {
		return err
	}
	return d.Write(f.Name+"."+p.Format, func(w io.Writer) error {
		_, err := w.Write(drawn.Bytes())
		return err
	})
}

// Screen is the page of a figure that a run writes by itself.
var Screen = paper.Page{Format: "svg"}

// NewPlotRun prepares a schedule for figures and traces; of is the summary of the run.
func NewPlotRun(prob *schedule.Problem, s *schedule.Schedule, of *Summary) (*plots.Run, error) {
	p := *prob
	p.Steps = s.Steps
	traces, err := energy.Traces(s, &p)
	if err != nil {
		return nil, err
	}
	report, err := energy.FromSchedule(s, &p)
	if err != nil {
		return nil, err
	}
	run := &plots.Run{Network: of.Network, Problem: &p, Schedule: s, Power: traces, Grounds: report.Grounds()}
	if nodes := plan.NodesOf(&p, s, report); nodes != nil {
		for i := range nodes.Nodes {
			run.NodeTexts = append(run.NodeTexts, nodeText(&nodes.Nodes[i]))
		}
	}
	for m := range p.Platform.Memories {
		run.ReservedBytes = append(run.ReservedBytes, of.ReservedBytes[p.Platform.Memories[m].Name])
	}
	if shown := of.Shown; shown != nil {
		run.Part, run.FirstStep, run.Bound = shown.String(), shown.First, cli.Seconds(shown.LowerBoundS)
	}
	return run, nil
}

// nodeText says in a heading what a node did.
func nodeText(u *plan.NodeUse) string {
	text := fmt.Sprintf("%d of %s busy %s", u.Workers, naming.Count(u.Of, "worker"), cli.ShowShare(u.Busy))
	if u.Basis != energy.Unavailable {
		text += "; per step " + cli.ShortJoules(u.Joules)
	}
	return text + fmt.Sprintf(", %s in, %s out", cli.ShortBytes(int64(u.InBytes)), cli.ShortBytes(int64(u.OutBytes)))
}

// LoadedRun is a run directory read back.
type LoadedRun struct {
	*rundir.Loaded
	Path     string
	Manifest *Manifest
	Summary  *Summary
}

// LoadRun reads a run directory. It logs a warning for each file that has changed since it was written. A training by another
// program has no tasks, and is refused.
func LoadRun(dir string) (*LoadedRun, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if m.Command == PeerCommand {
		return nil, cli.InputErrorf("%s is a training by %s, which has no tasks to show; its curves are in %s and %s", dir, m.Program.Program, EpochsFile, StepsFile)
	}
	changed, err := rundir.Changed(dir, m)
	if err != nil {
		return nil, err
	}
	for _, file := range changed {
		slog.Warn("a file of the run is not as it was written; dahl verify says more", "file", file)
	}
	s, err := cli.ReadJSON[Summary](filepath.Join(dir, SummaryFile))
	if err != nil {
		return nil, err
	}
	l, err := rundir.Load(dir, hardware.Target{Variant: m.Options.Variant})
	return &LoadedRun{l, dir, m, s}, cli.AsInput(err)
}

// Plots prepares the schedule of a run for figures and traces, and its prediction. A nil prediction means that there is none.
func (r *LoadedRun) Plots() (run, predicted *plots.Run, err error) {
	if run, err = NewPlotRun(r.Problem, r.Schedule, r.Summary); err != nil {
		return nil, nil, err
	}
	before, err := r.Predicted()
	if err == nil && before != nil {
		predicted, err = NewPlotRun(r.Problem, before, r.Summary)
	}
	return run, predicted, err
}

// ReadFront reads the points of a front as writeFront wrote them.
func ReadFront(in io.Reader, name string) ([]plots.FrontPoint, error) {
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var points []plots.FrontPoint
	for i, row := range rows[min(1, len(rows)):] { // below the header
		wrong := fmt.Errorf("%s:%d: want %s", name, i+2, strings.Join(FrontColumns, ","))
		if len(row) != len(FrontColumns) {
			return nil, wrong
		}
		seconds, errS := strconv.ParseFloat(row[0], 64)
		joules, errJ := strconv.ParseFloat(row[1], 64)
		if cmp.Or(errS, errJ) != nil {
			return nil, wrong
		}
		points = append(points, plots.FrontPoint{Seconds: seconds, Joules: joules, Label: cmp.Or(row[2], "all devices"), Front: row[5] == YesNo(true), Chosen: row[6] == YesNo(true)})
	}
	return points, nil
}
