package plots

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/vg"

	"dahl/platform"
	"dahl/plots/paper"
	"dahl/schedule"
	"dahl/schedule/explain"
	"dahl/schedule/place"
)

// chart is the contents of a Gantt chart: rows of pieces on a time axis.
type chart struct {
	run      *Run
	colours  *colouring
	rows     []row
	end      time.Duration   // of the shown time; transfers may go on after the last task
	stepEnds []time.Duration // the end of the last task of each step of the schedule
	shown    window          // what crop has left
	hops     []hop

	// Where the spans and transfers of the run are.
	rowOfWorker []int // -1: not shown
	firstLane   []int // by worker: its first lane within its row
	lane        []int // by span, from the first lane of its worker
	rowOfRoute  map[route]int
	rowOfLink   map[int]int

	transferOrder, transferLane []int // the transfers as transferLanes lists them

	nodesInRow int // of a cluster with many workers: how many nodes share a row; 0 means that workers have rows
}

// row is one worker, a group of like workers, the transfers between two memories, or the states of
// a link.
type row struct {
	label  string
	node   platform.NodeID // the last one for all that is no node's
	head   string          // above the first row of a node
	unit   bool            // it is one of several rows of one device
	opens  bool            // it is the first row of a device
	top    vg.Length       // below the upper edge of the chart, as setHeights makes it
	tall   vg.Length
	lanes  [][]piece
	clocks [][]piece // by lane: tasks at another clock than the first
	path   []piece   // the stretches on the critical path
}

// hop is where the critical path changes rows.
type hop struct {
	fromRow, toRow int
	from, to       time.Duration
}

// maxWorkerRows bounds the rows of a chart. Beyond it, neighbouring workers of a device share a
// row. maxRouteRows does the same for pairs of memories.
const (
	maxWorkerRows = 96
	maxRouteRows  = 16
)

// newChart arranges a run. Colours may come from another run of the same graph.
func newChart(r *Run, colours *colouring) *chart {
	c := &chart{run: r, colours: colours, end: r.Schedule.Makespan, stepEnds: r.stepEnds()}
	c.addWorkerRows()
	c.addSpans()
	c.addTransfers()
	c.addRests()
	c.groupNodes()
	c.addPath()
	for i := range c.rows {
		for _, lane := range c.rows[i].lanes {
			slices.SortStableFunc(lane, func(x, y piece) int { return cmp.Compare(x.from, y.from) })
		}
	}
	return c
}

// route is a pair of memories. from is anyMemory where rows are by destination.
type route struct{ from, to platform.MemoryID }

const anyMemory platform.MemoryID = -1

// addWorkerRows makes the rows in the order of the workers. A worker has as many
// lanes as its tasks overlap (streams). Neighbours that ran nothing share a row.
func (c *chart) addWorkerRows() {
	p, s := c.run.Problem.Platform, c.run.Schedule
	c.rowOfWorker, c.firstLane = make([]int, len(p.Workers)), make([]int, len(p.Workers))
	var laneCount map[platform.WorkerID]int
	c.lane, laneCount = spanLanes(s)
	c.foldNodes(laneCount)
	if c.nodesInRow > 0 {
		c.addNodeRows(laneCount)
		return
	}
	group := (len(laneCount) + maxWorkerRows - 1) / maxWorkerRows
	inRow, device, unused := 0, platform.DeviceID(-1), false
	rows := &c.rows
	for w := range p.Workers {
		count := laneCount[platform.WorkerID(w)]
		share := p.Workers[w].Device == device && unused == (count == 0) && (unused || inRow < group)
		if !share {
			opens := p.Workers[w].Device != device
			node := p.NodeOf(p.Devices[p.Workers[w].Device].Memory)
			*rows = append(*rows, row{label: c.inNode(p.Workers[w].Name, node), node: node, opens: opens, unit: !opens})
			if n := len(*rows); !opens {
				(*rows)[n-2].unit = true
			}
			inRow, device, unused = 0, p.Workers[w].Device, count == 0
		}
		r := &(*rows)[len(*rows)-1]
		if inRow > 0 {
			first, _, _ := strings.Cut(r.label, "..")
			r.label = fmt.Sprintf("%s..%d", first, p.Workers[w].Index)
		}
		inRow++
		c.rowOfWorker[w], c.firstLane[w] = len(*rows)-1, len(r.lanes)
		r.lanes = append(r.lanes, make([][]piece, max(1, count))...)
	}
}

func (c *chart) addSpans() {
	g, s := c.run.Problem.Graph, c.run.Schedule
	for i := range s.Spans {
		span := &s.Spans[i]
		l := &c.rows[c.rowOfWorker[span.Worker]].lanes[c.firstLane[span.Worker]+c.lane[i]]
		p := piece{span.Start, span.End, c.colours.ofTask[span.Task], g.Tasks[span.Task].Name}
		if clock := c.run.otherClock(span); clock != "" {
			c.markClock(span.Worker, c.lane[i], p)
			p.text += " @" + clock
		}
		*l = append(*l, p)
	}
}

// addTransfers makes one row, below the workers, for each pair of memories that exchange data.
func (c *chart) addTransfers() {
	s, p := c.run.Schedule, c.run.Problem.Platform
	byRoute := func(t *schedule.Transfer) route { return route{t.From, t.To} }
	order, lane, count := transferLanes(s, byRoute)
	if len(count) > maxRouteRows {
		byRoute = func(t *schedule.Transfer) route { return route{anyMemory, t.To} }
		order, lane, count = transferLanes(s, byRoute)
	}
	if c.nodesInRow > 0 {
		byRoute = func(t *schedule.Transfer) route { return route{anyMemory, c.firstInRow(t.To)} }
		order, lane, count = transferLanes(s, byRoute)
	}
	c.rowOfRoute, c.transferOrder, c.transferLane = map[route]int{}, order, lane
	for _, key := range slices.SortedFunc(maps.Keys(count), compareRoutes) {
		node := p.NodeOf(key.to)
		label := "to " + c.inNode(p.Memories[key.to].Name, node)
		switch {
		case c.nodesInRow > 0:
			label = "to " + c.nodeRowName(node)
		case key.from != anyMemory:
			label = c.inNode(p.Memories[key.from].Name, node) + " " + label
		}
		c.rowOfRoute[key] = len(c.rows)
		c.rows = append(c.rows, row{label: label, node: node, lanes: make([][]piece, count[key])})
	}
	for i, k := range order {
		t := &s.Transfers[k]
		l := &c.rows[c.rowOfRoute[byRoute(t)]].lanes[lane[i]]
		*l = append(*l, piece{t.Start, t.End, c.colours.ofTransfer(t), transferLabel(t)})
		c.end = max(c.end, t.End)
	}
}

// transferLabel is the size of a transfer, and its purpose if no task reads it.
func transferLabel(t *schedule.Transfer) string {
	if t.Reason == place.ReasonEvict {
		return string(t.Reason) + " " + paper.FormatBytes(t.Bytes)
	}
	return paper.FormatBytes(t.Bytes)
}

// transferLanes lists the transfers by route and start, their lanes, and the number of lanes of each route.
func transferLanes(s *schedule.Schedule, key func(t *schedule.Transfer) route) (order, lane []int, count map[route]int) {
	for i := range s.Transfers {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &s.Transfers[a], &s.Transfers[b]
		return cmp.Or(compareRoutes(key(x), key(y)), cmp.Compare(x.Start, y.Start))
	})
	lane, count = lanes(len(order), func(i int) (route, time.Duration, time.Duration) {
		t := &s.Transfers[order[i]]
		return key(t), t.Start, t.End
	})
	return order, lane, count
}

func compareRoutes(a, b route) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

func (c *chart) addPath() {
	s := c.run.Schedule
	lastRow, lastEnd := -1, time.Duration(0)
	steps := explain.CriticalPath(c.run.Problem, s)
	for i := range steps {
		at := c.rowOfStep(steps[i:])
		from, to := steps[i].Times(s)
		r := &c.rows[at]
		r.path = append(r.path, piece{from, to, c.colours.path(), ""})
		if lastRow >= 0 && lastRow != at {
			c.hops = append(c.hops, hop{lastRow, at, lastEnd, from})
		}
		lastRow, lastEnd = at, to
	}
}

// rowOfStep is the row of the first of some steps of the critical path. A change of a device is in
// the row of the task that it held up.
func (c *chart) rowOfStep(steps []explain.PathStep) int {
	s := c.run.Schedule
	for _, step := range steps {
		switch {
		case step.Span >= 0:
			return c.rowOfWorker[s.Spans[step.Span].Worker]
		case step.Transfer >= 0:
			return c.rowOfTransfer(&s.Transfers[step.Transfer])
		case s.Changes[step.Change].Device < 0:
			return c.rowOfLink[int(s.Changes[step.Change].Link)]
		}
	}
	panic("plots: the critical path ends with a change of state")
}

// used reports which categories appear in the chart.
func (c *chart) used() []bool {
	used := make([]bool, c.colours.categories())
	for i := range c.rows {
		for _, lane := range c.rows[i].lanes {
			for _, p := range lane {
				used[p.category] = true
			}
		}
		for _, p := range slices.Concat(append(c.rows[i].clocks, c.rows[i].path)...) {
			used[p.category] = true
		}
	}
	return used
}
