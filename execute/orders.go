package execute

import (
	"slices"
	"sync"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// order is a task or a copy that a policy gives to a device.
type order struct {
	instance dag.Instance      // the task, or the one that needs the copy
	worker   platform.WorkerID // -1: a copy
	copy     schedule.CopyID
	transfer *schedule.Transfer // the Engine's, unchanged until the copy is reported
}

// orderBox is what was handed to a device and is not taken yet.
type orderBox struct {
	mu     sync.Mutex
	handed []order
	taken  []order // orders taken last; the slice is used again
}

// hand gives the device something to do. The dispatcher calls it.
func (d *device) hand(o order) {
	d.orders.mu.Lock()
	d.orders.handed = append(d.orders.handed, o)
	d.orders.mu.Unlock()
	if d.poller.asleep.Load() { // otherwise the device will look by itself
		d.poller.parker.wake()
	}
}

// forgetOrders drops the orders that an interrupted run left.
func (r *Runner) forgetOrders() {
	for d := range r.eachDevice {
		d.orders.handed = d.orders.handed[:0]
		for _, l := range d.lanes {
			l.queue.waiting, l.queue.moved = l.queue.waiting[:0], nil
		}
	}
}

// orderQueue is what a policy has given to a lane of a device.
type orderQueue struct {
	waiting []order // not issued

	// For the order with the count n, of the last inFlight orders: the order and its copies, at n
	// % inFlight.
	issued [inFlight]order
	copies [inFlight][]deviceCopy

	moved []schedule.Transfer // of a recorded run: the transfer of each span on a lane of copies
}

// receive takes the orders handed to the device and gives them to its lanes. A copy goes to the
// lane with the least to do.
func (u *issueLoop) receive() (busy bool) {
	box := &u.orders
	box.mu.Lock()
	box.handed, box.taken = box.taken[:0], box.handed
	box.mu.Unlock()
	for _, o := range box.taken {
		var to *deviceLane
		for _, l := range u.lanes {
			if l.Worker != o.worker || o.transfer != nil && l.In != (o.transfer.To == u.memory) {
				continue
			}
			if to == nil || l.load() < to.load() {
				to = l
			}
		}
		to.queue.waiting = append(to.queue.waiting, o)
	}
	return len(box.taken) > 0
}

// load is the number of orders that a lane has and has not done.
func (l *deviceLane) load() int64 { return l.issued - l.ended + int64(len(l.queue.waiting)) }

// take puts the order that has waited longest into a slot.
func (q *orderQueue) take(slot int64) {
	q.issued[slot] = q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
}

// startOrder issues the order taken last.
func (u *issueLoop) startOrder(l *deviceLane) error {
	q, slot := l.queue, l.issued%inFlight
	o, t := &q.issued[slot], deviceTask{launch: -1}
	if o.transfer == nil {
		t.launch = u.job.graph.launches[l.id][o.instance.Task]
	} else {
		q.copies[slot] = u.job.graph.appendTransfer(q.copies[slot][:0], o.transfer)
		t.copies = q.copies[slot]
	}
	return u.start(l.stream, &t)
}

// report tells the Engine of finished orders, from a count on.
func (u *issueLoop) report(l *deviceLane, from int64) {
	for n := from; n < l.ended; n++ {
		o := &l.queue.issued[n%inFlight]
		if o.transfer != nil && u.job.record {
			t := *o.transfer
			t.Atoms = slices.Clone(t.Atoms)
			l.queue.moved = append(l.queue.moved, t)
		}
		u.job.dynamic.done(u.job, o.worker, o.copy, u.job.now())
	}
}

// atomRows are rows of one atom, at equal distances: where the first begins in the storage, and
// how far apart they lie.
type atomRows struct{ offset, rows, rowBytes, pitch int64 }

// rowsOf cuts every atom of a graph into rows. They lie alike in every memory.
func rowsOf(g *dag.Graph) [][]atomRows {
	rows := make([][]atomRows, g.NumAtoms())
	for a := range rows {
		storage := &g.Buffers[g.AtomStorage(dag.AtomID(a))]
		shape, boxes := g.AtomBoxes([]int32{int32(a)})
		whole := dag.Buffer{Type: storage.Type, Shape: shape}
		var copies []deviceCopy
		for _, box := range boxes {
			copies = appendBox(copies, deviceCopy{}, &whole, box, &whole, box)
		}
		for _, c := range copies {
			rows[a] = append(rows[a], atomRows{int64(c.from.device), c.rows, c.rowBytes, c.from.pitch})
		}
	}
	return rows
}

// appendTransfer appends the copies of a transfer. Rows that follow each other without a gap move
// as one.
func (c *compiledGraph) appendTransfer(copies []deviceCopy, t *schedule.Transfer) []deviceCopy {
	from, to := c.planes[t.From][t.Buffer], c.planes[t.To][t.Buffer]
	end := int64(-1) // where the last copy ends in the storage, if it is one row
	for _, a := range t.Atoms {
		for _, p := range c.rows[a] {
			if p.rows == 1 && p.offset == end {
				last := &copies[len(copies)-1]
				last.rowBytes += p.rowBytes
				last.from.pitch, last.to.pitch = last.rowBytes, last.rowBytes
				end += p.rowBytes
				continue
			}
			part := deviceCopy{from: from, to: to, rows: p.rows, rowBytes: p.rowBytes, bytes: t.Bytes, first: len(copies) == 0}
			part.from.advance(p.offset)
			part.to.advance(p.offset)
			part.from.pitch, part.to.pitch = p.pitch, p.pitch
			copies = append(copies, part)
			if end = -1; p.rows == 1 {
				end = p.offset + p.rowBytes
			}
		}
	}
	return copies
}
