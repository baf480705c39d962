package report

import (
	"encoding/json"
	"image/color"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan"
	"dahl/platform"
	"dahl/plots"
)

// Run is one run of a report.
type Run struct {
	Name       string // as its user named its directory
	Head       Head
	Provenance []Fact
	Row        []Cell // what the table of several runs says of it

	// Shown is the schedule of the run, Predicted the prediction of an executed one; nil means none.
	Shown     *plots.Run
	Predicted *plots.Run

	Energy  *energy.Report
	Kernels []plan.KernelComparison // of a run without a prediction both sides are equal
	Waits   []*plan.Waits           // of Shown, then of Predicted
	Front   []plots.FrontPoint      // the plans that a search has simulated, if one did
}

// Head is the first screen of a run.
type Head struct {
	Title   string `json:"title"`
	Numbers []Fact `json:"numbers"` // a value, and its meaning
	Says    []Fact `json:"says"`    // a word, and a sentence about it: on the prediction, and on the bound
}

// Fact is a name and what to say of it.
type Fact struct {
	Name, Value string
}

// Cell is a value in the table of runs, by the heading of its column.
type Cell struct {
	Name   string   `json:"name"`
	Text   string   `json:"text"`
	Number *float64 `json:"number,omitempty"` // to sort by; nil means the text is no number
}

// MarshalJSON writes a pair.
func (f Fact) MarshalJSON() ([]byte, error) { return json.Marshal([2]string{f.Name, f.Value}) }

// encode makes the data of a run for the page. Both schedules share tasks, workers and memories.
func (r *Run) encode(e *encoder) (map[string]any, error) {
	p := r.Shown.Problem
	shown, err := plots.NewView(r.Shown, nil)
	if err != nil {
		return nil, err
	}
	schedules := []map[string]any{encodeSchedule(e, r.Shown, shown)}
	if r.Predicted != nil {
		predicted, err := plots.NewView(r.Predicted, shown)
		if err != nil {
			return nil, err
		}
		schedules = append(schedules, encodeSchedule(e, r.Predicted, predicted))
	}
	for i := range schedules {
		schedules[i]["waits"] = r.Waits[i]
	}
	return map[string]any{
		"name": r.Name, "head": r.Head, "title": shown.Title, "provenance": r.Provenance, "row": r.Row,
		"energy": r.Energy, "grounds": r.Energy.Grounds(), "kernels": r.Kernels, "front": frontOf(r.Front),
		"workers":    namesOf(p.Platform.Workers, func(w *platform.Worker) string { return w.Name }),
		"memories":   namesOf(p.Platform.Memories, func(m *platform.Memory) string { return m.Name }),
		"buffers":    e.patterns(namesOf(p.Graph.Buffers, func(b *dag.Buffer) string { return b.Name })),
		"tasks":      encodeTasks(e, p.Graph),
		"colourBy":   shown.ColourBy,
		"categories": encodeCategories(shown.Categories),
		"schedules":  schedules,
	}, nil
}

func namesOf[T any](list []T, name func(*T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = name(&list[i])
	}
	return names
}

// encodeTasks has the names and labels of the tasks of a step.
func encodeTasks(e *encoder, g *dag.Graph) map[string]any {
	words := texts{at: map[string]int{}}
	label := func(of func(*dag.Task) string) column {
		return e.ints(len(g.Tasks), func(i int) int64 { return words.number(of(&g.Tasks[i])) })
	}
	return map[string]any{
		"names": e.patterns(namesOf(g.Tasks, func(t *dag.Task) string { return t.Name })),
		"op":    label(func(t *dag.Task) string { return t.Op }), "shape": label(func(t *dag.Task) string { return t.Shape }),
		"layer": label(func(t *dag.Task) string { return t.Labels.Layer }), "phase": label(func(t *dag.Task) string { return t.Labels.Phase }),
		"words": words.list,
	}
}

func encodeCategories(all []plots.Category) (list []map[string]any) {
	for _, c := range all {
		list = append(list, map[string]any{"kind": c.Kind, "name": c.Name, "colour": rgb(c.Colour), "dark": rgb(c.Dark)})
	}
	return list
}

func rgb(c color.RGBA) [3]uint8 { return [3]uint8{c.R, c.G, c.B} }

// frontOf writes points as seconds, joules, label, and whether they are on the front or chosen.
func frontOf(points []plots.FrontPoint) [][5]any {
	list := [][5]any{}
	for _, p := range points {
		list = append(list, [5]any{p.Seconds, p.Joules, p.Label, p.Front, p.Chosen})
	}
	return list
}
