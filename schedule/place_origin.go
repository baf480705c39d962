package schedule

import (
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Interval is when something started and ended.
type Interval struct{ Start, End time.Duration }

// ToOrigin turns a schedule of the placed graph, whose workers are lanes, into one of
// the origin: spans of tasks and of workers, and a transfer for every copy. p is the
// origin's problem. entered is when each move of Enter was made.
func (pg *PlacedGraph) ToOrigin(p *Problem, s *Schedule, entered []Interval) (*Schedule, error) {
	out := *s
	out.GraphHash, out.Spans, out.Transfers = p.Graph.Hash(), nil, nil
	for i, m := range pg.Enter {
		if !m.Anywhere {
			out.Transfers = append(out.Transfers, m.Transfer(0, entered[i]))
		}
	}
	for _, span := range s.Spans {
		m := pg.Moves[span.Task]
		if m == nil {
			span.Task = pg.TaskOf[span.Task]
			out.Spans = append(out.Spans, span)
			continue
		}
		if !m.Anywhere {
			out.Transfers = append(out.Transfers, m.Transfer(m.StepOf(span.Step, s.Steps), Interval{span.Start, span.End}))
		}
	}
	if err := out.Complete(p); err != nil || !pg.reloads() && out.fits(p.Platform) {
		return &out, err
	}
	out.Evictions = pg.evictions(p, s)
	return &out, out.Complete(p)
}

// reloads reports whether something comes back that a memory had dropped.
func (pg *PlacedGraph) reloads() bool {
	return slices.ContainsFunc(pg.Moves, func(m *Move) bool { return m != nil && m.Reason == ReasonReload })
}

// fits reports whether no memory holds more than it can, taking what is valid there to be
// there as long as the storage needs it anywhere.
func (s *Schedule) fits(p *platform.Platform) bool {
	for m, peak := range s.PeakBytes {
		if limit := p.Memories[m].CapacityBytes; limit > 0 && peak > limit {
			return false
		}
	}
	return true
}

// StepOf is the step of the task for which a move is made in a step of a run: that one or
// the next. In the last step too it is made for the next, which there is not; that counts
// as of the last.
func (m *Move) StepOf(made int32, steps int) int32 {
	if m.NextStep {
		return min(made+1, int32(steps-1))
	}
	return made
}

// Transfer is the record of the move, made for a step at some time.
func (m *Move) Transfer(step int32, when Interval) Transfer {
	return Transfer{Buffer: m.Buffer, Atoms: m.Atoms, Bytes: m.Bytes, From: m.From, To: m.To, For: m.For,
		Step: step, Reason: m.Reason, Start: when.Start, End: when.End}
}

// LaneProblem is the problem of replaying the placed graph: one memory, in which all is
// valid, and the lanes as workers. A copy can run on the engines that reach it and takes
// no time; whoever replays it knows better. p is the origin's problem.
func (placed *Placed) LaneProblem(graph int, p *Problem) *Problem {
	pg := placed.Graphs[graph]
	q := &Problem{Graph: pg.Graph, Platform: placed.lanePlatform(), Steps: p.Steps, Costs: pg.laneCosts(placed, p.Costs)}
	at := pg.placedAs()
	for _, e := range p.Reuse {
		q.Reuse = append(q.Reuse, Edge{at[e.From], at[e.To]})
	}
	for _, e := range p.ReuseNext {
		q.ReuseNext = append(q.ReuseNext, Edge{at[e.From], at[e.To]})
	}
	q.Reuse, q.ReuseNext = tidy(append(q.Reuse, pg.Reuse...)), tidy(append(q.ReuseNext, pg.ReuseNext...))
	return q
}

// placedAs finds the tasks of the origin.
func (pg *PlacedGraph) placedAs() []dag.TaskID {
	at := make([]dag.TaskID, len(pg.Origin.Tasks))
	for t, origin := range pg.TaskOf {
		if origin >= 0 {
			at[origin] = dag.TaskID(t)
		}
	}
	return at
}

// lanePlatform has one memory, called as the host's, and, after the devices of the platform, one device for
// each copy engine.
func (placed *Placed) lanePlatform() *platform.Platform {
	host := placed.Platform.Memories[placed.Platform.HostMemory()].Name
	p := &platform.Platform{Name: placed.Platform.Name, Memories: []platform.Memory{{Name: host}},
		Devices: slices.Clone(placed.Platform.Devices), Workers: slices.Clone(placed.Platform.Workers)}
	for d := range p.Devices {
		p.Devices[d].Memory = 0
	}
	for _, lane := range placed.Lanes[len(p.Workers):] {
		p.Workers = append(p.Workers, platform.Worker{Name: lane.Name, Device: platform.DeviceID(len(p.Devices))})
		p.Devices = append(p.Devices, platform.Device{Name: lane.Name, Kind: "copy engine", Count: 1})
	}
	return p
}

// laneCosts are the origin's costs on its devices, and nothing for copies on the engines
// that can do them.
func (pg *PlacedGraph) laneCosts(placed *Placed, costs *Costs) *Costs {
	devices := len(placed.Platform.Devices)
	lanes := placed.Lanes[len(placed.Platform.Workers):]
	c := &Costs{Class: make([]int32, len(pg.Graph.Tasks))}
	for _, row := range costs.ByClass {
		c.ByClass = append(c.ByClass, slices.Concat(row, slices.Repeat([]Cost{{Duration: -1}}, len(lanes))))
	}
	classes := map[engineGroup]int32{}
	for t, m := range pg.Moves {
		if m == nil {
			c.Class[t] = costs.Class[pg.TaskOf[t]]
			continue
		}
		group := groupOf(placed.Platform, m)
		if _, known := classes[group]; !known {
			classes[group] = int32(len(c.ByClass))
			row := slices.Repeat([]Cost{{Duration: -1}}, devices+len(lanes))
			for l, lane := range lanes {
				if group == (engineGroup{lane.Memory, lane.In}) {
					row[devices+l].Duration = 0
				}
			}
			c.ByClass = append(c.ByClass, row)
		}
		c.Class[t] = classes[group]
	}
	return c
}
