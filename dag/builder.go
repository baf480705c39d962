package dag

import (
	"fmt"
	"slices"
	"strings"
)

// Builder collects buffers and tasks in program order. The first mistake is kept
// and returned by Build, so that callers need no check after every call.
type Builder struct {
	graph     Graph
	bufferIDs map[string]BufferID
	taskIDs   map[string]TaskID
	err       error
}

// NewBuilder starts an empty graph.
func NewBuilder(name string) *Builder {
	return &Builder{
		graph:     Graph{Name: name},
		bufferIDs: map[string]BufferID{},
		taskIDs:   map[string]TaskID{},
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
	v.Name, v.Shape, v.ViewOf = name, shape, of
	id := b.addBuffer(v)
	if id != None && v.Elems() != b.graph.Buffers[of].Elems() {
		b.fail("view %q: shape %v does not hold the elements of %q, shape %v",
			name, shape, b.graph.Buffers[of].Name, b.graph.Buffers[of].Shape)
	}
	return id
}

func (b *Builder) addBuffer(buf Buffer) BufferID {
	if buf.Name == "" {
		b.fail("a buffer has no name")
		return None
	}
	if _, ok := b.bufferIDs[buf.Name]; ok {
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
	id := BufferID(len(b.graph.Buffers))
	b.bufferIDs[buf.Name] = id
	b.graph.Buffers = append(b.graph.Buffers, buf)
	return id
}

// Task adds a task after all earlier ones and returns its ID.
func (b *Builder) Task(t Task) TaskID {
	id := TaskID(len(b.graph.Tasks))
	if t.Name == "" {
		b.fail("task %d has no name", id)
		return id
	}
	if _, ok := b.taskIDs[t.Name]; ok {
		b.fail("task %q is declared twice", t.Name)
		return id
	}
	for _, a := range t.Accesses {
		b.checkAccess(&t, a)
	}
	for _, p := range t.After {
		if p < 0 || p >= id {
			b.fail("task %q follows task %d, which is not before it", t.Name, p)
		}
	}
	if !(t.Flops >= 0) || t.MovedBytes < 0 {
		b.fail("task %q: work of %g flops and %d bytes", t.Name, t.Flops, t.MovedBytes)
	}
	slices.SortFunc(t.Params, func(x, y Param) int { return strings.Compare(x.Name, y.Name) })
	b.taskIDs[t.Name] = id
	b.graph.Tasks = append(b.graph.Tasks, t)
	return id
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

// BufferNamed finds a buffer that was added before.
func (b *Builder) BufferNamed(name string) (BufferID, bool) {
	id, ok := b.bufferIDs[name]
	return id, ok
}

// TaskNamed finds a task that was added before.
func (b *Builder) TaskNamed(name string) (TaskID, bool) {
	id, ok := b.taskIDs[name]
	return id, ok
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
func (b *Builder) Build() (*Graph, error) {
	if b.err != nil {
		return nil, fmt.Errorf("graph %q: %w", b.graph.Name, b.err)
	}
	g := &b.graph
	if err := g.derive(); err != nil {
		return nil, fmt.Errorf("graph %q: %w", g.Name, err)
	}
	return g, nil
}
