package plots

import (
	"errors"
	"image/color"
	"time"

	"dahl/schedule"
	"dahl/schedule/explain"
)

// View has the contents of a run's figures for another viewer: the same rows, colours, causes and
// curves.
type View struct {
	Title, Summary string
	End            time.Duration // of the shown time
	StepEnds       []time.Duration
	Steady         StepRange // two steady steps, or all of few
	Rows           []ViewRow
	ColourBy       ColourBy
	Categories     []Category

	Spans, Transfers []Mark // of each in the schedule
	Rests            []Rest // what workers and links did between
	Path             []explain.PathStep

	Power    *PowerCurves // nil means that the run has no power over time
	Memories []MemoryCurve
	Clocks   []ClockCurve

	colours *colouring
}

// ViewRow is a row of the Gantt chart.
type ViewRow struct {
	Node  string // of a cluster, whose name is not in the label; empty: none
	Head  string // above it: the node that begins here, and what it did
	Label string
	Lanes int
	Alone bool // it is not one of the units of a device that has several
	// Coarse is the row in equal columns from 0 to the end, from few to many, where it has more
	// pieces than these can show.
	Coarse []Columns
}

// Columns is a row painted on a number of columns. The runs follow each other.
type Columns struct {
	Number int
	Runs   []ColumnRun
}

// ColumnRun is neighbouring columns of one category, from First up to End.
type ColumnRun struct{ First, End, Category int }

// Category is the meaning of a colour.
type Category struct {
	Kind   CategoryKind
	Name   string
	Colour color.RGBA
	Dark   color.RGBA // the same on dark paper
}

// CategoryKind tells the groups of categories apart.
type CategoryKind string

// The kinds of categories.
const (
	TaskCategory     CategoryKind = "task"
	TransferCategory CategoryKind = "transfer"
	IdleCategory     CategoryKind = "idle"
	StateCategory    CategoryKind = "state"
	MarkCategory     CategoryKind = "mark" // the critical path, and another clock
)

// Mark is where something is drawn, and as what.
type Mark struct {
	Row, Lane, Category int
	Clock               string // of a task at another clock than the first
}

// Rest is a stretch in which nothing ran.
type Rest struct {
	Mark
	From, To time.Duration
	Text     string // the state, where it is one
}

// PowerCurves is power by layer, from the bottom up, and the energy of all. Watts hold between
// neighbouring times, of which there is one more.
type PowerCurves struct {
	Times   []time.Duration
	Names   []string
	Watts   [][]float64 // by layer, without those below
	Joules  []float64   // up to each of the times
	Grounds string
	Mean    bool // the watts are means, since they change more often
}

// MemoryCurve is the bytes live in a memory between neighbouring times, of which there is one more.
type MemoryCurve struct {
	Name                     string
	Times                    []time.Duration
	Bytes                    []float64
	Peak, Reserved, Capacity int64
	Highest                  bool // the bytes are the highest of each interval, since they change more often
}

// ClockCurve is the speed of a device, or of a unit with a clock of its own, relative to its first clock, from each of
// the times on.
type ClockCurve struct {
	Name   string
	Times  []time.Duration
	Scales []float64
}

// How fine a view is: the points of a curve, and the columns of a row as long as it has some pieces
// for each.
const (
	viewPoints    = 6000
	coarseColumns = 2000
	coarserBy     = 4
	mostColumns   = 32_000 // a browser has no wider picture
	piecesPerRun  = 2
)

// NewView arranges a run. It has the colours of another view of the same graph; nil means its own.
func NewView(r *Run, like *View) (*View, error) {
	if err := r.check("report"); err != nil {
		return nil, err
	}
	var colours *colouring
	if like != nil {
		colours = like.colours
	} else {
		colours = newColouring(r)
	}
	c := newChart(r, colours)
	v := &View{colours: colours, Title: r.title(), Summary: r.summary(), End: c.end, StepEnds: c.stepEnds, Steady: r.steady(), ColourBy: c.colours.by,
		Path: explain.CriticalPath(r.Problem, r.Schedule), Memories: r.memoryCurves(), Clocks: r.clocks()}
	v.addRows(c)
	v.addCategories(c.colours)
	v.addMarks(c)
	v.addRests(c)
	switch err := r.checkPower(); {
	case err == nil:
		v.Power = r.powerCurves()
	case !errors.Is(err, ErrNoData):
		return nil, err
	}
	return v, nil
}

func (v *View) addRows(c *chart) {
	oneOfSeveral := make([]bool, len(c.rows))
	for w, at := range c.rowOfWorker {
		if at < 0 {
			continue
		}
		p := c.run.Problem.Platform
		oneOfSeveral[at] = c.nodesInRow == 0 && p.Devices[p.Workers[w].Device].Count > 1
	}
	for i := range c.rows {
		row, pieces := ViewRow{Head: c.rows[i].head, Label: c.rows[i].label, Lanes: len(c.rows[i].lanes), Alone: !oneOfSeveral[i]}, piecesOf(c.rows[i].lanes)
		if node := int(c.rows[i].node); node < len(c.run.Problem.Platform.Nodes) && c.nodesInRow == 0 {
			row.Node = c.run.Problem.Platform.Nodes[node].Name
		}
		for n := coarseColumns; n <= mostColumns && pieces > piecesPerRun*n; n *= coarserBy {
			row.Coarse = append(row.Coarse, Columns{n, diffuse(c.rows[i].lanes, c.end, n, c.colours.categories())})
		}
		v.Rows = append(v.Rows, row)
	}
}

func (v *View) addCategories(c *colouring) {
	for i, fill := range c.fills {
		x := Category{Kind: TaskCategory, Colour: fill, Dark: c.dark(i)}
		switch {
		case i < len(c.names):
			x.Name = c.names[i]
		case i == c.transfer():
			x.Kind, x.Name = TransferCategory, "transfer"
		case i == c.room():
			x.Kind, x.Name = TransferCategory, "transfer for lack of memory"
		case i >= c.state(0):
			x.Kind, x.Name = StateCategory, states[i-c.state(0)].name
		case i >= c.idle(0):
			x.Kind, x.Name = IdleCategory, idleNames[i-c.idle(0)]
		case i == c.path():
			x.Kind, x.Name = MarkCategory, "critical path"
		default:
			x.Kind, x.Name = MarkCategory, "at another clock than the first"
		}
		v.Categories = append(v.Categories, x)
	}
}

func (v *View) addMarks(c *chart) {
	s := c.run.Schedule
	for i := range s.Spans {
		x := &s.Spans[i]
		v.Spans = append(v.Spans, Mark{c.rowOfWorker[x.Worker], c.firstLane[x.Worker] + c.lane[i], c.colours.ofTask[x.Task], c.run.otherClock(x)})
	}
	v.Transfers = make([]Mark, len(s.Transfers))
	for i, k := range c.transferOrder {
		t := &s.Transfers[k]
		v.Transfers[k] = Mark{Row: c.rowOfTransfer(t), Lane: c.transferLane[i], Category: c.colours.ofTransfer(t)}
	}
}

// rowOfTransfer is where a transfer is drawn.
func (c *chart) rowOfTransfer(t *schedule.Transfer) int {
	if at, ok := c.rowOfRoute[route{t.From, t.To}]; ok {
		return at
	}
	if c.nodesInRow > 0 {
		return c.rowOfRoute[route{anyMemory, c.firstInRow(t.To)}]
	}
	return c.rowOfRoute[route{anyMemory, t.To}]
}

func (v *View) addRests(c *chart) {
	workers, links := c.run.rests(c.colours)
	for _, x := range workers {
		if c.rowOfWorker[x.of] < 0 {
			continue
		}
		v.Rests = append(v.Rests, Rest{Mark{Row: c.rowOfWorker[x.of], Lane: c.firstLane[x.of], Category: x.category}, x.from, x.to, x.text})
	}
	for _, x := range links {
		v.Rests = append(v.Rests, Rest{Mark{Row: c.rowOfLink[x.of], Category: x.category}, x.from, x.to, x.text})
	}
}

func (r *Run) powerCurves() *PowerCurves {
	s := newStack(r.Power, r.Schedule.Makespan, viewPoints)
	if len(s.names) == 0 {
		return nil
	}
	p := &PowerCurves{Times: s.times, Names: s.names, Joules: s.sums[len(s.sums)-1], Grounds: r.Grounds, Mean: len(s.times) == viewPoints+1}
	for i, watts := range s.watts {
		own := make([]float64, len(watts))
		for k := range watts {
			own[k] = watts[k]
			if i > 0 {
				own[k] = max(0, watts[k]-s.watts[i-1][k])
			}
		}
		p.Watts = append(p.Watts, own)
	}
	return p
}

func (r *Run) memoryCurves() (all []MemoryCurve) {
	for _, p := range memoryPanels(r) {
		m := MemoryCurve{Name: p.memory.Name, Peak: p.peak, Reserved: p.reserved, Capacity: p.memory.CapacityBytes}
		m.Times, m.Bytes = envelope(p.at, p.bytes, max(r.Schedule.Makespan, 1), viewPoints)
		m.Highest = len(m.Bytes) == viewPoints
		all = append(all, m)
	}
	return all
}
