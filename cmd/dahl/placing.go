package main

import (
	"errors"
	"fmt"

	"dahl/execute"
	"dahl/schedule"
)

// deviceWorkers is the number of workers that are not cores.
func (w *workload) deviceWorkers() (n int) {
	for _, worker := range w.platform.Workers {
		if w.platform.Devices[worker.Device].Kind != "cpu" {
			n++
		}
	}
	return n
}

// layOutDevices gives the storages their places in the memories of devices, for a policy
// that decides at run time what is there. What the arenas take together is the most that
// such a memory can come to hold. The prediction has what shares bytes there share them.
func (w *workload) layOutDevices(costs []*schedule.Costs) error {
	layouts, err := schedule.LayoutOnDemand(w.program, w.platform, costs, execute.ScratchByMemory(w.program, w.platform, costs, w.opts.Variant))
	if err != nil {
		return asInput(err)
	}
	host := w.platform.HostMemory()
	for i := range w.parts {
		p := &w.parts[i]
		layouts[i][host] = p.layout
		p.layouts, p.problem.Layouts = layouts[i], layouts[i]
	}
	return nil
}

// place makes the copies between memories tasks and lays out every memory. The plans then
// say all of it, so that whoever replays them does the same.
func (w *workload) place(plans []*schedule.Plan, costs []*schedule.Costs) error {
	var err error
	if w.placed, err = schedule.Place(w.program, w.platform, plans, costs, execute.ScratchByMemory(w.program, w.platform, costs, w.opts.Variant)); err != nil {
		return asInput(w.hintRoom(err))
	}
	for i := range w.parts {
		w.parts[i].plan = w.placed.Record(i, plans[i])
		w.parts[i].layouts = w.placed.Graphs[i].Layouts
	}
	return nil
}

// hintRoom says what needs less room than a plan, where that is what is missing.
func (w *workload) hintRoom(err error) error {
	room := (*schedule.RoomError)(nil)
	if !errors.As(err, &room) || w.opts.Plan != "" || room.Memory == w.platform.Memories[w.platform.HostMemory()].Name {
		return err
	}
	return fmt.Errorf("%w; take a smaller --batch, or --policy dmdar, which moves parts of what a plan keeps whole", err)
}
