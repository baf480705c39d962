package schedule

import (
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// handoffs tells whether a processor or a device made a task ready. The waiting unit reads the count of a processor
// itself. The host has to see the end of a device's task first (Device.HandoffToCPU). The type goes by that number
// and not by the kinds of devices.
type handoffs struct {
	p     *platform.Platform
	links *dag.Links
	toCPU time.Duration // the greatest HandoffToCPU of all devices

	orders  []dag.Rows      // predecessors by orders that links lacks, by the steps between
	running []dag.Instance  // by worker: the instance it began last
	ended   []time.Duration // by task: the end of its last instance on a device without HandoffToCPU; -1: none ended
}

// newHandoffs is nil where processors learn of all ends in the same way.
func newHandoffs(p *Problem, links *dag.Links, orders [][]dag.Edge) *handoffs {
	h := &handoffs{p: p.Platform, links: links}
	for i := range p.Platform.Devices {
		h.toCPU = max(h.toCPU, p.Platform.Devices[i].HandoffToCPU)
	}
	if h.toCPU == 0 {
		return nil
	}
	n := links.NumTasks()
	for _, edges := range orders {
		h.orders = append(h.orders, dag.NewRows(n, dag.Turn(edges)))
	}
	h.running, h.ended = make([]dag.Instance, len(p.Platform.Workers)), slices.Repeat([]time.Duration{-1}, n)
	return h
}

// begin notes the instance that a worker begins.
func (h *handoffs) begin(i dag.Instance, w platform.WorkerID) {
	if h != nil {
		h.running[w] = i
	}
}

// end notes when that instance will end.
func (h *handoffs) end(w platform.WorkerID, at time.Duration) {
	if h != nil && h.p.Devices[h.p.Workers[w].Device].HandoffToCPU == 0 {
		h.ended[h.running[w].Task] = at
	}
}

// seen is the time that the host takes to see the event behind a ready task. Zero means that the task's unit sees it
// itself, as it does the start of the run.
func (h *handoffs) seen(i dag.Instance, d *platform.Device, ready time.Duration) time.Duration {
	if h == nil || d.HandoffToCPU > 0 || ready == 0 || h.byProcessor(i, ready) {
		return 0
	}
	return h.toCPU
}

// byProcessor reports whether a predecessor on a processor ended when a task became ready. Then no event of a device
// did it. Only one step can have a predecessor with that end, since ends only grow.
func (h *handoffs) byProcessor(i dag.Instance, ready time.Duration) bool {
	ended := func(preds []int32) bool {
		return slices.ContainsFunc(preds, func(t int32) bool { return h.ended[t] == ready })
	}
	for back := range h.links.Reach() + 1 {
		if preds := h.links.PredsBack(i.Task, back); ended(preds[0]) || ended(preds[1]) {
			return true
		}
	}
	return slices.ContainsFunc(h.orders, func(o dag.Rows) bool { return ended(o.Row(int32(i.Task))) })
}
