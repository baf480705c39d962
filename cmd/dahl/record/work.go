package record

import (
	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/plan"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// StepWork says what the granularity of a graph costs in tasks and bytes, and how its tasks fill the units.
type StepWork struct {
	Tasks int   `json:"tasks"` // of a step
	Bytes int64 `json:"bytes"` // that these read and write

	// Waves is the number of tasks of the forward pass of the layer with most work over the number of units, rounded up.
	Waves int `json:"waves,omitempty"`

	// Tail is the share of the units' time in which they wait for a predecessor, or have no work left.
	Tail float64 `json:"tail"`
}

// NewStepWork describes the step of a schedule.
func NewStepWork(p *schedule.Problem, s *schedule.Schedule, waits *plan.Waits) *StepWork {
	units := 0
	for _, w := range p.Platform.Workers {
		if !p.Platform.Devices[w.Device].PlacedOnly {
			units++
		}
	}
	w := &StepWork{Tasks: p.Graph.NumTasks(), Bytes: p.Graph.TotalBytes()}
	idle := waits.PerStepS[explain.WaitPredecessor.String()] + waits.PerStepS[explain.NoWork.String()]
	w.Tail = cli.Ratio(idle*float64(s.Steps), s.Makespan.Seconds()*float64(units))
	if units > 0 {
		w.Waves = (widest(p.Graph) + units - 1) / units
	}
	return w
}

// widest counts the tasks of the forward pass of the layer with most work. A change of layout is none of them.
func widest(g *dag.Graph) (tasks int) {
	type layer struct {
		tasks int
		flops float64
	}
	layers, most := map[string]layer{}, 0.0
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.Labels.Phase != "forward" || t.Flops == 0 {
			continue
		}
		of := layers[t.Labels.Layer]
		of.tasks, of.flops = of.tasks+1, of.flops+t.Flops
		if layers[t.Labels.Layer] = of; of.flops > most {
			tasks, most = of.tasks, of.flops
		}
	}
	return tasks
}
