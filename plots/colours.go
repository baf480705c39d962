package plots

import (
	"cmp"
	"image/color"
	"slices"
	"time"

	"dahl/dag"
	"dahl/naming"
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
func (c *colouring) hatch(category int) hatch {
	switch kind := category - c.state(0); {
	case category == c.clock():
		return ticks
	case kind >= 0:
		return states[kind].hatch
	}
	return plain
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
	c.fills = append(c.fills, moveGrey, roomBrown, white, pathBlack)
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
func (c *colouring) legend(used []bool) []legendGroup {
	tasks := legendGroup{caption: string(c.by)}
	for i, name := range c.names {
		if used[i] {
			tasks.entries = append(tasks.entries, legendEntry{name: name, colour: c.fills[i]})
		}
	}
	marks := legendGroup{caption: "other"}
	for _, m := range []struct {
		category int
		legendEntry
	}{
		{c.transfer(), legendEntry{name: "transfer", colour: moveGrey}},
		{c.room(), legendEntry{name: "transfer for lack of memory", colour: roomBrown}},
		{c.clock(), legendEntry{name: "at another clock than the first", colour: white, hatch: ticks}},
		{c.path(), legendEntry{name: "critical path", colour: pathBlack, stroke: true}},
	} {
		if used[m.category] {
			marks.entries = append(marks.entries, m.legendEntry)
		}
	}
	idle := legendGroup{caption: "idle, waiting for"}
	for cause := range explain.NumIdleCauses {
		if used[c.idle(cause)] {
			idle.entries = append(idle.entries, legendEntry{name: idleNames[cause], colour: c.fills[c.idle(cause)]})
		}
	}
	changes := legendGroup{caption: "state"}
	for kind := range numStates {
		if used[c.state(stateKind(kind))] {
			changes.entries = append(changes.entries, legendEntry{name: states[kind].name, colour: states[kind].tint.light, hatch: states[kind].hatch})
		}
	}
	return []legendGroup{tasks, idle, marks, changes}
}

// idleNames completes "idle, waiting for", by explain.IdleCause.
var idleNames = [...]string{"a predecessor", "a transfer", "dispatch", "nothing: no work left", "a change of state"}
