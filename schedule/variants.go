package schedule

import (
	"fmt"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// Variants says which implementation each call runs on each device: variant by device and by
// call, written as "operation type shape". The platform's models decide for all others.
type Variants map[string]map[string]string

// CallName is the name of the call of a task in [Variants].
func CallName(t *dag.Task) string { return t.Op + " " + t.Type.String() + " " + t.Shape }

// nameOf is the variant of a task on a device, "" where it is left open.
func (v Variants) nameOf(device string, t *dag.Task) string {
	if len(v) == 0 {
		return ""
	}
	return v[device][CallName(t)]
}

// Variants lists the variants that the costs fix for a graph.
func (c *Costs) Variants(g *dag.Graph, p *platform.Platform) Variants {
	all := Variants{}
	for t := range g.Tasks {
		for d := range p.Devices {
			cost, ok := c.Of(dag.TaskID(t), platform.DeviceID(d))
			if !ok || cost.Variant == "" {
				continue
			}
			device := p.Devices[d].Name
			if all[device] == nil {
				all[device] = map[string]string{}
			}
			all[device][CallName(&g.Tasks[t])] = cost.Variant
		}
	}
	return all
}

// Check reports devices and calls that the graph and the platform do not have.
func (v Variants) Check(g *dag.Graph, p *platform.Platform) error {
	if len(v) == 0 {
		return nil
	}
	calls := map[string]bool{}
	for t := range g.Tasks {
		calls[CallName(&g.Tasks[t])] = true
	}
	for _, device := range slices.Sorted(maps.Keys(v)) {
		if !slices.ContainsFunc(p.Devices, func(d platform.Device) bool { return d.Name == device }) {
			return fmt.Errorf("variants: platform %q has no device %q", p.Name, device)
		}
		for _, call := range slices.Sorted(maps.Keys(v[device])) {
			if !calls[call] {
				return fmt.Errorf("variants: graph %q has no call %q; write operation, type and shape as dahl graph shows them", g.Name, call)
			}
			if v[device][call] == "" {
				return fmt.Errorf("variants: %q on %q has an empty variant", call, device)
			}
		}
	}
	return nil
}
