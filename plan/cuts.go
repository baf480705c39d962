package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
)

// CutCost is the price of a layer's tasks on one unit of a device, with the layer whole or cut along one dimension. All other
// layers are whole. The extra time of a cut covers all tasks of the step: rows that two tasks read or compute, worse use of the
// device, dispatches, sums of parts, and lost fusions with other layers.
type CutCost struct {
	Layer  string `json:"layer"`
	Device string `json:"device"` // or the kind as lists of devices name it, or several names, where all of it is the same
	Cut    string `json:"cut"`    // the dimension, or Uncut
	Work
}

// Uncut is the cut of a layer that is whole.
const Uncut = "none"

// Work is the price of some tasks on one unit while all units of its device work.
type Work struct {
	Tasks    int           `json:"tasks"`
	Bytes    int64         `json:"bytes"`      // read and written
	Forward  time.Duration `json:"forward_ns"` // with dispatches, as the others
	Backward time.Duration `json:"backward_ns"`
	Sums     time.Duration `json:"sums_ns"` // of parts to which several tasks have added
	Joules   float64       `json:"joules"`  // above idle

	others int // tasks that the device cannot run
}

// Time is the time of all tasks.
func (w *Work) Time() time.Duration { return w.Forward + w.Backward + w.Sums }

// add counts the tasks of a layer on a device some times; "" means of all layers.
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

// cutParts is the number of parts of a layer whose price is asked.
const cutParts = 2

// CutCosts lists what it costs to cut single layers in two, by layer, device and dimension. Price makes the step of a lowering. Cuts
// that leave the graph as it is are left out, and so are devices without a kernel for some task.
func CutCosts(ctx context.Context, n *tiling.Network, price func(dag.Lowering) (*schedule.Priced, error)) ([]CutCost, error) {
	whole, err := price(n.OfBatch(1))
	if err != nil {
		return nil, err
	}
	table := make([][]CutCost, len(whole.Platform.Devices)) // by device
	for _, layer := range layersOf(whole.Program.Graphs[0]) {
		extents, first := n.Extents[layer], true
		for along := range dag.NumDimensions {
			if *extents.Forward.Of(along) < 2 {
				continue
			}
			priced, err := price(n.Alone(layer, cutParts, along))
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return nil, err
			}
			if priced.Program.Graphs[0].Hash() == whole.Program.Graphs[0].Hash() {
				continue
			}
			for d := range table {
				table[d] = append(table[d], rowsOf(layer, along, whole, priced, platform.DeviceID(d), first)...)
			}
			first = false
		}
	}
	return joined(whole.Platform, table), nil
}

// rowsOf returns the prices of a cut layer on a device and, at the first cut, of the whole layer before it.
func rowsOf(layer string, along dag.Dimension, whole, cut *schedule.Priced, d platform.DeviceID, first bool) (rows []CutCost) {
	c := CutCost{Layer: layer, Cut: Uncut}
	c.add(1, whole, d, layer)
	if first {
		rows = append(rows, c)
	}
	c.Cut = along.String()
	c.add(1, cut, d, "")
	c.add(-1, whole, d, "")
	return append(rows, c)
}

// layersOf lists the layers of a graph in its order.
func layersOf(g *dag.Graph) (layers []string) {
	for t := range g.Tasks {
		if layer := g.Tasks[t].Labels.Layer; !slices.Contains(layers, layer) {
			layers = append(layers, layer)
		}
	}
	return layers
}

// LayersByWork lists the layers with tasks, the layer with the most operations first.
func LayersByWork(g *dag.Graph) []string {
	work := map[string]float64{}
	for i := range g.Tasks {
		work[g.Tasks[i].Labels.Layer] += g.Tasks[i].Flops
	}
	return slices.SortedFunc(maps.Keys(work), func(a, b string) int {
		return cmp.Or(cmp.Compare(work[b], work[a]), cmp.Compare(a, b))
	})
}

// joined is the table of all devices, by layer. Those with equal tables are one.
func joined(p *platform.Platform, table [][]CutCost) (all []CutCost) {
	var layers []string
	for d := range table {
		for _, c := range table[d] {
			if !slices.Contains(layers, c.Layer) {
				layers = append(layers, c.Layer)
			}
		}
		table[d] = slices.DeleteFunc(table[d], func(c CutCost) bool { return c.others > 0 || p.Devices[d].PlacedOnly })
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
		return p.ListName(kind)
	}
	return strings.Join(names, ",")
}
