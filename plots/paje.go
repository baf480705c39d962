package plots

import (
	"bufio"
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"dahl/platform"
	"dahl/schedule/explain"
	"dahl/schedule/place"
)

// Paje writes a run in the Pajé trace format (Schnorr, "Paje Trace File", version 1.2.5, 2014),
// which ViTE opens. The machine, its devices, workers and memories are containers. Each task is a
// state, valued and coloured by layer or phase; each idle gap is a state, valued by its cause.
// Each transfer between memories is a link with a unique key. Live bytes and power are variables.
// Events are in the order of time.
//
// Where clocks or sleep change, these changes and sleep are states too, also of links. States have
// the clock of their task, and clocks are variables: the speed relative to the device's first clock.
//
// Times are seconds with nine decimals. Tasks that overlap on one worker (streams) get containers
// of their own.
func Paje(w io.Writer, r *Run) error {
	if err := r.check("Paje trace"); err != nil {
		return err
	}
	t := pajeTrace{run: r, out: bufio.NewWriter(w), colours: newColouring(r), changed: r.changed()}
	t.writeHeader()
	t.writeTypes()
	t.writeContainers()
	t.collect()
	slices.SortStableFunc(t.events, func(a, b pajeEvent) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	for _, e := range t.events {
		t.printf("%s", t.line(e))
	}
	t.destroyContainers()
	if err := t.out.Flush(); err != nil { // the first error of all writes
		return fmt.Errorf("Paje trace: %w", err)
	}
	return nil
}

// The event kinds, as numbered in the header.
const (
	pajeDefineContainerType = iota
	pajeDefineStateType
	pajeDefineVariableType
	pajeDefineLinkType
	pajeDefineEntityValue
	pajeCreateContainer
	pajeDestroyContainer
	pajeSetState
	pajeSetVariable
	pajeStartLink
	pajeEndLink
)

// pajeFields are the fields of each kind, all of them strings unless a type follows.
var pajeFields = [...]string{
	pajeDefineContainerType: "DefineContainerType Alias Type Name",
	pajeDefineStateType:     "DefineStateType Alias Type Name",
	pajeDefineVariableType:  "DefineVariableType Alias Type Name Color:color",
	pajeDefineLinkType:      "DefineLinkType Alias Type StartContainerType EndContainerType Name",
	pajeDefineEntityValue:   "DefineEntityValue Alias Type Name Color:color",
	pajeCreateContainer:     "CreateContainer Time:date Alias Type Container Name",
	pajeDestroyContainer:    "DestroyContainer Time:date Type Name",
	pajeSetState:            "SetState Time:date Type Container Value Task Step:int",
	pajeSetVariable:         "SetVariable Time:date Type Container Value:double",
	pajeStartLink:           "StartLink Time:date Type Container StartContainer Value Key",
	pajeEndLink:             "EndLink Time:date Type Container EndContainer Value Key",
}

func (t *pajeTrace) writeHeader() {
	for kind, fields := range pajeFields {
		words := strings.Fields(fields)
		t.printf("%%EventDef Paje%s %d\n", words[0], kind)
		for _, field := range words[1:] {
			name, fieldType, _ := strings.Cut(field, ":")
			t.printf("%% %s %s\n", name, cmp.Or(fieldType, "string"))
		}
		if kind == pajeSetState && t.changed {
			t.printf("%% Clock string\n")
		}
		t.printf("%%EndEventDef\n")
	}
}

// pajeEvent is one line below the header. It keeps indices rather than text, so
// that a million of them fit in memory while they are sorted.
type pajeEvent struct {
	at    time.Duration
	order uint8 // at equal times: ends of links, then states, variables, starts of links
	kind  uint8
	where int32 // container: a lane, memory, power trace or clock
	index int32 // span, rest (-1 - index), transfer, kind of variable
	value float64
}

// pajeTrace is the state of one writing.
type pajeTrace struct {
	run     *Run
	out     *bufio.Writer
	colours *colouring

	changed   bool // anything changes its state
	events    []pajeEvent
	rests     []rest                    // of workers, then of links
	clocks    []clock                   // that change
	firstLane []int32                   // by worker: its first lane container
	streams   map[platform.WorkerID]int // how many lanes it has
	lane      []int                     // by span, from the first of its worker
	lanes     []string                  // of workers, then the links that sleep
	links     map[int]int32             // the lanes of these
	created   [][2]string               // containers: kind, alias
}

func (t *pajeTrace) printf(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

// quoted writes a string field. The format has no escapes, so quotes and line
// ends become others.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`"`, "'", "\n", " ", "\r", " ").Replace(s) + `"`
}

func pajeColour(c color.RGBA) string {
	return fmt.Sprintf(`"%.3f %.3f %.3f"`, float64(c.R)/255, float64(c.G)/255, float64(c.B)/255)
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
}

// writeTypes declares the hierarchy machine > device > worker, machine > memory,
// machine > power, and the values of states and links.
func (t *pajeTrace) writeTypes() {
	t.printf("%d CM 0 \"Machine\"\n", pajeDefineContainerType)
	t.printf("%d CD CM \"Device\"\n", pajeDefineContainerType)
	t.printf("%d CW CD \"Worker\"\n", pajeDefineContainerType)
	t.printf("%d CR CM \"Memory\"\n", pajeDefineContainerType)
	t.printf("%d CP CM \"Power\"\n", pajeDefineContainerType)
	t.printf("%d ST CW \"Task\"\n", pajeDefineStateType)
	t.printf("%d VB CR \"Live bytes\" %s\n", pajeDefineVariableType, pajeColour(palette[0]))
	t.printf("%d VW CP \"Watts\" %s\n", pajeDefineVariableType, pajeColour(palette[1]))
	t.printf("%d LT CM CR CR \"Transfer\"\n", pajeDefineLinkType)
	for i, name := range t.colours.names {
		t.printf("%d V%d ST %s %s\n", pajeDefineEntityValue, i, quoted(name), pajeColour(t.colours.fills[i]))
	}
	for cause := range explain.NumIdleCauses {
		if cause == explain.WaitChange && !t.changed {
			continue
		}
		t.printf("%d I%d ST %s %s\n", pajeDefineEntityValue, cause, quoted("idle: "+cause.String()), pajeColour(t.colours.fills[t.colours.idle(cause)]))
	}
	t.printf("%d U ST \"empty stream\" %s\n", pajeDefineEntityValue, pajeColour(t.colours.fills[t.colours.idle(explain.NoWork)]))
	t.printf("%d X LT \"transfer\" %s\n", pajeDefineEntityValue, pajeColour(moveGrey))
	t.printf("%d XE LT \"evict\" %s\n", pajeDefineEntityValue, pajeColour(roomBrown))
	if !t.changed {
		return
	}
	t.printf("%d CL CM \"Link\"\n", pajeDefineContainerType)
	t.printf("%d SL CL \"State\"\n", pajeDefineStateType)
	t.printf("%d CC CM \"Clock\"\n", pajeDefineContainerType)
	t.printf("%d VC CC \"Relative speed\" %s\n", pajeDefineVariableType, pajeColour(palette[2]))
	for kind, state := range states {
		for _, of := range []string{"ST", "SL"} {
			t.printf("%d %s%d %s %s %s\n", pajeDefineEntityValue, of, kind, of, quoted(state.name), pajeColour(state.tint.light))
		}
	}
	t.printf("%d A SL \"awake\" %s\n", pajeDefineEntityValue, pajeColour(t.colours.fills[t.colours.idle(explain.NoWork)]))
}

func (t *pajeTrace) writeContainers() {
	p := t.run.Problem.Platform
	create := func(alias, kind, parent, name string) {
		t.printf("%d %s %s %s %s %s\n", pajeCreateContainer, seconds(0), alias, kind, parent, quoted(name))
		t.created = append(t.created, [2]string{kind, alias})
	}
	create("machine", "CM", "0", cmp.Or(p.Name, "machine"))
	for d := range p.Devices {
		create(fmt.Sprintf("d%d", d), "CD", "machine", p.Devices[d].Name)
	}
	t.lane, t.streams = spanLanes(t.run.Schedule)
	t.firstLane = make([]int32, len(p.Workers))
	for w := range p.Workers {
		t.firstLane[w] = int32(len(t.lanes))
		for l := range max(1, t.streams[platform.WorkerID(w)]) {
			alias := fmt.Sprintf("w%d", len(t.lanes))
			create(alias, "CW", fmt.Sprintf("d%d", p.Workers[w].Device), laneName(p.Workers[w].Name, l))
			t.lanes = append(t.lanes, alias)
		}
	}
	for m := range p.Memories {
		create(fmt.Sprintf("m%d", m), "CR", "machine", p.Memories[m].Name)
	}
	for i, trace := range t.run.Power {
		create(fmt.Sprintf("p%d", i), "CP", "machine", trace.Name)
	}
	t.links = map[int]int32{}
	for _, link := range t.run.changedLinks() {
		alias := fmt.Sprintf("l%d", link)
		create(alias, "CL", "machine", p.Links[link].Name)
		t.links[link] = int32(len(t.lanes))
		t.lanes = append(t.lanes, alias)
	}
	t.clocks = t.run.clocks()
	for i := range t.clocks {
		create(fmt.Sprintf("c%d", i), "CC", "machine", t.clocks[i].name)
	}
}

// The indices of states that are neither a span nor a rest: of a stream, and of a link.
const (
	emptyStream = math.MinInt32 + iota
	awakeLink
)

// Kinds of variables.
const (
	liveBytes int32 = iota
	watts
	clockScale
)

// Orders of events at one time.
const (
	orderEnd uint8 = iota
	orderState
	orderVariable
	orderStart
)

// collect gathers the events. A state lasts until the next one of its container: spans and rests
// tile a worker's time. Where tasks overlap, gaps do not tile the time of a stream, so the
// state of an empty stream follows each task.
func (t *pajeTrace) collect() {
	s := t.run.Schedule
	workers, links := t.run.rests(t.colours)
	t.rests = slices.Concat(workers, links)
	for i := range t.rests {
		x := &t.rests[i]
		lane := int32(0)
		if i < len(workers) {
			lane = t.firstLane[x.of]
		} else {
			lane = t.links[x.of]
			t.events = append(t.events, pajeEvent{at: x.to, order: orderEnd, kind: pajeSetState, where: lane, index: awakeLink})
		}
		t.events = append(t.events, pajeEvent{at: x.from, order: orderState, kind: pajeSetState, where: lane, index: -1 - int32(i)})
	}
	for i := range len(t.links) {
		t.events = append(t.events, pajeEvent{order: orderEnd, kind: pajeSetState, where: int32(len(t.lanes) - 1 - i), index: awakeLink})
	}
	for i, c := range t.clocks {
		for _, step := range c.steps {
			t.events = append(t.events, pajeEvent{at: step.at, order: orderVariable, kind: pajeSetVariable, where: int32(i), index: clockScale, value: step.scale})
		}
	}
	for i := range s.Spans {
		lane := t.firstLane[s.Spans[i].Worker] + int32(t.lane[i])
		if t.streams[s.Spans[i].Worker] > 1 {
			t.events = append(t.events, pajeEvent{at: s.Spans[i].End, order: orderEnd, kind: pajeSetState, where: lane, index: emptyStream})
		}
		t.events = append(t.events, pajeEvent{at: s.Spans[i].Start, order: orderState, kind: pajeSetState, where: lane, index: int32(i)})
	}
	for i := range s.Transfers {
		x := &s.Transfers[i]
		t.events = append(t.events,
			pajeEvent{at: x.Start, order: orderStart, kind: pajeStartLink, where: int32(x.From), index: int32(i)},
			pajeEvent{at: x.End, order: orderEnd, kind: pajeEndLink, where: int32(x.To), index: int32(i)})
	}
	for _, o := range s.Memory {
		t.events = append(t.events, pajeEvent{at: o.At, order: orderVariable, kind: pajeSetVariable, where: int32(o.Memory), index: liveBytes, value: float64(o.Bytes)})
	}
	for i, trace := range t.run.Power {
		for _, step := range trace.Samples {
			t.events = append(t.events, pajeEvent{at: step.At, order: orderVariable, kind: pajeSetVariable, where: int32(i), index: watts, value: step.Watts})
		}
	}
}

// line writes one event.
func (t *pajeTrace) line(e pajeEvent) string {
	at := seconds(e.at)
	switch e.kind {
	case pajeSetState:
		return fmt.Sprintf("%d %s %s\n", e.kind, at, t.state(e))
	case pajeSetVariable:
		switch e.index {
		case liveBytes:
			return fmt.Sprintf("%d %s VB m%d %.0f\n", e.kind, at, e.where, e.value)
		case watts:
			return fmt.Sprintf("%d %s VW p%d %.9g\n", e.kind, at, e.where, e.value)
		}
		return fmt.Sprintf("%d %s VC c%d %.9g\n", e.kind, at, e.where, e.value)
	}
	value := "X"
	if t.run.Schedule.Transfers[e.index].Reason == place.ReasonEvict {
		value = "XE"
	}
	return fmt.Sprintf("%d %s LT machine m%d %s t%d\n", e.kind, at, e.where, value, e.index)
}

// state writes the fields of a state after its time.
func (t *pajeTrace) state(e pajeEvent) string {
	of, value, text, step, clock := "ST", "", "idle", int32(0), ""
	switch {
	case e.index == emptyStream:
		value = "U"
	case e.index == awakeLink:
		of, value, text = "SL", "A", "awake"
	case e.index >= 0:
		s := &t.run.Schedule.Spans[e.index]
		value, text, step = fmt.Sprintf("V%d", t.colours.ofTask[s.Task]), t.run.Problem.Graph.Tasks[s.Task].Name, s.Step
		clock = t.run.clockName(s)
	default:
		x := &t.rests[-1-e.index]
		if kind := x.category - t.colours.state(0); kind < 0 {
			value = fmt.Sprintf("I%d", x.category-t.colours.idle(0))
		} else {
			if int(e.where) >= len(t.lanes)-len(t.links) {
				of = "SL"
			}
			value, text = fmt.Sprintf("%s%d", of, kind), x.text
		}
	}
	if t.changed {
		return fmt.Sprintf("%s %s %s %s %d %s", of, t.lanes[e.where], value, quoted(text), step, quoted(clock))
	}
	return fmt.Sprintf("%s %s %s %s %d", of, t.lanes[e.where], value, quoted(text), step)
}

// destroyContainers closes the containers, children first.
func (t *pajeTrace) destroyContainers() {
	end := t.run.Schedule.Makespan
	for _, e := range t.events {
		end = max(end, e.at)
	}
	for _, c := range slices.Backward(t.created) {
		t.printf("%d %s %s %s\n", pajeDestroyContainer, seconds(end), c[0], c[1])
	}
}
