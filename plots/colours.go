package plots

import (
	"cmp"
	"image/color"
	"slices"
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/plots/paper"
	"dahl/schedule"
	"dahl/schedule/explain"
	"dahl/schedule/place"
)

// colouring gives every task of a graph a category, and every category a colour. The causes of idle
// time, transfers and the critical path are further categories after the categories of tasks.
type colouring struct {
	by     ColourBy
	names  []string     // of the categories of tasks
	fills  []color.RGBA // of all categories
	ofTask []int        // by task
}

// Offsets of the further categories from the number of task categories.
const (
	transferCategory = iota
	roomCategory
	clockCategory
	pathCategory
	firstIdleCategory
	firstStateCategory = firstIdleCategory + int(explain.NumIdleCauses)
	extraCategories    = firstStateCategory + numStates
)

func (c *colouring) transfer() int { return len(c.names) + transferCategory }
func (c *colouring) room() int     { return len(c.names) + roomCategory }
func (c *colouring) clock() int    { return len(c.names) + clockCategory }
func (c *colouring) path() int     { return len(c.names) + pathCategory }

// ofTransfer distinguishes transfers for a task from those due to a memory that is too small:
// out, and later back in.
func (c *colouring) ofTransfer(t *schedule.Transfer) int {
	if t.Reason == place.ReasonEvict || t.Reason == place.ReasonReload {
		return c.room()
	}
	return c.transfer()
}
func (c *colouring) idle(cause explain.IdleCause) int {
	return len(c.names) + firstIdleCategory + int(cause)
}
func (c *colouring) state(kind stateKind) int {
	return len(c.names) + firstStateCategory + int(kind)
}
func (c *colouring) categories() int { return len(c.fills) }

// hatch is the pattern over the fill of a category.
func (c *colouring) hatch(category int) paper.Hatch {
	switch kind := category - c.state(0); {
	case category == c.clock():
		return paper.Ticks
	case kind >= 0:
		return states[kind].hatch
	}
	return paper.Plain
}

// dark is the fill of a category on dark paper.
func (c *colouring) dark(category int) color.RGBA {
	switch {
	case category == c.transfer():
		return moveLight
	case category == c.room():
		return roomLight
	case category >= c.state(0):
		return states[category-c.state(0)].tint.dark
	case category >= c.idle(0):
		return idleTints[category-c.idle(0)].dark
	}
	return c.fills[category]
}

// newColouring gives colours to the tasks of one run.
func newColouring(r *Run) *colouring { return colourings(r)[0] }

// colourings give colours to the tasks of several runs, equal labels the same. Labels are in the order in which they
// first appear in the graphs. If there are more labels than colours, those with the most time in the schedules keep
// theirs, and the rest share grey.
func colourings(runs ...*Run) []*colouring {
	c := colouring{by: runs[0].colourBy()}
	labels, busy := c.by.labels(runs)
	var others []string
	if len(labels) > len(palette) {
		others = slices.Clone(labels)
		slices.SortStableFunc(others, func(a, b string) int { return cmp.Compare(busy[b], busy[a]) })
		others = others[len(palette)-1:]
	}
	category := map[string]int{}
	for _, name := range others {
		category[name] = -1
	}
	for _, name := range labels {
		if _, other := category[name]; !other {
			category[name] = len(c.names)
			c.fills = append(c.fills, palette[len(c.names)])
			c.names = append(c.names, cmp.Or(name, "no "+string(c.by)))
		}
	}
	if len(others) > 0 {
		for _, name := range others {
			category[name] = len(c.names)
		}
		c.names = append(c.names, naming.Count(len(others), "other "+string(c.by)))
		c.fills = append(c.fills, otherGrey)
	}
	c.fills = append(c.fills, moveGrey, roomBrown, paper.White, paper.Black)
	for _, t := range idleTints {
		c.fills = append(c.fills, t.light)
	}
	for kind := range numStates {
		c.fills = append(c.fills, states[kind].tint.light)
	}
	all := make([]*colouring, len(runs))
	for i, r := range runs {
		own := c
		for t := range r.Problem.Graph.Tasks {
			own.ofTask = append(own.ofTask, category[c.by.label(&r.Problem.Graph.Tasks[t])])
		}
		all[i] = &own
	}
	return all
}

// labels lists the labels of the runs' tasks, and the time that tasks with each label ran.
func (by ColourBy) labels(runs []*Run) (labels []string, busy map[string]time.Duration) {
	busy = map[string]time.Duration{}
	for _, r := range runs {
		tasks := r.Problem.Graph.Tasks
		for t := range tasks {
			name := by.label(&tasks[t])
			if _, known := busy[name]; !known {
				labels = append(labels, name)
				busy[name] = 0
			}
		}
		for i := range r.Schedule.Spans {
			s := &r.Schedule.Spans[i]
			busy[by.label(&tasks[s.Task])] += s.End - s.Start
		}
	}
	return labels, busy
}

// colourBy is the requested label, or the first that tells tasks apart.
func (r *Run) colourBy() ColourBy {
	if r.ColourBy != "" {
		return r.ColourBy
	}
	tasks := r.Problem.Graph.Tasks
	for _, by := range []ColourBy{ByLayer, ByPhase} {
		if slices.ContainsFunc(tasks, func(t dag.Task) bool { return by.label(&t) != by.label(&tasks[0]) }) {
			return by
		}
	}
	return ByOp
}

// legend is the groups that explain the colours in use.
func (c *colouring) legend(used []bool) []paper.Group {
	tasks := paper.Group{Caption: string(c.by)}
	for i, name := range c.names {
		if used[i] {
			tasks.Entries = append(tasks.Entries, paper.Entry{Name: name, Colour: c.fills[i]})
		}
	}
	marks := paper.Group{Caption: "other"}
	for _, m := range []struct {
		category int
		paper.Entry
	}{
		{c.transfer(), paper.Entry{Name: "transfer", Colour: moveGrey}},
		{c.room(), paper.Entry{Name: "transfer for lack of memory", Colour: roomBrown}},
		{c.clock(), paper.Entry{Name: "at another clock than the first", Colour: paper.White, Hatch: paper.Ticks}},
		{c.path(), paper.Entry{Name: "critical path", Colour: paper.Black, Stroke: true}},
	} {
		if used[m.category] {
			marks.Entries = append(marks.Entries, m.Entry)
		}
	}
	idle := paper.Group{Caption: "idle, waiting for"}
	for cause := range explain.NumIdleCauses {
		if used[c.idle(cause)] {
			idle.Entries = append(idle.Entries, paper.Entry{Name: idleNames[cause], Colour: c.fills[c.idle(cause)]})
		}
	}
	changes := paper.Group{Caption: "state"}
	for kind := range numStates {
		if used[c.state(stateKind(kind))] {
			changes.Entries = append(changes.Entries, paper.Entry{Name: states[kind].name, Colour: states[kind].tint.light, Hatch: states[kind].hatch})
		}
	}
	return []paper.Group{tasks, idle, marks, changes}
}

// idleNames completes "idle, waiting for", by explain.IdleCause.
var idleNames = [...]string{"a predecessor", "a transfer", "dispatch", "nothing: no work left", "a change of state"}

// The colours of what is no task.
var (
	otherGrey   = color.RGBA{153, 153, 153, 255}
	moveGrey    = color.RGBA{85, 85, 85, 255}    // transfers
	moveLight   = color.RGBA{155, 155, 155, 255} // the same on dark paper
	roomBrown   = color.RGBA{150, 40, 10, 255}   // transfers for lack of memory
	roomLight   = color.RGBA{190, 70, 45, 255}   // the same on dark paper
	reservedRed = color.RGBA{190, 60, 0, 255}    // the planned peak
)

// tint is a colour behind workers that do nothing, on white paper and on the dark paper of a report.
// On both it is further from the ink of the paper than any colour of a task: a test measures how far.
type tint struct{ light, dark color.RGBA }

// The tints of idle workers, by explain.IdleCause, and the tint of sleep.
var (
	idleTints = [...]tint{
		{color.RGBA{236, 236, 236, 255}, color.RGBA{44, 46, 50, 255}}, // dependence: grey
		{color.RGBA{255, 208, 192, 255}, color.RGBA{78, 34, 28, 255}}, // transfer: vermilion
		{color.RGBA{255, 246, 190, 255}, color.RGBA{66, 56, 8, 255}},  // dispatch: yellow
		{color.RGBA{250, 250, 250, 255}, color.RGBA{29, 31, 35, 255}}, // no work left: almost the paper
		changeTint,
	}
	changeTint = tint{color.RGBA{230, 210, 246, 255}, color.RGBA{62, 36, 84, 255}} // of state: lilac
	sleepTint  = tint{color.RGBA{190, 232, 238, 255}, color.RGBA{10, 56, 66, 255}}
)

// palette is the seven colours of Okabe and Ito (Color Universal Design, 2008) without black, then five
// relatives of them. Their yellow is a little darker here, since light tints are next to it.
var palette = [...]color.RGBA{
	{0, 114, 178, 255},   // blue
	{230, 159, 0, 255},   // orange
	{0, 158, 115, 255},   // bluish green
	{204, 121, 167, 255}, // reddish purple
	{86, 180, 233, 255},  // sky blue
	{213, 94, 0, 255},    // vermilion
	{224, 214, 52, 255},  // yellow
	{92, 78, 172, 255},   // indigo
	{150, 48, 104, 255},  // wine
	{150, 198, 150, 255}, // pale green
	{128, 90, 40, 255},   // brown
	{175, 175, 230, 255}, // pale indigo
}
