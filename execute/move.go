package execute

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/schedule"
	"dahl/schedule/place"
)

// boundMove is a move before the first or after the last step of a run.
type boundMove struct {
	*place.Move
	device *device
	copies []deviceCopy
	// current is 1 + how often the caller had asked for the source at the last move. An input
	// that no task writes moves again only if the caller has asked for it since.
	current int
}

// requests counts how often the caller has asked for the bytes of buffers, by name.
// Hooks may ask at the same time.
type requests struct {
	mu    sync.Mutex
	count map[string]int
}

func (r *requests) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[string]int{}
	}
	r.count[name]++
}

func (r *requests) of(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[name]
}

// copiesOf splits a move into copies of rows at equal distances. A task makes the move, or none
// does (t < 0).
func (r *Runner) copiesOf(c *compiledGraph, m *place.Move, t dag.TaskID) []deviceCopy {
	var copies []deviceCopy
	for _, pair := range c.placed.Pairs(m, t) {
		first := deviceCopy{from: r.planeOf(c, pair.From.Buffer), to: r.planeOf(c, pair.To.Buffer), bytes: m.Bytes}
		copies = appendBox(copies, first, &c.graph.Buffers[pair.From.Buffer], pair.From.Box, &c.graph.Buffers[pair.To.Buffer], pair.To.Box)
	}
	for i := range copies {
		copies[i].first = i == 0
	}
	return copies
}

// planeOf is where a buffer begins in its memory.
func (r *Runner) planeOf(c *compiledGraph, b dag.BufferID) plane {
	m := c.placed.MemoryOf(b)
	if m == r.platform.HostMemory() {
		return plane{memory: m, host: unsafe.Pointer(unsafe.SliceData(r.arenas.storage(c.layout, c.graph, b)))}
	}
	return plane{memory: m, device: r.devices[m].address(c, b)}
}

// advance moves the start of a plane.
func (p *plane) advance(bytes int64) {
	if p.host != nil {
		p.host = unsafe.Add(p.host, bytes)
	} else {
		p.device += deviceAddr(bytes)
	}
}

// appendBox appends the copies that move a box of one buffer to a box of another. Both boxes have
// equal extents and element types and are row-major. at is a copy between the starts of the
// buffers. The inner dimensions that are contiguous in both make a row. The next dimension makes
// the rows of a copy, and the outer dimensions make several copies.
func appendBox(copies []deviceCopy, at deviceCopy, from *dag.Buffer, fromBox dag.Box, to *dag.Buffer, toBox dag.Box) []deviceCopy {
	fromBox, toBox = wholeOr(fromBox, from), wholeOr(toBox, to)
	rank := len(fromBox)
	size := from.Type.SizeBytes()
	fromStride, toStride := byteStrides(from), byteStrides(to)
	extent := make([]int64, rank)
	for d := range rank {
		extent[d] = int64(fromBox[d].Len())
		at.from.advance(int64(fromBox[d].Lo) * fromStride[d])
		at.to.advance(int64(toBox[d].Lo) * toStride[d])
	}
	at.rows, at.rowBytes = 1, size
	inner := rank // first dimension of a row
	for inner > 0 && (extent[inner-1] == 1 || fromStride[inner-1] == at.rowBytes && toStride[inner-1] == at.rowBytes) {
		inner--
		at.rowBytes *= extent[inner]
	}
	at.from.pitch, at.to.pitch = at.rowBytes, at.rowBytes
	if inner > 0 {
		inner--
		at.rows, at.from.pitch, at.to.pitch = extent[inner], fromStride[inner], toStride[inner]
	}
	var walk func(d int, at deviceCopy)
	walk = func(d int, at deviceCopy) {
		if d == inner {
			copies = append(copies, at)
			return
		}
		for i := range extent[d] {
			next := at
			next.from.advance(i * fromStride[d])
			next.to.advance(i * toStride[d])
			walk(d+1, next)
		}
	}
	walk(0, at)
	return copies
}

func wholeOr(box dag.Box, b *dag.Buffer) dag.Box {
	if box != nil {
		return box
	}
	for _, e := range b.Shape {
		box = append(box, dag.Range{Lo: 0, Hi: e})
	}
	return box
}

// byteStrides is the distance in bytes between neighbours, per dimension.
func byteStrides(b *dag.Buffer) []int64 {
	strides := make([]int64, len(b.Shape))
	step := b.Type.SizeBytes()
	for d := len(strides) - 1; d >= 0; d-- {
		strides[d] = step
		step *= int64(b.Shape[d])
	}
	return strides
}

// do makes the move now, waits for it, and returns when it was, on the given clock. Nothing moves
// any more when it returns, not even after an error.
func (m *boundMove) do(now func() time.Duration) (schedule.Interval, error) {
	d := m.device
	start := now()
	err := d.do(func() error {
		stream := d.copyStream(m.To == d.memory)
		err := m.through(stream)
		if err != nil { // if the device fails again, there is nothing left to wait for
			_ = d.finish(stream)
		}
		return err
	})
	return schedule.Interval{Start: start, End: now()}, err
}

// through makes the move on a stream.
func (m *boundMove) through(s streamID) error {
	for i := range m.copies {
		if err := m.device.driver.copy(s, &m.copies[i]); err != nil {
			return err
		}
	}
	return m.device.finish(s)
}

// enter makes the moves before the first step. Inputs stay where they are from run to run, unless
// the caller has asked for their bytes since.
func (r *Runner) enter(j *job) error {
	j.entered = make([]schedule.Interval, len(j.graph.enter))
	for i := range j.graph.enter {
		m := &j.graph.enter[i]
		asked := 1 + r.asked.of(j.graph.origin.Buffers[m.Buffer].Name)
		if m.Anywhere && m.current == asked {
			continue
		}
		var err error
		if j.entered[i], err = m.do(j.now); err != nil {
			return &deviceError{m.device.name, fmt.Errorf("move buffer %q there: %w", j.graph.origin.Buffers[m.Buffer].Name, err)}
		}
		m.current = asked
	}
	return nil
}

// leave moves contents home that are valid only elsewhere after the last step. A lost device
// gives nothing back.
func (r *Runner) leave(j *job) error {
	if failure := j.failure.Load(); failure != nil && errors.Is(*failure, errDeviceLost) {
		return nil
	}
	if j.dynamic != nil && r.spread {
		return r.leaveOnDemand(j)
	}
	for i := range j.graph.leave {
		m := &j.graph.leave[i]
		if _, err := m.do(j.now); err != nil {
			return &deviceError{m.device.name, fmt.Errorf("move buffer %q home: %w", j.graph.origin.Buffers[m.Buffer].Name, err)}
		}
	}
	return nil
}
