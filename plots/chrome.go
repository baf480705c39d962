package plots

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// Chrome writes a run in the Trace Event Format (JSON object form; Google, "Trace Event Format",
// 2016), which Perfetto and chrome://tracing open. Each device is a process with a thread per
// worker. The transfers are a process with a thread per route. Each task and transfer is a slice.
// Flow arrows show dependences between workers, and transfers. Counters show live bytes and
// power.
//
// Changes of clocks and of sleep, and sleep itself, are slices too. They are in the thread of their
// worker, or in one of their link. Counters show the speed of a clock relative to the device's first.
//
// Times are microseconds with nanosecond digits. Slices of one thread never overlap: simultaneous
// slices of one worker or route get threads of their own.
func Chrome(w io.Writer, r *Run) error {
	if err := r.check("chrome trace"); err != nil {
		return err
	}
	t := chromeTrace{run: r, out: bufio.NewWriter(w)}
	t.text(`{"displayTimeUnit":"ns","otherData":{"title":`)
	t.value(r.title())
	t.text("},\"traceEvents\":[\n")
	t.placeSlices()
	t.writeSpans()
	t.writeTransfers()
	t.writeStates()
	t.writeFlows()
	t.writeCounters()
	t.text("\n]}\n")
	if err := errors.Join(t.err, t.out.Flush()); err != nil { // Flush has the first error of all writes
		return fmt.Errorf("chrome trace: %w", err)
	}
	return nil
}

// chromeEvent is one event; the members are those of the format.
type chromeEvent struct {
	Phase    string  `json:"ph"` // X slice, M metadata, s and f flow, C counter
	Name     string  `json:"name"`
	Category string  `json:"cat,omitempty"`
	Process  int     `json:"pid"`
	Thread   int     `json:"tid"`
	At       micros  `json:"ts"`
	Length   *micros `json:"dur,omitempty"`
	Flow     int     `json:"id,omitempty"`
	Bind     string  `json:"bp,omitempty"` // e: to the slice around the moment
	Args     any     `json:"args,omitempty"`
}

// micros is a time, written in microseconds without rounding.
type micros time.Duration

// MarshalJSON writes whole nanoseconds as three decimals.
func (m micros) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt(nil, int64(m)/1000, 10)
	return fmt.Appendf(b, ".%03d", int64(m)%1000), nil
}

// taskArgs are the details that the viewer shows of a selected task.
type taskArgs struct {
	Step   int32    `json:"step"`
	Clock  string   `json:"clock,omitempty"`
	Op     string   `json:"op,omitempty"`
	Layer  string   `json:"layer,omitempty"`
	Phase  string   `json:"phase,omitempty"`
	Micro  int32    `json:"micro_batch,omitempty"`
	Type   string   `json:"type,omitempty"`
	Shape  string   `json:"shape,omitempty"`
	Flops  float64  `json:"flops,omitempty"`
	Bytes  int64    `json:"bytes,omitempty"`
	Waited *float64 `json:"ready_to_start_us,omitempty"`
}

type transferArgs struct {
	Bytes  int64  `json:"bytes"`
	Buffer string `json:"buffer"`
	For    string `json:"for"`
	Step   int32  `json:"step"`
	Reason string `json:"reason,omitempty"`
}

// named is the argument of an event that names a process or thread.
func named(name string) map[string]string { return map[string]string{"name": name} }

// track is the process and thread of a slice.
type track struct{ process, thread int }

// chromeTrace is the state of one writing.
type chromeTrace struct {
	run    *Run
	out    *bufio.Writer
	err    error // of a value, such as an infinite power
	events int
	flows  int

	ofWorker    []track // the first of each worker
	ofLink      map[int]track
	ofSpan      []track
	ofTransfer  []track
	spanOf      map[dag.Instance]int
	transferFor map[dag.Instance][]int
}

func (t *chromeTrace) text(s string) { t.out.WriteString(s) }

func (t *chromeTrace) value(v any) {
	b, err := json.Marshal(v)
	t.err = cmp.Or(t.err, err)
	t.out.Write(b)
}

func (t *chromeTrace) event(e chromeEvent) {
	if t.events > 0 {
		t.text(",\n")
	}
	t.events++
	t.value(e)
}

// placeSlices gives every span and transfer a thread and writes the names.
func (t *chromeTrace) placeSlices() {
	p, s := t.run.Problem.Platform, t.run.Schedule
	t.ofSpan, t.ofTransfer = make([]track, len(s.Spans)), make([]track, len(s.Transfers))
	t.spanOf, t.transferFor = map[dag.Instance]int{}, map[dag.Instance][]int{}
	for d := range p.Devices {
		t.event(chromeEvent{Phase: "M", Name: "process_name", Process: d + 1, Args: named(p.Devices[d].Name)})
	}
	thread := 1
	name := func(process, count int, label string) (first int) {
		first = thread
		for l := range max(1, count) {
			t.event(chromeEvent{Phase: "M", Name: "thread_name", Process: process, Thread: thread, Args: named(laneName(label, l))})
			thread++
		}
		return first
	}
	lane, count := spanLanes(s)
	t.ofWorker = make([]track, len(p.Workers))
	for w := range p.Workers {
		device := int(p.Workers[w].Device) + 1
		t.ofWorker[w] = track{device, name(device, count[platform.WorkerID(w)], p.Workers[w].Name)}
	}
	for i := range s.Spans {
		span := &s.Spans[i]
		t.ofSpan[i] = t.ofWorker[span.Worker]
		t.ofSpan[i].thread += lane[i]
		t.spanOf[dag.Instance{Task: span.Task, Step: span.Step}] = i
	}
	process := len(p.Devices) + 1
	t.event(chromeEvent{Phase: "M", Name: "process_name", Process: process, Args: named("transfers and counters")})
	order, lanes, counts := transferLanes(s, func(t *schedule.Transfer) route { return route{t.From, t.To} })
	firstOf := map[route]int{}
	for _, r := range slices.SortedFunc(maps.Keys(counts), compareRoutes) {
		firstOf[r] = name(process, counts[r], p.Memories[r.from].Name+" to "+p.Memories[r.to].Name)
	}
	for i, k := range order {
		x := &s.Transfers[k]
		t.ofTransfer[k] = track{process, firstOf[route{x.From, x.To}] + lanes[i]}
		of := dag.Instance{Task: x.For, Step: x.Step}
		t.transferFor[of] = append(t.transferFor[of], k)
	}
	t.ofLink = map[int]track{}
	for _, link := range t.run.changedLinks() {
		t.ofLink[link] = track{process, name(process, 1, p.Links[link].Name)}
	}
}

func (t *chromeTrace) slice(at track, name, category string, from, to time.Duration, args any) {
	length := micros(to - from)
	t.event(chromeEvent{Phase: "X", Name: name, Category: category, Process: at.process, Thread: at.thread, At: micros(from), Length: &length, Args: args})
}

func (t *chromeTrace) writeSpans() {
	g := t.run.Problem.Graph
	for i := range t.run.Schedule.Spans {
		s := &t.run.Schedule.Spans[i]
		task := &g.Tasks[s.Task]
		args := taskArgs{Step: s.Step, Clock: t.run.clockName(s), Op: task.Op, Layer: task.Labels.Layer, Phase: task.Labels.Phase, Micro: task.Labels.MicroBatch, Type: task.Type.String(),
			Shape: task.Shape, Flops: task.Flops, Bytes: task.MovedBytes}
		if s.Ready >= 0 && s.Ready <= s.Start {
			waited := float64(s.Start-s.Ready) / 1e3
			args.Waited = &waited
		}
		t.slice(t.ofSpan[i], task.Name, cmp.Or(task.Labels.Layer, task.Op, "task"), s.Start, s.End, args)
	}
}

func (t *chromeTrace) writeTransfers() {
	g := t.run.Problem.Graph
	for i := range t.run.Schedule.Transfers {
		x := &t.run.Schedule.Transfers[i]
		args := transferArgs{x.Bytes, g.Buffers[x.Buffer].Name, g.Tasks[x.For].Name, x.Step, string(x.Reason)}
		t.slice(t.ofTransfer[i], g.Buffers[x.Buffer].Name+" "+transferLabel(x), "transfer", x.Start, x.End, args)
	}
}

// writeStates writes what units and links did instead of working or waiting.
func (t *chromeTrace) writeStates() {
	units, links := explain.Stretches(t.run.Problem, t.run.Schedule)
	write := func(at track, list []explain.Stretch) {
		for i := range list {
			x := &list[i]
			t.slice(at, states[kindOf(x)].name+": "+x.Change.StateName(t.run.Problem.Platform), "state", x.Start, x.End, nil)
		}
	}
	for w, list := range units {
		write(t.ofWorker[w], list)
	}
	for link, list := range links {
		write(t.ofLink[link], list)
	}
}

// maxArrows bounds the dependences drawn into one task. A reduction over a thousand tiles would
// otherwise fill the file and hide everything else.
const maxArrows = 4

// writeFlows draws arrows into a task: from the predecessors on other workers that ended last,
// and through the transfers that the task needed. If a transfer moves the result of a
// predecessor, the arrow goes through it.
func (t *chromeTrace) writeFlows() {
	g, s := t.run.Problem.Graph, t.run.Schedule
	for i := range s.Spans {
		span := &s.Spans[i]
		preds := t.preds(span)
		through := map[int]bool{} // predecessors whose arrow goes through a transfer
		for _, k := range t.transferFor[dag.Instance{Task: span.Task, Step: span.Step}] {
			x := &s.Transfers[k]
			if x.End > span.Start {
				continue // it made room, and the task did not have to wait for that
			}
			moved := map[int32]bool{}
			for _, atom := range x.Atoms {
				moved[atom] = true
			}
			for _, from := range preds {
				if p := &s.Spans[from]; p.End <= x.Start && writesAny(g, p.Task, moved) {
					t.flow("transfer", t.ofSpan[from], p.Start, p.End, t.ofTransfer[k], x.Start)
					through[from] = true
				}
			}
			t.flow("transfer", t.ofTransfer[k], x.Start, x.End, t.ofSpan[i], span.Start)
		}
		drawn := 0
		for _, from := range preds {
			p := &s.Spans[from]
			if p.Worker != span.Worker && p.End <= span.Start && !through[from] && drawn < maxArrows {
				t.flow("dependence", t.ofSpan[from], p.Start, p.End, t.ofSpan[i], span.Start)
				drawn++
			}
		}
	}
}

// preds lists the spans of the predecessors, the one that ended last first: those in the same
// step and, through carried storages, in the previous step.
func (t *chromeTrace) preds(span *schedule.Span) []int {
	g := t.run.Problem.Graph
	var list []int
	for back, tasks := range [][]int32{g.Preds(span.Task), g.CarriedPreds(span.Task)} {
		for _, p := range tasks {
			if k, ok := t.spanOf[dag.Instance{Task: dag.TaskID(p), Step: span.Step - int32(back)}]; ok {
				list = append(list, k)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(t.run.Schedule.Spans[b].End, t.run.Schedule.Spans[a].End)
	})
	return list
}

// writesAny reports whether a task writes one of the atoms.
func writesAny(g *dag.Graph, t dag.TaskID, atoms map[int32]bool) bool {
	for i, access := range g.Tasks[t].Accesses {
		if access.Mode.Writes() && slices.ContainsFunc(g.Atoms(t, i), func(a int32) bool { return atoms[a] }) {
			return true
		}
	}
	return false
}

// flow writes an arrow from the last nanosecond of one slice to the start of another, since
// viewers bind the end of an arrow to the slice around it.
func (t *chromeTrace) flow(category string, from track, start, end time.Duration, to track, at time.Duration) {
	t.flows++
	t.event(chromeEvent{Phase: "s", Name: category, Category: category, Process: from.process, Thread: from.thread, At: micros(max(start, end-1)), Flow: t.flows})
	t.event(chromeEvent{Phase: "f", Name: category, Category: category, Process: to.process, Thread: to.thread, At: micros(at), Flow: t.flows, Bind: "e"})
}

func (t *chromeTrace) writeCounters() {
	p := t.run.Problem.Platform
	process := len(p.Devices) + 1
	for _, o := range t.run.Schedule.Memory {
		t.event(chromeEvent{Phase: "C", Name: "memory " + p.Memories[o.Memory].Name, Process: process, At: micros(o.At), Args: map[string]int64{"bytes": o.Bytes}})
	}
	for _, trace := range t.run.Power {
		for _, s := range trace.Samples {
			t.event(chromeEvent{Phase: "C", Name: "power " + trace.Name, Process: process, At: micros(s.At), Args: map[string]float64{"watts": s.Watts}})
		}
	}
	for _, c := range t.run.clocks() {
		for _, s := range c.steps {
			t.event(chromeEvent{Phase: "C", Name: "clock " + c.name, Process: process, At: micros(s.at), Args: map[string]float64{"scale": s.scale}})
		}
	}
}
