package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// CutCost is what the tasks of a layer take on one unit of a device, with the layer whole or cut along one dimension. All other
// layers are whole. What a cut takes more is what all tasks of the step take more: rows that two tasks read or compute, work
// that fills a device less, dispatches, sums of parts, and layers that one task no longer computes together with this one.
type CutCost struct {
	Layer  string `json:"layer"`
	Device string `json:"device"` // or the kind, or several names, where all of it is the same
	Cut    string `json:"cut"`    // the dimension, or Uncut
	Work
}

// Uncut is the cut of a layer that is whole.
const Uncut = "none"

// Work is what some tasks take on one unit while all units of its device work.
type Work struct {
	Tasks    int           `json:"tasks"`
	Bytes    int64         `json:"bytes"`      // read and written
	Forward  time.Duration `json:"forward_ns"` // with dispatches, as the others
	Backward time.Duration `json:"backward_ns"`
	Sums     time.Duration `json:"sums_ns"` // of parts to which several tasks have added
	Joules   float64       `json:"joules"`  // above idle

	others int // tasks that the device cannot run
}

// Time is that of all tasks.
func (w *Work) Time() time.Duration { return w.Forward + w.Backward + w.Sums }

// add counts the tasks of a layer on a device some times; "": of all layers.
func (w *Work) add(times int, of *schedule.Priced, d platform.DeviceID, layer string) {
	g, costs, device := of.Program.Graphs[0], of.Costs(0), &of.Platform.Devices[d]
	watts := device.WattsAboveIdle(device.AtClock, device.Count)
	for t := range g.Tasks {
		task := &g.Tasks[t]
		if layer != "" && task.Labels.Layer != layer {
			continue
		}
		cost, ok := costs.Of(dag.TaskID(t), d)
		if !ok {
			w.others += times
			continue
		}
		part := &w.Backward
		switch task.Labels.Phase {
		case "forward":
			part = &w.Forward
		case "reduce":
			part = &w.Sums
		}
		*part += time.Duration(times) * (device.Dispatch + cost.Duration)
		w.Tasks += times
		w.Bytes += int64(times) * task.MovedBytes
		joules := cost.Joules
		if joules == 0 {
			joules = watts * cost.Duration.Seconds()
		}
		w.Joules += float64(times) * joules
	}
}

// CutOf names a layer and the dimension along which it is cut.
type CutOf struct {
	Layer string
	Along dag.Dimension
}

// CutCosts lists what cuts cost, by layer, device and cut. Price makes the step with all layers whole, -1, or with one of the
// cuts, by its number. Cuts that leave the graph as it is are left out, and so are devices without a kernel for some task. The
// cuts of a layer follow each other.
func CutCosts(ctx context.Context, cuts []CutOf, price func(cut int) (*schedule.Priced, error)) ([]CutCost, error) {
	whole, err := price(-1)
	if err != nil {
		return nil, err
	}
	devices := len(whole.Platform.Devices)
	table := make([][]CutCost, devices) // by device
	for i, cut := range cuts {
		priced, err := price(i)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if priced.Program.Graphs[0].Hash() == whole.Program.Graphs[0].Hash() {
			continue
		}
		for d := range platform.DeviceID(devices) {
			c := CutCost{Layer: cut.Layer, Cut: Uncut}
			c.add(1, whole, d, cut.Layer)
			if n := len(table[d]); n == 0 || table[d][n-1].Layer != cut.Layer {
				table[d] = append(table[d], c)
			}
			c.Cut = cut.Along.String()
			c.add(1, priced, d, "")
			c.add(-1, whole, d, "")
			table[d] = append(table[d], c)
		}
	}
	return joined(whole.Platform, table), nil
}

// joined is the table of all devices, by layer. Those with equal tables are one.
func joined(p *platform.Platform, table [][]CutCost) (all []CutCost) {
	var layers []string
	for d := range table {
		table[d] = slices.DeleteFunc(table[d], func(c CutCost) bool { return c.others > 0 || p.Devices[d].PlacedOnly })
		for i := range table[d] {
			if !slices.Contains(layers, table[d][i].Layer) {
				layers = append(layers, table[d][i].Layer)
			}
		}
	}
	for _, layer := range layers {
		for d := range table {
			if sameTable(table, d)[0] != d {
				continue
			}
			for _, c := range table[d] {
				if c.Layer == layer {
					c.Device = nameOfAll(p, sameTable(table, d))
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// sameTable lists the devices with the table of one.
func sameTable(table [][]CutCost, of int) (devices []int) {
	for d := range table {
		if slices.Equal(table[d], table[of]) {
			devices = append(devices, d)
		}
	}
	return devices
}

// nameOfAll is the kind of some devices if they are all of it, else their names.
func nameOfAll(p *platform.Platform, devices []int) string {
	kind, names := p.Devices[devices[0]].Kind, []string(nil)
	for _, d := range devices {
		names = append(names, p.Devices[d].Name)
	}
	if len(names) == len(slices.DeleteFunc(slices.Clone(p.Devices), func(d platform.Device) bool { return d.Kind != kind || d.PlacedOnly })) {
		return kind
	}
	return strings.Join(names, ",")
}
