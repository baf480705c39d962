package plots

import (
	"bufio"
	"cmp"
	"fmt"
	"image/color"
	"io"
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
		t.printf("%s", e.line)
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

// pajeEvent is one line below the header.
type pajeEvent struct {
	at    time.Duration
	order pajeOrder
	line  string
}

// pajeOrder is the order of events at one time.
type pajeOrder uint8

const (
	orderEnd pajeOrder = iota
	orderState
	orderVariable
	orderStart
)

// pajeTrace is the state of one writing.
type pajeTrace struct {
	run     *Run
	out     *bufio.Writer
	colours *colouring

	changed   bool // anything changes its state
	events    []pajeEvent
	clocks    []ClockCurve              // that change
	firstLane []int                     // by worker: its first lane container
	streams   map[platform.WorkerID]int // how many lanes it has
	lane      []int                     // by span, from the first of its worker
	lanes     []string                  // of workers
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
	t.firstLane = make([]int, len(p.Workers))
	for w := range p.Workers {
		t.firstLane[w] = len(t.lanes)
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
	for _, link := range t.run.changedLinks() {
		create(fmt.Sprintf("l%d", link), "CL", "machine", p.Links[link].Name)
	}
	t.clocks = t.run.clocks()
	for i := range t.clocks {
		create(fmt.Sprintf("c%d", i), "CC", "machine", t.clocks[i].Name)
	}
}

// event adds a line, which begins with its kind and its time.
func (t *pajeTrace) event(at time.Duration, order pajeOrder, kind int, format string, args ...any) {
	t.events = append(t.events, pajeEvent{at, order, fmt.Sprintf("%d %s ", kind, seconds(at)) + fmt.Sprintf(format, args...) + "\n"})
}

// pajeState is the state of a worker ("ST") or a link ("SL") from a time on.
type pajeState struct {
	of, where, value, text string
	step                   int32
	clock                  string
}

func (t *pajeTrace) state(at time.Duration, order pajeOrder, s pajeState) {
	clock := ""
	if t.changed {
		clock = " " + quoted(s.clock)
	}
	t.event(at, order, pajeSetState, "%s %s %s %s %d%s", s.of, s.where, s.value, quoted(s.text), s.step, clock)
}

// collect gathers the events. A state lasts until the next one of its container: spans and rests
// tile a worker's time. Where tasks overlap, gaps do not tile the time of a stream, so the
// state of an empty stream follows each task.
func (t *pajeTrace) collect() {
	s := t.run.Schedule
	workers, links := t.run.rests(t.colours)
	for i := range workers {
		t.rest(&workers[i], "ST", t.lanes[t.firstLane[workers[i].of]])
	}
	awake := func(at time.Duration, link int) {
		t.state(at, orderEnd, pajeState{of: "SL", where: fmt.Sprintf("l%d", link), value: "A", text: "awake"})
	}
	for i := range links {
		awake(links[i].to, links[i].of)
		t.rest(&links[i], "SL", fmt.Sprintf("l%d", links[i].of))
	}
	for _, link := range slices.Backward(t.run.changedLinks()) {
		awake(0, link)
	}
	for i, c := range t.clocks {
		for k, at := range c.Times {
			t.event(at, orderVariable, pajeSetVariable, "VC c%d %.9g", i, c.Scales[k])
		}
	}
	for i := range s.Spans {
		x := &s.Spans[i]
		lane := t.lanes[t.firstLane[x.Worker]+t.lane[i]]
		if t.streams[x.Worker] > 1 {
			t.state(x.End, orderEnd, pajeState{of: "ST", where: lane, value: "U", text: "idle"})
		}
		t.state(x.Start, orderState, pajeState{"ST", lane, fmt.Sprintf("V%d", t.colours.ofTask[x.Task]), t.run.Problem.Graph.Tasks[x.Task].Name, x.Step, t.run.clockName(x)})
	}
	for i := range s.Transfers {
		x := &s.Transfers[i]
		value := "X"
		if x.Reason == place.ReasonEvict {
			value = "XE"
		}
		t.event(x.Start, orderStart, pajeStartLink, "LT machine m%d %s t%d", x.From, value, i)
		t.event(x.End, orderEnd, pajeEndLink, "LT machine m%d %s t%d", x.To, value, i)
	}
	for _, o := range s.Memory {
		t.event(o.At, orderVariable, pajeSetVariable, "VB m%d %d", o.Memory, o.Bytes)
	}
	for i, trace := range t.run.Power {
		for _, step := range trace.Samples {
			t.event(step.At, orderVariable, pajeSetVariable, "VW p%d %.9g", i, step.Watts)
		}
	}
}

// rest adds the state of a worker or a link in which it worked on nothing.
func (t *pajeTrace) rest(x *rest, of, where string) {
	s := pajeState{of: of, where: where, value: fmt.Sprintf("I%d", x.category-t.colours.idle(0)), text: "idle"}
	if kind := x.category - t.colours.state(0); kind >= 0 {
		s.value, s.text = fmt.Sprintf("%s%d", of, kind), x.text
	}
	t.state(x.from, orderState, s)
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
