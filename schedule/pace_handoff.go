package schedule

import (
	"slices"
	"time"

	"dahl/platform"
)

// handoffs tells by whom tasks become ready: by a task that writes what the waiting unit
// looks at, as on processors, or by a device whose end the host has to see first
// (Device.HandoffToCPU). It is for platforms where that is known. It goes by that number and
// not by the kinds of the devices.
type handoffs struct {
	p     *Problem
	toCPU time.Duration // the longest of all devices

	reuse, reuseNext rows            // predecessors by Problem.Reuse and Problem.ReuseNext
	running          []Instance      // by worker: what it began last
	ended            []time.Duration // by task: when its last instance without a HandoffToCPU did, -1: none has
}

// newHandoffs is nil where all ends are learnt of alike.
func newHandoffs(p *Problem) *handoffs {
	h := &handoffs{p: p}
	for i := range p.Platform.Devices {
		h.toCPU = max(h.toCPU, p.Platform.Devices[i].HandoffToCPU)
	}
	if h.toCPU == 0 {
		return nil
	}
	n := len(p.Graph.Tasks)
	h.reuse, h.reuseNext = newRows(n, turned(p.Reuse)), newRows(n, turned(p.ReuseNext))
	h.running, h.ended = make([]Instance, len(p.Platform.Workers)), slices.Repeat([]time.Duration{-1}, n)
	return h
}

// turned are edges from their ends to their begins.
func turned(edges []Edge) []Edge {
	back := make([]Edge, len(edges))
	for i, e := range edges {
		back[i] = Edge{e.To, e.From}
	}
	return back
}

// begin notes what a worker begins.
func (h *handoffs) begin(i Instance, w platform.WorkerID) {
	if h != nil {
		h.running[w] = i
	}
}

// end notes when it will end.
func (h *handoffs) end(w platform.WorkerID, at time.Duration) {
	if h != nil && h.p.Platform.Devices[h.p.Platform.Workers[w].Device].HandoffToCPU == 0 {
		h.ended[h.running[w].Task] = at
	}
}

// byDevice reports whether a task became ready by what the host has to see first: after the
// start of the run, and not when a predecessor ended whose end needs no host. A predecessor of
// the same time in another step than the one that counts cannot be, since ends only grow.
func (h *handoffs) byDevice(i Instance, d *platform.Device, ready time.Duration) bool {
	if h == nil || d.HandoffToCPU > 0 || ready == 0 {
		return false
	}
	g := h.p.Graph
	for _, preds := range [][]int32{g.Preds(i.Task), g.CarriedPreds(i.Task), g.ReusePreds(i.Task), h.reuse.of(i.Task), h.reuseNext.of(i.Task)} {
		for _, t := range preds {
			if h.ended[t] == ready {
				return false
			}
		}
	}
	return true
}
