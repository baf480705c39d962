package dag

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds on what one graph may hold, so that no sum over it overflows an int64
// or a float64. All are far beyond any machine.
const (
	maxTotal = 1 << 60 // bytes of all storages, bytes moved, nanoseconds: each summed over the graph
	maxFlops = 1e30    // of one task
)

// Builder collects buffers and tasks in program order. It keeps the first mistake and returns it
// from Build, so callers need no check after every call.
type Builder struct {
	graph       Graph // its Tasks are set by Build
	bufferNames nameTable
	err         error

	// Tasks in chunks, all but the last full, so that each task is copied at most once. The first
	// chunk has room for first tasks, every other for taskChunk.
	chunks    [][]Task
	first     int
	tasks     int // in all chunks
	taskNames nameTable

	places map[string]*Placement // see PlaceOn

	storedBytes, movedBytes, costNs int64 // sums, kept below maxTotal
}

// taskChunk is the number of tasks in a chunk.
const taskChunk = 4096

// PlaceOn is the placement on a device, one for all tasks there.
func (b *Builder) PlaceOn(device string) *Placement {
	place := b.places[device]
	if place == nil {
		place = &Placement{Device: device}
		b.places[device] = place
	}
	return place
}

// Grow makes room for a number of tasks and buffers in all, which saves Build from copying them. For tasks it only
// helps before the first one.
func (b *Builder) Grow(tasks, buffers int) {
	b.graph.Buffers = slices.Grow(b.graph.Buffers, max(0, buffers-len(b.graph.Buffers)))
	if b.tasks > 0 || tasks <= taskChunk {
		return
	}
	b.first = tasks
	b.chunks = append(b.chunks[:0], make([]Task, 0, tasks))
}

// NewBuilder starts an empty graph.
func NewBuilder(name string) *Builder {
	return &Builder{
		graph:       Graph{Name: name},
		bufferNames: nameTable{seed: maphash.MakeSeed()},
		first:       taskChunk,
		taskNames:   nameTable{seed: maphash.MakeSeed()},
		places:      map[string]*Placement{},
	}
}

// Buffer adds a buffer that owns its storage and returns its ID.
func (b *Builder) Buffer(buf Buffer) BufferID {
	buf.ViewOf = None
	return b.addBuffer(buf)
}

// View adds another shape of an existing buffer's storage. It shares type, role
// and home, and has as many elements.
func (b *Builder) View(name string, of BufferID, shape ...int) BufferID {
	if int(of) < 0 || int(of) >= len(b.graph.Buffers) {
		b.fail("view %q: no buffer %d", name, of)
		return None
	}
	v := b.graph.Buffers[of]
	if v.ViewOf != None {
		of = v.ViewOf
	}
	v.Name, v.Shape, v.ViewOf, v.Layout, v.Versions = name, shape, of, "", 0
	id := b.addBuffer(v)
	if id != None && v.Elems() != b.graph.Buffers[of].Elems() {
		b.fail("view %q: shape %v does not hold the elements of %q, shape %v",
			name, shape, b.graph.Buffers[of].Name, b.graph.Buffers[of].Shape)
	}
	return id
}

func (b *Builder) addBuffer(buf Buffer) BufferID {
	if buf.Name == "" || !utf8.ValidString(buf.Name) {
		b.fail("buffer name %q is empty or not UTF-8", buf.Name)
		return None
	}
	hash := b.bufferNames.hash(buf.Name)
	if _, ok := b.findBuffer(hash, buf.Name); ok {
		b.fail("buffer %q is declared twice", buf.Name)
		return None
	}
	if int(buf.Type) >= len(dtypeNames) || int(buf.Role) >= len(roleNames) {
		b.fail("buffer %q: type %v, role %v", buf.Name, buf.Type, buf.Role)
		return None
	}
	if buf.Accumulators < 0 {
		b.fail("buffer %q: %d accumulators", buf.Name, buf.Accumulators)
	}
	if buf.Versions < 0 || buf.Versions > MaxVersions {
		b.fail("buffer %q: %d versions; write a number from 1 to %d", buf.Name, buf.Versions, MaxVersions)
	}
	if buf.Versions == 1 {
		buf.Versions = 0 // there is one way to say so
	}
	elems := int64(1)
	for _, e := range buf.Shape {
		if e < 1 {
			b.fail("buffer %q: extent %d in shape %v; every extent is at least 1", buf.Name, e, buf.Shape)
			return None
		}
		if elems > MaxBufferElems/int64(e) {
			b.fail("buffer %q: shape %v has more than %d elements", buf.Name, buf.Shape, int64(MaxBufferElems))
			return None
		}
		elems *= int64(e)
	}
	if buf.ViewOf == None {
		b.count(&b.storedBytes, buf.Bytes(), "buffer", buf.Name, "bytes stored")
	}
	id := BufferID(len(b.graph.Buffers))
	b.bufferNames.add(hash, int32(id))
	b.graph.Buffers = append(b.graph.Buffers, buf)
	return id
}

// count adds to one of the bounded sums.
func (b *Builder) count(sum *int64, n int64, what, name, unit string) {
	if n < 0 || n > maxTotal-*sum {
		b.fail("%s %q: %d is negative or makes more than %d %s in this graph", what, name, n, int64(maxTotal), unit)
		return
	}
	*sum += n
}

// OpCosts sets the costs of an operation, for tasks added from now on without costs of their own.
func (b *Builder) OpCosts(op string, costs []Cost) {
	at, found := slices.BinarySearchFunc(b.graph.OpCosts, op, func(c OpCosts, op string) int { return strings.Compare(c.Op, op) })
	if found || op == "" || len(costs) == 0 {
		b.fail("costs of operation %q are empty, given twice, or of no operation", op)
		return
	}
	costs = sortedBy(costs, func(c Cost) string { return c.Key })
	b.checkCosts("operation", op, costs)
	b.graph.OpCosts = slices.Insert(b.graph.OpCosts, at, OpCosts{op, costs})
}

// Task adds a task after all earlier ones and returns its ID.
func (b *Builder) Task(t Task) TaskID {
	id := TaskID(b.tasks)
	if t.Name == "" || !utf8.ValidString(t.Name) {
		b.fail("task name %q is empty or not UTF-8", t.Name)
		return id
	}
	hash := b.taskNames.hash(t.Name)
	if _, ok := b.findTask(hash, t.Name); ok {
		b.fail("task %q is declared twice", t.Name)
		return id
	}
	if int(t.Type) >= len(dtypeNames) {
		b.fail("task %q: type %v", t.Name, t.Type)
	}
	for _, s := range [...]string{t.Op, t.Shape, t.Labels.Layer, t.Labels.Phase} {
		if !utf8.ValidString(s) {
			b.fail("task %q: %q is not UTF-8", t.Name, s)
		}
	}
	for _, a := range t.Accesses {
		b.checkAccess(&t, a)
	}
	for _, p := range t.After {
		if p < 0 || p >= id {
			b.fail("task %q follows task %d, which is not before it", t.Name, p)
		}
	}
	if !(t.Flops >= 0 && t.Flops <= maxFlops) {
		b.fail("task %q: %g flops; write a number from 0 to %g", t.Name, t.Flops, maxFlops)
	}
	t.Params = sortedBy(t.Params, func(p Param) string { return p.Name })
	b.checkParams(&t)
	b.setCosts(&t)
	b.taskNames.add(hash, int32(id))
	return b.again(t)
}

// again adds a task without checks, since another builder or an expansion made it right.
func (b *Builder) again(t Task) TaskID {
	b.count(&b.movedBytes, t.MovedBytes, "task", t.Name, "bytes moved")
	b.count(&b.costNs, longest(t.Costs), "task", t.Name, "nanoseconds")
	b.append(t)
	return TaskID(b.tasks - 1)
}

func (b *Builder) append(t Task) {
	switch {
	case b.chunks == nil:
		b.chunks = append(b.chunks, make([]Task, 0, 64))
	case b.tasks >= b.first && (b.tasks-b.first)%taskChunk == 0:
		b.chunks = append(b.chunks, make([]Task, 0, taskChunk))
	}
	last := len(b.chunks) - 1
	b.chunks[last] = append(b.chunks[last], t)
	b.tasks++
}

// taskAt returns a task that was added before.
func (b *Builder) taskAt(id int) *Task {
	if id < b.first {
		return &b.chunks[0][id]
	}
	id -= b.first
	return &b.chunks[1+id/taskChunk][id%taskChunk]
}

// findTask finds a task by its name, given the name's hash.
func (b *Builder) findTask(hash uint32, name string) (TaskID, bool) {
	id, ok := b.taskNames.find(hash, func(id int32) bool { return b.taskAt(int(id)).Name == name })
	return TaskID(id), ok
}

// findBuffer finds a buffer by its name, given the name's hash.
func (b *Builder) findBuffer(hash uint32, name string) (BufferID, bool) {
	id, ok := b.bufferNames.find(hash, func(id int32) bool { return b.graph.Buffers[id].Name == name })
	return BufferID(id), ok
}

// sortedBy returns the list in the order of its keys, copied if it was not.
func sortedBy[T any](list []T, key func(T) string) []T {
	order := func(x, y T) int { return strings.Compare(key(x), key(y)) }
	if !slices.IsSortedFunc(list, order) {
		list = slices.Clone(list)
		slices.SortStableFunc(list, order)
	}
	return list
}

func (b *Builder) checkParams(t *Task) {
	for i, p := range t.Params {
		if p.Name == "" || i > 0 && p.Name == t.Params[i-1].Name || math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			b.fail("task %q (%s): parameter %q = %g is nameless, given twice, or not a finite number", t.Name, t.Op, p.Name, p.Value)
		}
	}
}

// setCosts takes the operation's costs where the task has none.
func (b *Builder) setCosts(t *Task) {
	if t.Costs != nil {
		t.Costs = sortedBy(t.Costs, func(c Cost) string { return c.Key })
		b.checkCosts("task", t.Name, t.Costs)
	} else if i, ok := slices.BinarySearchFunc(b.graph.OpCosts, t.Op, func(c OpCosts, op string) int { return strings.Compare(c.Op, op) }); ok {
		t.Costs = b.graph.OpCosts[i].Costs
	}
}

// longest is the longest duration of some costs.
func longest(costs []Cost) (ns int64) {
	for _, c := range costs {
		ns = max(ns, c.Ns)
	}
	return ns
}

func (b *Builder) checkCosts(what, name string, costs []Cost) {
	for i, c := range costs {
		device, variant, clock := SplitCostKey(c.Key)
		bare := device
		if variant != "" {
			bare += "/" + variant
		}
		if clock != "" {
			bare += "@" + clock
		}
		switch {
		case device == "" || bare != c.Key:
			b.fail(`%s %q: cost key %q; write "device or kind[/variant][@clock]"`, what, name, c.Key)
		case i > 0 && c.Key == costs[i-1].Key:
			b.fail("%s %q: cost of %q is given twice", what, name, c.Key)
		case c.Ns < 0 || c.Ns > maxTotal:
			b.fail("%s %q: %d ns on %q; write a number from 0 to %d", what, name, c.Ns, c.Key, int64(maxTotal))
		case !(c.Joules >= 0) || math.IsInf(c.Joules, 0):
			b.fail("%s %q: %g joules on %q; write a finite number, at least 0", what, name, c.Joules, c.Key)
		}
	}
}

func (b *Builder) checkAccess(t *Task, a Access) {
	if a.Buffer < 0 || int(a.Buffer) >= len(b.graph.Buffers) {
		b.fail("task %q (%s): no buffer %d", t.Name, t.Op, a.Buffer)
		return
	}
	if int(a.Mode) >= len(modeNames) {
		b.fail("task %q (%s): mode %v", t.Name, t.Op, a.Mode)
	}
	buf := &b.graph.Buffers[a.Buffer]
	if a.Box == nil {
		return
	}
	if len(a.Box) != len(buf.Shape) {
		b.fail("task %q (%s): box %v has %d dimensions, buffer %q has shape %v", t.Name, t.Op, a.Box, len(a.Box), buf.Name, buf.Shape)
		return
	}
	for d, r := range a.Box {
		if r.Lo < 0 || r.Lo >= r.Hi || r.Hi > buf.Shape[d] {
			b.fail("task %q (%s): box %v is empty or outside buffer %q of shape %v", t.Name, t.Op, a.Box, buf.Name, buf.Shape)
			return
		}
	}
}

// BufferAt returns the buffer with an ID, for callers that build on shapes.
func (b *Builder) BufferAt(id BufferID) Buffer { return b.graph.Buffers[id] }

// Accumulate sets into how many private accumulators Expand spreads the contributors of a Reduce of a
// buffer, see [Buffer].
func (b *Builder) Accumulate(id BufferID, accumulators int) {
	for b.graph.Buffers[id].ViewOf != None {
		id = b.graph.Buffers[id].ViewOf
	}
	b.graph.Buffers[id].Accumulators = accumulators
}

// BufferNamed finds a buffer that was added before.
func (b *Builder) BufferNamed(name string) (BufferID, bool) {
	return b.findBuffer(b.bufferNames.hash(name), name)
}

// TaskNamed finds a task that was added before.
func (b *Builder) TaskNamed(name string) (TaskID, bool) {
	return b.findTask(b.taskNames.hash(name), name)
}

// Err returns the first mistake so far.
func (b *Builder) Err() error { return b.err }

// Fail records a mistake that the caller found; Build returns the first one.
func (b *Builder) Fail(err error) {
	if b.err == nil && err != nil {
		b.err = err
	}
}

func (b *Builder) fail(format string, args ...any) {
	b.Fail(fmt.Errorf(format, args...))
}

// Build derives the dependences. The builder must not be used afterwards.
func (b *Builder) Build() (*Graph, error) { return b.build((*Graph).derive) }

// BuildExpanded is Build and then [ExpandShared], without dependences in between.
func (b *Builder) BuildExpanded(stageOf func(layer string) *Stage) (*Graph, error) {
	reduced, names := b.reduced(), b.taskNames
	if reduced == nil {
		return b.Build()
	}
	g, err := b.build(func(g *Graph) error { return g.cut(reduced) })
	if err != nil {
		return nil, err
	}
	return expand(g, &names, stageOf)
}

// reduced marks the storages of sums to which tasks add. Nil means that there are none.
func (b *Builder) reduced() (marks []bool) {
	for _, tasks := range b.chunks {
		for t := range tasks {
			for _, a := range tasks[t].Accesses {
				if a.Mode != Reduce || b.err != nil {
					continue
				}
				if marks == nil {
					marks = make([]bool, len(b.graph.Buffers))
				}
				marks[b.graph.Storage(a.Buffer)] = true
			}
		}
	}
	return marks
}

// build completes the graph.
func (b *Builder) build(complete func(*Graph) error) (*Graph, error) {
	if b.err != nil {
		return nil, fmt.Errorf("graph %q: %w", b.graph.Name, b.err)
	}
	g := b.graph // a copy, so that the graph does not keep the tables of names alive
	g.Tasks = b.allTasks()
	b.taskNames, b.bufferNames, b.chunks = nameTable{}, nameTable{}, nil
	if err := complete(&g); err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	g.findLater()
	return &g, nil
}

// findLater lets the graph find what it does not know yet once it is asked for.
func (g *Graph) findLater() {
	g.hash, g.names, g.buffersByName = sync.OnceValue(g.textHash), sync.OnceValue(g.rankTasks), sync.OnceValue(g.rankBuffers)
}

// allTasks returns the tasks as one list.
func (b *Builder) allTasks() []Task {
	if len(b.chunks) == 1 && len(b.chunks[0]) >= cap(b.chunks[0])/16*15 {
		return b.chunks[0]
	}
	tasks := make([]Task, 0, b.tasks)
	for _, chunk := range b.chunks {
		tasks = append(tasks, chunk...)
	}
	return tasks
}
