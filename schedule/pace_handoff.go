package schedule

import (
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// handoffs tells by whom the tasks of processors become ready: by another processor's
// task, which writes what they look at, or by a device, whose host has to see the end first
// (Device.HandoffToCPU). It is for platforms where that is known.
type handoffs struct {
	p     *platform.Platform
	links *dag.Links
	toCPU time.Duration // the longest of all devices

	reuse, reuseNext rows            // predecessors by orders beyond those of links
	running          []Instance      // by worker: what it began last
	ended            []time.Duration // by task: when its last instance on a processor did, -1: none has
}

// newHandoffs is nil where processors learn of all ends alike.
func newHandoffs(p *Problem, links *dag.Links, reuse, reuseNext []Edge) *handoffs {
	h := &handoffs{p: p.Platform, links: links}
	for i := range p.Platform.Devices {
		h.toCPU = max(h.toCPU, p.Platform.Devices[i].HandoffToCPU)
	}
	if h.toCPU == 0 {
		return nil
	}
	n := links.NumTasks()
	h.reuse, h.reuseNext = newRows(n, turned(reuse)), newRows(n, turned(reuseNext))
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
	if h != nil && h.p.Devices[h.p.Workers[w].Device].Kind == "cpu" {
		h.ended[h.running[w].Task] = at
	}
}

// byDevice reports whether a processor's task became ready by what a device did: after the
// start of the run, and not when a predecessor ended on a processor. A predecessor of the
// same time in another step than the one that counts cannot be, since ends only grow.
func (h *handoffs) byDevice(i Instance, d *platform.Device, ready time.Duration) bool {
	if h == nil || d.Kind != "cpu" || ready == 0 {
		return false
	}
	g := h.links
	for _, preds := range [][]int32{g.Preds(i.Task), g.CarriedPreds(i.Task), g.ReusePreds(i.Task), h.reuse.of(i.Task), h.reuseNext.of(i.Task)} {
		for _, t := range preds {
			if h.ended[t] == ready {
				return false
			}
		}
	}
	return true
}
