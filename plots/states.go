package plots

import (
	"slices"
	"time"

	"dahl/platform"
	"dahl/plots/paper"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// stateKind is a state of a unit or a link, or a change of state, in which it neither works nor
// waits.
type stateKind int

const (
	switching stateKind = stateKind(schedule.SwitchClock)
	entering  stateKind = stateKind(schedule.FallAsleep)
	leaving   stateKind = stateKind(schedule.WakeUp)
	asleep    stateKind = 3
	numStates           = 4
)

// states say how each is drawn. Sleep has one tint, and the ways into it and out are hatched.
var states = [numStates]struct {
	name  string
	tint  tint
	hatch paper.Hatch
}{
	switching: {"changes its clock", changeTint, paper.Upright},
	entering:  {"falls asleep", sleepTint, paper.Falling},
	leaving:   {"wakes up", sleepTint, paper.Rising},
	asleep:    {"asleep", sleepTint, paper.Plain},
}

// kindOf is the kind of a stretch.
func kindOf(x *explain.Stretch) stateKind {
	if x.Asleep {
		return asleep
	}
	return stateKind(x.Change.Kind)
}

// rest is time in which a worker, or a link, worked on nothing.
type rest struct {
	of       int // worker or link
	from, to time.Duration
	category int
	text     string // the clock or the sleep state that follows
}

// rests lists what workers did when they ran nothing: stretches of other states, and the causes of
// the idle time between these. Of links it has only the former.
func (r *Run) rests(c *colouring) (workers, links []rest) {
	p := r.Problem.Platform
	units, wires := explain.Stretches(r.Problem, r.Schedule)
	for _, idle := range explain.Idles(r.Problem, r.Schedule) {
		for from, to := range explain.Without(idle.Start, idle.End, units[idle.Worker]) {
			workers = append(workers, rest{int(idle.Worker), from, to, c.idle(idle.Cause), ""})
		}
	}
	add := func(to *[]rest, lists [][]explain.Stretch) {
		for i, list := range lists {
			for k := range list {
				x := &list[k]
				*to = append(*to, rest{i, x.Start, x.End, c.state(kindOf(x)), x.Change.StateName(p)})
			}
		}
	}
	add(&workers, units)
	add(&links, wires)
	return workers, links
}

// addRests fills the rows of the workers, and makes one for each link that sleeps.
func (c *chart) addRests() {
	workers, links := c.run.rests(c.colours)
	for _, x := range workers {
		if c.rowOfWorker[x.of] < 0 {
			continue
		}
		l := &c.rows[c.rowOfWorker[x.of]].lanes[c.firstLane[x.of]]
		*l = append(*l, piece{x.from, x.to, x.category, x.text})
	}
	c.rowOfLink = map[int]int{}
	for _, link := range c.run.changedLinks() {
		c.rowOfLink[link] = len(c.rows)
		c.rows = append(c.rows, row{label: c.run.Problem.Platform.Links[link].Name, node: c.noNode(), lanes: make([][]piece, 1)})
	}
	for _, x := range links {
		l := &c.rows[c.rowOfLink[x.of]].lanes[0]
		*l = append(*l, piece{x.from, x.to, x.category, x.text})
	}
}

// changedLinks lists the links that change their state.
func (r *Run) changedLinks() (links []int) {
	for i := range r.Schedule.Changes {
		if link := int(r.Schedule.Changes[i].Link); link >= 0 && !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	slices.Sort(links)
	return links
}

// clocks lists those that change or are not the first, in the order of the platform.
func (r *Run) clocks() (all []ClockCurve) {
	p := r.Problem.Platform
	for d := range p.Devices {
		device := &p.Devices[d]
		units := 1 // that tell the clock
		if slices.ContainsFunc(r.Schedule.Changes, func(x schedule.Change) bool { return int(x.Device) == d && x.Unit >= 0 }) {
			units = device.Count
		}
		for u := range units {
			c := ClockCurve{device.Name, []time.Duration{0}, []float64{device.ClockInForce().Scale}}
			for i := range r.Schedule.Changes {
				if x := &r.Schedule.Changes[i]; x.Kind == schedule.SwitchClock && x.Covers(platform.DeviceID(d), u) {
					c.Name = x.Of(p)
					c.Times, c.Scales = append(c.Times, x.End), append(c.Scales, device.ClockAt(platform.ClockID(x.To)).Scale)
				}
			}
			if len(c.Times) > 1 || u == 0 && device.AtClock > 0 {
				all = append(all, c)
			}
		}
	}
	return all
}

// clockName names the clock of a span, where its device has several.
func (r *Run) clockName(span *schedule.Span) string {
	device := r.Problem.Platform.Workers[span.Worker].Device
	clock, _ := r.Problem.StatesOf(span.Task, device)
	return r.Problem.Platform.Devices[device].ClockAt(clock).Name
}

// otherClock names the clock of a span that ran at another one than the first of its device.
func (r *Run) otherClock(span *schedule.Span) string {
	if clock, _ := r.Problem.StatesOf(span.Task, r.Problem.Platform.Workers[span.Worker].Device); clock == 0 {
		return ""
	}
	return r.clockName(span)
}

// markClock marks a task in a lane of a worker.
func (c *chart) markClock(w platform.WorkerID, lane int, p piece) {
	r := &c.rows[c.rowOfWorker[w]]
	if r.clocks == nil {
		r.clocks = make([][]piece, len(r.lanes))
	}
	l := &r.clocks[c.firstLane[w]+lane]
	*l = append(*l, piece{p.from, p.to, c.colours.clock(), ""})
}

// changed reports whether anything changes its state.
func (r *Run) changed() bool {
	return len(r.Schedule.Changes) > 0 || slices.ContainsFunc(r.Schedule.Spans, func(s schedule.Span) bool { return r.otherClock(&s) != "" })
}
