package dag

import (
	"io"
	"math"
	"slices"
)

// ReadJSON reads a graph file; its form is described above [Graph.WriteJSON].
// Errors are one line, "name:line: mistake; correction"; name is the file's name.
// A Reduce stays as it is; the caller runs [Expand].
func ReadJSON(r io.Reader, name string) (*Graph, error) {
	f := graphFile{jsonReader: newJSONReader(r, name), builder: NewBuilder("")}
	tasksAt := f.header()
	if f.err == nil {
		// Tasks are read last, wherever they stand, because they name buffers.
		f.seek(tasksAt)
		f.array("tasks", f.task)
	}
	if f.err != nil {
		return nil, f.err
	}
	g, err := f.builder.Build()
	if err != nil {
		f.failAt(tasksAt, "%w", err)
		return nil, f.err
	}
	return g, nil
}

type graphFile struct {
	*jsonReader
	builder *Builder
}

// header reads everything but the tasks and returns where they are.
func (f *graphFile) header() (tasksAt int64) {
	format := ""
	f.object("a graph file", func(key string) {
		switch key {
		case "format":
			if format = f.string(key); format != graphFormat {
				f.fail("format is %q; this program reads %q", format, graphFormat)
			}
		case "name":
			f.builder.graph.Name = f.string(key)
		case "recorded_on":
			f.builder.graph.RecordedOn = f.string(key)
		case "buffers":
			f.array(key, f.buffer)
		case "costs":
			f.object(key, f.opCosts)
		case "tasks":
			tasksAt = f.nextOffset()
			f.skip()
		default:
			f.unknown("key", key, "", "format", "name", "recorded_on", "buffers", "costs", "tasks")
		}
	})
	f.end()
	if format == "" {
		f.failAt(0, "no format; write \"format\": %q", graphFormat)
	}
	if tasksAt == 0 {
		f.failAt(0, "no tasks; write \"tasks\": […]")
	}
	return tasksAt
}

// check notes a mistake that the builder found in the element at an offset.
func (f *graphFile) check(offset int64) {
	if err := f.builder.Err(); err != nil {
		f.failAt(offset, "%w", err)
	}
}

func (f *graphFile) buffer() {
	at := f.nextOffset()
	buf := Buffer{}
	var bytes int64
	given := map[string]bool{}
	viewOf := ""
	f.object("a buffer", func(key string) {
		given[key] = true
		switch key {
		case "name":
			buf.Name = f.string(key)
		case "bytes":
			bytes = f.integer(key)
		case "shape":
			buf.Shape = []int{}
			f.array(key, func() { buf.Shape = append(buf.Shape, int(f.integer("extent"))) })
		case "type":
			buf.Type = parseString(f, key, ParseDType)
		case "role":
			buf.Role = parseString(f, key, ParseRole)
		case "view_of":
			viewOf = f.string(key)
		case "layout":
			buf.Layout = f.string(key)
		case "home":
			buf.Home = f.string(key)
		case "accumulators":
			buf.Accumulators = int(f.integer(key))
		case "copies":
			if buf.Versions = int(f.integer(key)); buf.Versions < 1 {
				f.fail("%d versions; write a number from 1 to %d", buf.Versions, MaxVersions)
			}
		default:
			f.unknown("key", key, " of a buffer", "name", "bytes", "shape", "type", "role", "view_of", "layout", "home", "accumulators", "copies")
		}
	})
	if f.err != nil {
		return
	}
	switch {
	case viewOf != "":
		f.view(at, buf, viewOf, given)
	case given["bytes"] && !given["shape"] && !given["type"]:
		if bytes < 1 || bytes > MaxBufferElems {
			f.failAt(at, "buffer %q has %d bytes; write a number from 1 to %d", buf.Name, bytes, int64(MaxBufferElems))
			return
		}
		buf.Shape, buf.Type = []int{int(bytes)}, Uint8
		f.builder.Buffer(buf)
	case given["shape"] && given["type"] && !given["bytes"]:
		f.builder.Buffer(buf)
	default:
		f.failAt(at, "buffer %q has no size or two; write either bytes or shape and type", buf.Name)
	}
	f.check(at)
}

func (f *graphFile) view(at int64, buf Buffer, viewOf string, given map[string]bool) {
	id, ok := f.builder.BufferNamed(viewOf)
	switch {
	case !ok:
		f.failAt(at, "view %q of %q, which is not declared before it", buf.Name, viewOf)
	case !given["shape"] || len(given) != 3:
		f.failAt(at, "view %q; write name, view_of and shape, the rest is the owner's", buf.Name)
	default:
		f.builder.View(buf.Name, id, buf.Shape...)
	}
}

func (f *graphFile) opCosts(op string) {
	at := f.nextOffset()
	var c costTable
	f.object("costs of "+op, func(key string) {
		if !c.read(f, key) {
			f.unknown("key", key, " of costs", "ns", "joules")
		}
	})
	if f.err == nil {
		f.builder.OpCosts(op, c.costs(f, at))
	}
	f.check(at)
}

func (f *graphFile) task() {
	at := f.nextOffset()
	t := taskFile{graphFile: f}
	f.object("a task", t.field)
	if f.err != nil {
		return
	}
	t.task.Accesses = slices.Concat(t.lists[Write], t.lists[ReadWrite], t.lists[Reduce], t.lists[Read])
	if t.accesses != nil {
		if len(t.task.Accesses) > 0 {
			f.failAt(at, "task %q; write either accesses or writes, updates, reduces and reads", t.task.Name)
			return
		}
		t.task.Accesses = t.accesses
	}
	t.task.Costs = t.costs.costs(f, at)
	if t.place != (Placement{}) {
		t.task.Placement = &t.place
	}
	if f.err == nil {
		f.builder.Task(t.task)
	}
	f.check(at)
}

// taskFile is a task while its keys are read.
type taskFile struct {
	*graphFile
	task     Task
	lists    [len(modeNames)][]Access // by mode
	accesses []Access
	place    Placement
	costs    costTable
}

func (t *taskFile) field(key string) {
	switch key {
	case "name":
		t.task.Name = t.string(key)
	case "op":
		t.task.Op = t.string(key)
	case "type":
		t.task.Type = parseString(t.graphFile, key, ParseDType)
	case "shape":
		t.task.Shape = t.string(key)
	case "writes":
		t.regions(key, Write)
	case "updates":
		t.regions(key, ReadWrite)
	case "reduces":
		t.regions(key, Reduce)
	case "reads":
		t.regions(key, Read)
	case "accesses":
		t.array(key, t.access)
	case "params":
		t.object(key, func(name string) { t.task.Params = append(t.task.Params, Param{name, t.float(name)}) })
	case "flops":
		t.task.Flops = t.float(key)
	case "bytes":
		t.task.MovedBytes = t.integer(key)
	case "priority":
		t.task.Priority = t.int32(key)
	case "labels":
		t.object(key, t.label)
	case "device":
		t.place.Device = t.string(key)
	case "colocate":
		t.place.Colocate = t.string(key)
	case "after":
		t.array(key, t.follow)
	default:
		if !t.costs.read(t.graphFile, key) {
			t.unknown("key", key, " of a task", "name", "op", "type", "shape", "reads", "writes", "updates", "reduces", "accesses",
				"params", "flops", "bytes", "priority", "labels", "device", "colocate", "after", "ns", "joules")
		}
	}
}

func (t *taskFile) regions(key string, mode Mode) {
	t.array(key, func() {
		w := words{rest: t.string(key)}
		t.lists[mode] = append(t.lists[mode], Access{t.region(&w), mode})
	})
}

// access reads one element of accesses: "readwrite w[0:4,:]".
func (t *taskFile) access() {
	w := words{rest: t.string("accesses")}
	mode := parseWord(&w, ParseMode)
	t.accesses = append(t.accesses, Access{t.region(&w), mode})
}

func (t *taskFile) region(w *words) Region {
	region := w.region(t.builder)
	if w.rest != "" {
		w.fail("%q is one too many", w.rest)
	}
	if w.err != nil {
		t.fail("region: %w; write \"buffer\" or \"buffer[lo:hi,:]\"", w.err)
	}
	return region
}

func (t *taskFile) label(key string) {
	switch key {
	case "layer":
		t.task.Labels.Layer = t.string(key)
	case "phase":
		t.task.Labels.Phase = t.string(key)
	case "micro_batch":
		t.task.Labels.MicroBatch = t.int32(key)
	case "stage":
		t.task.Labels.Stage = t.int32(key)
	default:
		t.unknown("label", key, "", "layer", "phase", "micro_batch", "stage")
	}
}

func (t *taskFile) follow() {
	name := t.string("after")
	id, ok := t.builder.TaskNamed(name)
	if !ok {
		t.fail("no task %q before this one to follow; list tasks in program order, so that no cycle can be written", name)
	}
	t.task.After = append(t.task.After, id)
}

func (f *graphFile) int32(what string) int32 {
	n := f.integer(what)
	if n < math.MinInt32 || n > math.MaxInt32 {
		f.fail("%s is %d; write an integer of 32 bits", what, n)
	}
	return int32(n)
}

func parseString[T any](f *graphFile, what string, parse func(string) (T, error)) T {
	v, err := parse(f.string(what))
	if err != nil {
		f.fail("%w", err)
	}
	return v
}

// costTable is ns and joules while they are read.
type costTable struct {
	byKey    []Cost // from ns
	joules   []Cost // from joules, Ns unused
	perCall  float64
	hasTotal bool // joules is one number
}

// read reads the value of ns or joules; false for another key.
func (c *costTable) read(f *graphFile, key string) bool {
	switch key {
	case "ns":
		if f.peekObject() {
			f.object(key, func(k string) { c.byKey = append(c.byKey, Cost{Key: k, Ns: f.integer("ns")}) })
			if c.byKey == nil {
				f.fail("ns of no device; leave it out, or write nanoseconds by device or kind")
			}
		} else {
			c.byKey = []Cost{{Key: AnyDevice, Ns: f.integer("ns, if not an object,")}}
		}
	case "joules":
		if f.peekObject() {
			f.object(key, func(k string) { c.joules = append(c.joules, Cost{Key: k, Joules: f.float(key)}) })
		} else {
			c.perCall, c.hasTotal = f.float("joules, if not an object,"), true
		}
	default:
		return false
	}
	return true
}

// costs joins the two by key; nil when there are none.
func (c *costTable) costs(f *graphFile, at int64) []Cost {
	if c.byKey == nil && (c.joules != nil || c.hasTotal) {
		f.failAt(at, "joules without ns; write ns for the same keys")
	}
	for i := range c.byKey {
		c.byKey[i].Joules = c.perCall
	}
	for _, j := range c.joules {
		i := slices.IndexFunc(c.byKey, func(d Cost) bool { return d.Key == j.Key })
		if i < 0 {
			f.failAt(at, "joules of %q, which has no ns; write ns for the same keys", j.Key)
			return nil
		}
		c.byKey[i].Joules = j.Joules
	}
	return c.byKey
}
