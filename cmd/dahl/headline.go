package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/energy"
	"dahl/naming"
	"dahl/nn"
	"dahl/plan"
	"dahl/schedule"
)

// headline has the three lines at the end of simulate, plan and execute: the time of a step, its
// energy, and the distance of the run from the least possible time.
type headline struct {
	figures plan.StepFigures
	tasks   int    // of a step
	what    string // that was cut into them, see words.Bounded
	grounds string // of the joules
	known   string // how far the time is known; empty means that it is measured
	world   schedule.World
	of      string // what takes as long as run, with its verb
	run     time.Duration
	bound   time.Duration // of the run
}

func (w *workload) headline(o *plan.Totals, s *record.Summary) *headline {
	h := &headline{figures: w.figures(o, s.EnergyJ.Readings...), tasks: w.Program.Graphs[0].NumTasks(), what: words.Bounded(w.Model != nil, w.Program.Graphs[0].NumTasks()), world: s.World, grounds: o.Report.Grounds(), of: "the run takes", run: o.Run, bound: cli.Seconds(s.LowerBoundS)}
	if h.figures.Basis == energy.Measured {
		h.grounds = "measured by meters"
	}
	if len(w.Program.Order) == 1 && s.Steps > 1 {
		h.of = naming.Count(s.Steps, "step") + " take"
	}
	if s.Trained != nil && s.Trained.ResumedAfterStep > 0 {
		h.of = fmt.Sprintf("after step %d the run takes", s.Trained.ResumedAfterStep)
	}
	if s.Models != nil {
		h.known = words.ErrorBar(s.Models)
	}
	return h
}

// print writes the three lines; a measured step is followed by the predicted one.
func (h *headline) print(out io.Writer, beside string) {
	f := &h.figures
	rate := fmt.Sprintf("%s tasks/s", cli.WholeNumber(cli.Ratio(float64(h.tasks), f.StepS)))
	if f.SamplesPerS > 0 {
		rate = fmt.Sprintf("%s samples/s", cli.WholeNumber(f.SamplesPerS))
	}
	if f.StepS > 0 {
		fmt.Fprintf(out, "step      %s, %s%s%s\n", cli.ShortTime(cli.Seconds(f.StepS)), rate, h.known, beside)
	} else {
		fmt.Fprintln(out, "step      only the first step of each graph ran, which does not count")
	}
	switch {
	case f.StepS == 0:
	case f.Basis == energy.Unavailable:
		fmt.Fprintf(out, "energy    %s\n", h.grounds)
	case f.JoulesPerSample > 0:
		fmt.Fprintf(out, "energy    %s per sample (%s)\n", cli.ShortJoules(f.JoulesPerSample), h.grounds)
	default:
		fmt.Fprintf(out, "energy    %s per step (%s)\n", cli.ShortJoules(f.JoulesPerStep), h.grounds)
	}
	fmt.Fprintf(out, "bound     %s\n", words.BoundText(h.of, h.run, h.bound, h.world, h.what))
}

// epochsText says what a training consists of: "5 epochs of 47 steps and 29 of evaluation".
func (w *workload) epochsText() string {
	train, test := 0, 0
	for _, s := range w.Program.Order[:len(w.Program.Order)/w.Options.Epochs] {
		if nn.IsTraining(w.Program.Graphs[s.Graph]) {
			train += s.Steps
		} else {
			test += s.Steps
		}
	}
	text := fmt.Sprintf("%s of %s", naming.Count(w.Options.Epochs, "epoch"), naming.Count(train, "step"))
	if test > 0 {
		text += fmt.Sprintf(" and %d of evaluation", test)
	}
	return text
}

// energyText prints the joules of all of a training and what they rest on.
func (t *trainer) energyText() string {
	o := t.Measured
	modelled := fmt.Sprintf("%s (%s)", cli.ShortJoules(o.Joules), o.Report.Grounds())
	if o.Basis == energy.Unavailable {
		modelled = "energy unavailable: the platform names no powers"
	}
	if len(t.Readings) > 0 {
		return fmt.Sprintf("measured %s; %s", words.Readings(t.Readings), modelled)
	}
	return modelled
}

// hostBytes is the size of the layouts in the host's memory.
func (w *workload) hostBytes() int64 {
	return w.Decision.ReservedBytes()[w.Platform.HostMemory()]
}

// memoryText names the live peak and the reserved bytes of each memory, and explains their
// difference.
func (w *workload) memoryText(o *plan.Totals) string {
	var each []string
	for m, reserved := range w.Decision.ReservedBytes() {
		text := fmt.Sprintf("%s live peak %s", w.Platform.Memories[m].Name, cli.ShortBytes(o.PeakBytes[m]))
		if reserved > 0 {
			text += ", reserved " + cli.ShortBytes(reserved)
		}
		each = append(each, text)
	}
	return strings.Join(each, "; ") + " (live: values still to be read; reserved: places for the buffers of all graphs, and workspace)"
}
