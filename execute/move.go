package execute

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
)

// boundMove is a move before the first or after the last step of a run.
type boundMove struct {
	*place.Move
	device *device
	copies []driver.Copy
	wired  *wiredMove // between nodes; nil where it is none of this rank's
	// made says that the caller has not asked for the source since the last move. An input that
	// no task writes moves again only if the caller has. Hooks may ask at the same time.
	made atomic.Bool
}

// forgetMoves makes the next run move a buffer for which the caller asks.
func (r *Runner) forgetMoves(name string) {
	for _, c := range r.graphs {
		for _, m := range c.enter {
			if c.origin.Buffers[m.Buffer].Name == name {
				m.made.Store(false)
			}
		}
	}
}

// copiesOf splits a move in a step into copies of rows at equal distances. A task makes the move, or
// none does (t < 0).
func (r *Runner) copiesOf(c *compiledGraph, m *place.Move, t dag.TaskID, step int32) []driver.Copy {
	var copies []driver.Copy
	for _, pair := range c.placed.Pairs(m, t) {
		first := driver.Copy{From: r.planeOf(c, c.placed.MemoryOf(pair.From.Buffer), pair.From.Buffer, step),
			To: r.planeOf(c, c.placed.MemoryOf(pair.To.Buffer), pair.To.Buffer, step), Bytes: m.Bytes}
		copies = appendBox(copies, first, &c.graph.Buffers[pair.From.Buffer], pair.From.Box, &c.graph.Buffers[pair.To.Buffer], pair.To.Box)
	}
	for i := range copies {
		copies[i].First = i == 0
	}
	return copies
}

// planeOf is where a buffer begins in a memory, in a step.
func (r *Runner) planeOf(c *compiledGraph, m platform.MemoryID, b dag.BufferID, step int32) driver.Plane {
	if !r.part.mine(m) {
		return driver.Plane{Memory: m} // its rank has it
	}
	if m == r.part.host {
		return driver.Plane{Memory: m, Host: unsafe.Pointer(unsafe.SliceData(r.arenas.storage(c.layout, c.graph, b, step)))}
	}
	return driver.Plane{Memory: m, Device: r.devices[m].address(c, b, step)}
}

// advance moves the start of a plane.
func advance(p *driver.Plane, bytes int64) {
	if p.Host != nil {
		p.Host = unsafe.Add(p.Host, bytes)
	} else {
		p.Device += driver.Address(bytes)
	}
}

// appendBox appends the copies that move a box of one buffer to a box of another. Both boxes have
// equal extents and element types and are row-major. at is a copy between the starts of the
// buffers. The inner dimensions that are contiguous in both make a row. The next dimension makes
// the rows of a copy, and the outer dimensions make several copies.
func appendBox(copies []driver.Copy, at driver.Copy, from *dag.Buffer, fromBox dag.Box, to *dag.Buffer, toBox dag.Box) []driver.Copy {
	fromBox, toBox = wholeOr(fromBox, from), wholeOr(toBox, to)
	rank := len(fromBox)
	size := from.Type.SizeBytes()
	fromStride, toStride := byteStrides(from), byteStrides(to)
	extent := make([]int64, rank)
	for d := range rank {
		extent[d] = int64(fromBox[d].Len())
		advance(&at.From, int64(fromBox[d].Lo)*fromStride[d])
		advance(&at.To, int64(toBox[d].Lo)*toStride[d])
	}
	at.Rows, at.RowBytes = 1, size
	inner := rank // first dimension of a row
	for inner > 0 && (extent[inner-1] == 1 || fromStride[inner-1] == at.RowBytes && toStride[inner-1] == at.RowBytes) {
		inner--
		at.RowBytes *= extent[inner]
	}
	at.From.Pitch, at.To.Pitch = at.RowBytes, at.RowBytes
	if inner > 0 {
		inner--
		at.Rows, at.From.Pitch, at.To.Pitch = extent[inner], fromStride[inner], toStride[inner]
	}
	var walk func(d int, at driver.Copy)
	walk = func(d int, at driver.Copy) {
		if d == inner {
			copies = append(copies, at)
			return
		}
		for i := range extent[d] {
			next := at
			advance(&next.From, i*fromStride[d])
			advance(&next.To, i*toStride[d])
			walk(d+1, next)
		}
	}
	walk(0, at)
	return copies
}

func wholeOr(box dag.Box, b *dag.Buffer) dag.Box {
	if box == nil {
		return dag.Whole(b.Shape)
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
func (m *boundMove) do(now func() time.Duration, ranks *Ranks) (schedule.Interval, error) {
	d := m.device
	start := now()
	if m.wired != nil {
		err := ranks.move(m.wired)
		return schedule.Interval{Start: start, End: now()}, err
	}
	err := d.Do(func() error {
		stream := d.copyStream(m.To == d.memory)
		err := cmp.Or(d.start(stream, &deviceTask{launch: -1, copies: m.copies}), d.Finish(stream))
		if err != nil {
			d.Finish(stream) // the mark may be what failed: copies before it are under way
		}
		return err
	})
	return schedule.Interval{Start: start, End: now()}, err
}

// failure names the device of a move that failed.
func (m *boundMove) failure(err error) error {
	if m.device == nil {
		return err
	}
	return &deviceError{m.device.name, err}
}

// enter makes the moves before the first step. Inputs stay where they are from run to run, unless
// the caller has asked for their bytes since.
func (r *Runner) enter(j *job) error {
	if err := r.opt.Ranks.sendStates(j.graph.states); err != nil {
		return err
	}
	j.entered = make([]schedule.Interval, len(j.graph.enter))
	for i, m := range j.graph.enter {
		if m.Anywhere && (m.made.Load() || m.wired != nil) { // each rank has it made itself
			continue
		}
		if m.device == nil && m.wired == nil {
			continue
		}
		var err error
		if j.entered[i], err = m.do(j.now, r.opt.Ranks); err != nil {
			return m.failure(fmt.Errorf("move buffer %q there: %w", j.graph.origin.Buffers[m.Buffer].Name, err))
		}
		m.made.Store(true)
	}
	return nil
}

// leave moves contents home that are valid only elsewhere after the last step. A lost device
// gives nothing back.
func (r *Runner) leave(j *job) error {
	if failure := j.failure.Load(); failure != nil && (errors.Is(*failure, driver.ErrLost) || r.opt.Ranks != nil) {
		return nil
	}
	for _, m := range j.graph.leave {
		if m.device == nil && m.wired == nil {
			continue
		}
		if _, err := m.do(j.now, r.opt.Ranks); err != nil {
			return m.failure(fmt.Errorf("move buffer %q home: %w", j.graph.origin.Buffers[m.Buffer].Name, err))
		}
	}
	return nil
}
