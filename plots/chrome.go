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

// Chrome writes runs in the Trace Event Format (JSON object form; Google, "Trace Event Format",
// 2016), which Perfetto and chrome://tracing open. Each device is a process with a thread per
// worker, or in a cluster each node, with the transfers to it. The transfers of one machine are a process with a thread per route. Each task and transfer is a slice.
// Flow arrows show dependences between workers, and transfers. Counters show live bytes and
// power. The critical path is a process of its own, and its tasks say that they are on it. Processes
// and threads are numbered in the order of the platform, in which viewers then show them.
//
// Changes of clocks and of sleep, and sleep itself, are slices too. They are in the thread of their
// worker, or in one of their link. Counters show the speed of a clock relative to the device's first.
//
// Times are microseconds with nanosecond digits. Slices of one thread never overlap: simultaneous
// slices of one worker or route get threads of their own.
//
// Of several runs, such as a prediction and what was measured, each has its own processes, with its
// world in their names. All begin at 0.
func Chrome(w io.Writer, runs ...*Run) error {
	for _, r := range runs {
		if err := r.check("chrome trace"); err != nil {
			return err
		}
	}
	t := chromeTrace{out: bufio.NewWriter(w)}
	t.text(`{"displayTimeUnit":"ns","otherData":{"title":`)
	t.value(runs[len(runs)-1].title())
	t.text("},\"traceEvents\":[\n")
	for _, r := range runs {
		t.run = r
		if t.world = ""; len(runs) > 1 {
			t.world = string(r.Schedule.World) + ": "
		}
		t.writeRun()
	}
	t.text("\n]}\n")
	if err := errors.Join(t.err, t.out.Flush()); err != nil { // Flush has the first error of all writes
		return fmt.Errorf("chrome trace: %w", err)
	}
	return nil
}

func (t *chromeTrace) writeRun() {
	t.findPath()
	t.placeSlices()
	t.writeSpans()
	t.writeTransfers()
	t.writePath()
	t.writeStates()
	t.writeFlows()
	t.writeCounters()
}

// chromeEvent is one event; its members are named as in the format.
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
	OnPath bool     `json:"critical_path,omitempty"`
}

type transferArgs struct {
	Bytes  int64  `json:"bytes"`
	Buffer string `json:"buffer"`
	For    string `json:"for"`
	Step   int32  `json:"step"`
	Reason string `json:"reason,omitempty"`
	OnPath bool   `json:"critical_path,omitempty"`
}

type pathArgs struct {
	Waited float64 `json:"cause_to_start_us"`
}

// named is the argument of an event that names a process or thread.
func named(name string) map[string]string { return map[string]string{"name": name} }

// sortedAt is the argument of an event that says where a process or thread is shown.
func sortedAt(index int) map[string]int { return map[string]int{"sort_index": index} }

// track is the process and thread of a slice.
type track struct{ process, thread int }

// chromeTrace is the state of one writing.
type chromeTrace struct {
	out       *bufio.Writer
	err       error // of a value, such as an infinite power
	events    int
	flows     int
	processes int // written so far
	threads   int

	run         *Run   // that is being written
	world       string // before the names of its processes
	transferred int    // the process of its transfers
	path        []explain.PathStep

	spanOnPath, transferOnPath []bool

	ofNode      map[platform.NodeID]int // the process of each
	ofWorker    []track                 // the first of each worker
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

// process writes the name of a new process and its place among them.
func (t *chromeTrace) process(name string) int {
	t.processes++
	t.event(chromeEvent{Phase: "M", Name: "process_name", Process: t.processes, Args: named(t.world + name)})
	t.event(chromeEvent{Phase: "M", Name: "process_sort_index", Process: t.processes, Args: sortedAt(t.processes)})
	return t.processes
}

// thread writes the names and places of new threads of a process: count of them, and at least one.
func (t *chromeTrace) thread(process, count int, label string) (first int) {
	first = t.threads + 1
	for l := range max(1, count) {
		t.threads++
		t.event(chromeEvent{Phase: "M", Name: "thread_name", Process: process, Thread: t.threads, Args: named(laneName(label, l))})
		t.event(chromeEvent{Phase: "M", Name: "thread_sort_index", Process: process, Thread: t.threads, Args: sortedAt(t.threads)})
	}
	return first
}

// placeSlices gives every span and transfer a thread and writes the names.
func (t *chromeTrace) placeSlices() {
	p, s := t.run.Problem.Platform, t.run.Schedule
	t.ofSpan, t.ofTransfer = make([]track, len(s.Spans)), make([]track, len(s.Transfers))
	t.spanOf, t.transferFor = map[dag.Instance]int{}, map[dag.Instance][]int{}
	processes := t.deviceProcesses(p)
	lane, count := spanLanes(s)
	t.ofWorker = make([]track, len(p.Workers))
	for w := range p.Workers {
		device := processes[p.Workers[w].Device]
		t.ofWorker[w] = track{device, t.thread(device, count[platform.WorkerID(w)], p.Workers[w].Name)}
	}
	for i := range s.Spans {
		span := &s.Spans[i]
		t.ofSpan[i] = t.ofWorker[span.Worker]
		t.ofSpan[i].thread += lane[i]
		t.spanOf[dag.Instance{Task: span.Task, Step: span.Step}] = i
	}
	process := t.process("transfers and counters")
	t.transferred = process
	order, lanes, counts := transferLanes(s, func(t *schedule.Transfer) route { return route{t.From, t.To} })
	firstOf := map[route]track{}
	for _, r := range slices.SortedFunc(maps.Keys(counts), compareRoutes) {
		in := process
		if len(p.Nodes) > 0 {
			in = t.nodeProcess(p, p.NodeOf(r.to))
		}
		firstOf[r] = track{in, t.thread(in, counts[r], p.Memories[r.from].Name+" to "+p.Memories[r.to].Name)}
	}
	for i, k := range order {
		x := &s.Transfers[k]
		t.ofTransfer[k] = firstOf[route{x.From, x.To}]
		t.ofTransfer[k].thread += lanes[i]
		of := dag.Instance{Task: x.For, Step: x.Step}
		t.transferFor[of] = append(t.transferFor[of], k)
	}
	t.ofLink = map[int]track{}
	for _, link := range t.run.changedLinks() {
		t.ofLink[link] = track{process, t.thread(process, 1, p.Links[link].Name)}
	}
}

// deviceProcesses begins the process of each device: one for each device, or in a cluster one for each node.
func (t *chromeTrace) deviceProcesses(p *platform.Platform) []int {
	of := make([]int, len(p.Devices))
	t.ofNode = map[platform.NodeID]int{}
	for d := range p.Devices {
		if len(p.Nodes) > 0 {
			of[d] = t.nodeProcess(p, p.NodeOf(p.Devices[d].Memory))
		} else {
			of[d] = t.process(p.Devices[d].Name)
		}
	}
	return of
}

// nodeProcess is the process of a node.
func (t *chromeTrace) nodeProcess(p *platform.Platform, n platform.NodeID) int {
	if _, ok := t.ofNode[n]; !ok {
		t.ofNode[n] = t.process(p.Nodes[n].Name)
	}
	return t.ofNode[n]
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
			Shape: task.Shape, Flops: task.Flops, Bytes: task.MovedBytes, OnPath: t.spanOnPath[i]}
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
		args := transferArgs{x.Bytes, g.Buffers[x.Buffer].Name, g.Tasks[x.For].Name, x.Step, string(x.Reason), t.transferOnPath[i]}
		t.slice(t.ofTransfer[i], g.Buffers[x.Buffer].Name+" "+transferLabel(x), "transfer", x.Start, x.End, args)
	}
}

// findPath finds the critical path and what is on it.
func (t *chromeTrace) findPath() {
	s := t.run.Schedule
	t.path = explain.CriticalPath(t.run.Problem, s)
	t.spanOnPath, t.transferOnPath = make([]bool, len(s.Spans)), make([]bool, len(s.Transfers))
	for i := range t.path {
		if k := t.path[i].Span; k >= 0 {
			t.spanOnPath[k] = true
		}
		if k := t.path[i].Transfer; k >= 0 {
			t.transferOnPath[k] = true
		}
	}
}

// writePath writes the critical path from its beginning.
func (t *chromeTrace) writePath() {
	s, g := t.run.Schedule, t.run.Problem.Graph
	process := t.process("critical path")
	at := track{process, t.thread(process, 1, "critical path")}
	for i := range t.path {
		step := &t.path[i]
		name := ""
		switch {
		case step.Span >= 0:
			name = g.Tasks[s.Spans[step.Span].Task].Name
		case step.Transfer >= 0:
			x := &s.Transfers[step.Transfer]
			name = g.Buffers[x.Buffer].Name + " " + transferLabel(x)
		default:
			name = s.Changes[step.Change].StateName(t.run.Problem.Platform)
		}
		from, to := step.Times(s)
		t.slice(at, name, "critical path", from, to, pathArgs{float64(step.Wait) / 1e3})
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

// writeFlows draws arrows into a task: from the predecessors on other workers that ended last, and
// through the transfers for the task. If a transfer moves the result of a predecessor, the arrow
// goes through it.
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
	p, process := t.run.Problem.Platform, t.transferred
	for _, o := range t.run.Schedule.Memory {
		t.event(chromeEvent{Phase: "C", Name: "memory " + p.Memories[o.Memory].Name, Process: process, At: micros(o.At), Args: map[string]int64{"bytes": o.Bytes}})
	}
	for _, trace := range t.run.Power {
		for _, s := range trace.Samples {
			t.event(chromeEvent{Phase: "C", Name: "power " + trace.Name, Process: process, At: micros(s.At), Args: map[string]float64{"watts": s.Watts}})
		}
	}
	for _, c := range t.run.clocks() {
		for i, at := range c.Times {
			t.event(chromeEvent{Phase: "C", Name: "clock " + c.Name, Process: process, At: micros(at), Args: map[string]float64{"scale": c.Scales[i]}})
		}
	}
}
