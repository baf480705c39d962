package plots

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/naming"
	"dahl/plots/paper"
	"dahl/schedule"
	"dahl/schedule/audit"
)

// Run is one schedule with the data that its figures need.
type Run struct {
	Problem  *schedule.Problem
	Schedule *schedule.Schedule

	Title    string   // empty means the network, the policy and the world
	Network  string   // empty means the graph's name
	ColourBy ColourBy // empty means the first of layer, phase, op that tells tasks apart

	// Power is the power of the host, the devices and the links over time, as energy.Traces gives
	// it, drawn from the bottom up; nil where it is not known.
	Power []energy.PowerTrace
	// Grounds says how the joules of Power were found, as energy.Report.Grounds does.
	Grounds string
	// NodeTexts are for the headings of the nodes of a cluster, behind their names; nil means nothing.
	NodeTexts []string
	// ReservedBytes is how much the plan reserves, by memory; 0 or missing: no line.
	ReservedBytes []int64

	// Part says which part of a longer run the schedule is; empty means all of it. FirstStep is the
	// number of its first step in that run; 0 means 1.
	Part      string
	FirstStep int

	// Show is which steps Gantt charts show.
	Show StepRange
	// Bound is a lower bound on the time of any schedule of the same steps, by the estimated times.
	// Zero means unknown.
	Bound time.Duration
}

// ColourBy names the label that gives a task its colour.
type ColourBy string

// The labels that tasks can be coloured by.
const (
	ByLayer      ColourBy = "layer"
	ByPhase      ColourBy = "phase"
	ByOp         ColourBy = "op"
	ByMicroBatch ColourBy = "micro-batch"
)

// Colours lists them.
func Colours() []string {
	return []string{string(ByLayer), string(ByPhase), string(ByOp), string(ByMicroBatch)}
}

// Input is the data of the figures of a run. Only the comparison needs a prediction of Run, and what both are together.
type Input struct {
	Run       *Run
	Predicted *Run
	Compared  *Compared
	Front     *Front  // plans that a search has simulated
	Confusion *Values // how often each class was predicted for each label
}

// Figure is one line of the table of figures.
type Figure struct {
	Name     string // also the file name without extension
	Sentence string
	Draw     func(w io.Writer, p paper.Page, in Input) error
}

// ErrNoData says that a run lacks the data of a figure. Callers that draw every figure may skip
// it.
var ErrNoData = errors.New("nothing to draw")

// Figures is the table of figures.
func Figures() []Figure {
	return []Figure{
		{"gantt", "what each worker did when, and why it waited", func(w io.Writer, p paper.Page, in Input) error { return Gantt(w, p, in.Run) }},
		{"power", "(or energy) power by device, the energy it adds up to, and what the watts rest on", func(w io.Writer, p paper.Page, in Input) error { return Power(w, p, in.Run) }},
		{"memory", "bytes live in each memory, and what is reserved", func(w io.Writer, p paper.Page, in Input) error { return Memory(w, p, in.Run) }},
		{"compare", "predicted and measured on one time axis, and kernel by kernel", Compare},
		{"front", "time and energy of the plans that a search has simulated", func(w io.Writer, p paper.Page, in Input) error {
			if in.Front == nil {
				return fmt.Errorf("front: no search was run: %w", ErrNoData)
			}
			return DrawFront(w, p, in.Front)
		}},
		{"confusion", "how often each class was predicted for each label", func(w io.Writer, p paper.Page, in Input) error {
			if in.Confusion == nil {
				return fmt.Errorf("confusion: the run is no evaluation: %w", ErrNoData)
			}
			return DrawHeat(w, p, in.Confusion)
		}},
	}
}

// FigureByName finds a line of the table. Energy is in the figure of power.
func FigureByName(name string) (Figure, error) {
	if name == "energy" {
		name = "power"
	}
	return naming.Find("figure", name, Figures(), func(f Figure) string { return f.Name })
}

// check refuses runs that cannot be drawn, so that a damaged file ends in an error and not in a
// panic.
func (r *Run) check(figure string) error {
	if r == nil || r.Problem == nil || r.Schedule == nil || len(r.Schedule.Spans) == 0 {
		return fmt.Errorf("%s: the run has no tasks: %w", figure, ErrNoData)
	}
	if err := cmp.Or(audit.Fits(r.Schedule, r.Problem), r.checkSteps()); err != nil {
		return fmt.Errorf("%s: %w", figure, err)
	}
	return nil
}

// title is the headline of a figure of one run.
func (r *Run) title() string {
	if r.Title == "" && r.Schedule.World != "" {
		return r.name() + ", " + string(r.Schedule.World)
	}
	return r.name()
}

// name is the title without the world.
func (r *Run) name() string {
	if r.Title != "" {
		return r.Title
	}
	name := cmp.Or(r.Network, r.Problem.Graph.Name, "task graph")
	if r.Schedule.Policy != "" {
		name += ", " + r.Schedule.Policy
	}
	return name
}

// summary is the line under the title: how many steps and tasks ran, how long, and how busily.
func (r *Run) summary() string {
	s := r.Schedule
	busy := time.Duration(0)
	for i := range s.Spans {
		busy += s.Spans[i].End - s.Spans[i].Start
	}
	text := fmt.Sprintf("%s on %s", naming.Count(len(s.Spans), "task"), naming.Count(len(r.Problem.Platform.Workers), "worker"))
	switch {
	case r.Part != "":
		text += ", " + r.Part
	case s.Steps > 1:
		text += fmt.Sprintf(", %d steps", s.Steps)
	}
	text += fmt.Sprintf(", makespan %s", paper.FormatDuration(s.Makespan))
	if s.Period > 0 {
		text += fmt.Sprintf(", steady step %s", paper.FormatDuration(s.Period))
	}
	if capacity := float64(s.Makespan) * float64(len(r.Problem.Platform.Workers)); capacity > 0 {
		text += fmt.Sprintf(", workers busy %.1f %%", 100*float64(busy)/capacity)
	}
	if r.Bound > 0 {
		by := "; no schedule of these tasks on these workers takes less than "
		switch {
		case s.World == schedule.Measured && s.Makespan < r.Bound:
			by = "; the models are slower than the machine: by them every schedule of these tasks takes at least "
		case s.World == schedule.Measured:
			by = "; by the estimated times no schedule of these tasks on these workers takes less than "
		}
		text += by + paper.FormatDuration(r.Bound)
	}
	return text
}

// inBrackets is a remark for the end of a sentence or title.
func inBrackets(remark string) string {
	if remark == "" {
		return ""
	}
	return " (" + remark + ")"
}

// label returns the label that gives a task its colour.
func (by ColourBy) label(t *dag.Task) string {
	switch by {
	case ByLayer:
		return t.Labels.Layer
	case ByPhase:
		return t.Labels.Phase
	case ByMicroBatch:
		if t.Labels.MicroBatch == 0 {
			return "whole batch"
		}
		return strconv.Itoa(int(t.Labels.MicroBatch))
	}
	return t.Op
}
