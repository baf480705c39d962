package platform

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dahl/naming"
)

// AnyGPU selects every device of a kind that is not a processor.
const AnyGPU = "gpu"

// Select returns the platform on which only some devices run tasks. The list names devices, kinds
// or AnyGPU, separated by commas; "cpu:4" takes the first four units of a name. In a cluster it may name
// nodes, "n0" or "n0…n3", classes of them, and parts, "n0…n3.gpu0" or "n.cpu". The receiver is not changed.
//
// A node of which no device is selected is off, if it may be, and draws its OffWatts in all.
//
// It is still the same machine. Memories, links and routes stay. The watts of units left out
// are added to HostPower, so that joules of two selections can be compared: a device without any
// unit left is off if it may be, a unit that falls asleep by itself sleeps in its
// last state, and others idle. If no processor is
// selected, one unit of the host's stays for tasks placed on it, such as tasks of the program
// itself (PlacedOnly). Every call keeps the variant that is fastest on the whole machine.
// Selecting again by the same list changes nothing.
func (p *Platform) Select(list string) (*Platform, error) {
	keep := make([]int, len(p.Devices)) // units, by device
	for item := range strings.SplitSeq(list, ",") {
		if err := p.selectItem(strings.TrimSpace(item), keep); err != nil {
			return nil, err
		}
	}
	q := *p
	q.Devices, q.Nodes = slices.Clone(p.Devices), slices.Clone(p.Nodes)
	q.keepHost(keep)
	for d := range q.Devices {
		q.shrink(DeviceID(d), keep[d])
	}
	q.turnNodesOff(keep)
	q.Devices = slices.DeleteFunc(q.Devices, func(d Device) bool { return d.Count == 0 })
	called := q.calledByModels()
	q.Models = slices.DeleteFunc(slices.Clone(p.Models), func(m Model) bool {
		return !called[m.Device]
	})
	return &q, q.Complete()
}

// WithCores is the platform with another number of units of its processor. Fewer are as if
// Select chose them: the others idle. More are made up.
func (p *Platform) WithCores(n int) (*Platform, error) {
	var cpus []int
	list := make([]string, len(p.Devices))
	for i := range p.Devices {
		d := &p.Devices[i]
		if list[i] = d.Name; d.IsProcessor() {
			cpus, list[i] = append(cpus, i), fmt.Sprintf("%s:%d", d.Name, n)
		}
	}
	if len(cpus) != 1 {
		return nil, fmt.Errorf("platform %q has %d processors", p.Name, len(cpus))
	}
	if n <= p.Devices[cpus[0]].Count {
		return p.Select(strings.Join(list, ","))
	}
	q := *p
	q.Devices, q.Models = slices.Clone(p.Devices), slices.Clone(p.Models)
	d := &q.Devices[cpus[0]]
	d.Whole, d.Count = cmp.Or(d.Whole, d.Count), n
	return &q, q.Complete()
}

// Whole is the platform with all units that its devices have in the machine, at their first clocks and without caps. Watts are not
// changed. What is chosen for it depends on no number of units. A platform without any difference is returned as it is.
func (p *Platform) Whole() (*Platform, error) {
	some := func(d Device) bool { return d.Whole > 0 && d.Count != d.Whole && !d.PlacedOnly }
	if p = p.AtClocks(0); !p.HasCaps() && !slices.ContainsFunc(p.Devices, some) {
		return p, nil
	}
	q := *p
	q.CapWatts, q.Devices, q.Nodes = 0, slices.Clone(p.Devices), slices.Clone(p.Nodes)
	for i := range q.Nodes {
		q.Nodes[i].CapWatts = 0
	}
	for i := range q.Devices {
		d := &q.Devices[i]
		if d.CapWatts = 0; some(*d) {
			d.Count = d.Whole
		}
	}
	return &q, q.Complete()
}

// ListName is the name of a kind in a list for Select: AnyGPU if all devices but processors have this kind.
func (p *Platform) ListName(kind string) string {
	gpu := func(d Device) bool { return d.Kind == kind && !d.IsProcessor() }
	other := func(d Device) bool { return d.Kind != kind && !d.IsProcessor() }
	if slices.ContainsFunc(p.Devices, gpu) && !slices.ContainsFunc(p.Devices, other) {
		return AnyGPU
	}
	return kind
}

// Item writes some units of the device for a list for Select. Their number is left out where the whole machine has one.
func (d *Device) Item(units int) string {
	if d.Count == 1 && d.Whole <= 1 {
		return d.Name
	}
	return fmt.Sprintf("%s:%d", d.Name, units)
}

// List is all units of some devices as Select takes them, devices of a cluster as ranges.
func List(devices []*Device) string {
	var items []string
	for _, d := range devices {
		items = append(items, d.Item(d.Count))
	}
	if len(items) > 0 && strings.Contains(items[0], ".") {
		items = naming.Ranges(items)
	}
	return strings.Join(items, ",")
}

// Usable lists the devices that may run any task: all but those that stay for tasks placed on them.
func (p *Platform) Usable() (devices []*Device) {
	for i := range p.Devices {
		if d := &p.Devices[i]; !d.PlacedOnly {
			devices = append(devices, d)
		}
	}
	return devices
}

// selectItem notes the units that one item of a list stands for.
func (p *Platform) selectItem(item string, keep []int) error {
	name, count, counted := strings.Cut(item, ":")
	devices, each := p.devicesCalled(name)
	if len(devices) == 0 {
		return fmt.Errorf("platform %q has no device or kind %q; it has %s%s", p.Name, name, p.devicesText(), naming.DidYouMean(name, p.Selectable()))
	}
	units := 0
	for _, d := range devices {
		if keep[d] > 0 {
			return fmt.Errorf("device %q is selected twice", p.Devices[d].Name)
		}
		if units += p.Devices[d].Count; each {
			units = p.Devices[devices[0]].Count
		}
	}
	if counted {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > units {
			return fmt.Errorf("%q: platform %q has %d of %s; write %s:1 to %s:%d", item, p.Name, units, name, name, name, units)
		}
		units = n
	}
	for _, d := range devices {
		if keep[d] = min(units, p.Devices[d].Count); !each {
			units -= keep[d]
		}
	}
	return nil
}

// devicesCalled lists the devices of a name or kind. In a cluster the name may be of a node or a class of nodes, which stands for its
// devices, or "node.device" and "node.kind" of these, with ranges. A number of units is then one of each.
func (p *Platform) devicesCalled(name string) (found []DeviceID, each bool) {
	if d, ok := p.DeviceByName(name); ok {
		return []DeviceID{d}, false
	}
	for d := range p.Devices {
		if v := &p.Devices[d]; v.Kind == name || name == AnyGPU && !v.IsProcessor() {
			found = append(found, DeviceID(d))
		}
	}
	if len(found) == 0 {
		node, part, parted := strings.Cut(strings.ReplaceAll(name, "..", "…"), ".")
		for d := range p.Devices {
			if p.isCalled(&p.Devices[d], node, part, parted) {
				found = append(found, DeviceID(d))
			}
		}
		return found, true
	}
	return found, false
}

// isCalled reports whether a device belongs to a node or class of nodes, and whether its name there or its kind is a part.
func (p *Platform) isCalled(d *Device, node, part string, parted bool) bool {
	if len(p.Nodes) == 0 {
		return !parted && naming.InRange(node, d.Name)
	}
	of := &p.Nodes[p.NodeOf(d.Memory)]
	own := strings.TrimPrefix(d.Name, of.Name+".")
	return (naming.InRange(node, of.Name) || node == of.Class) &&
		(!parted || naming.InRange(part, own) || part == d.Kind || part == AnyGPU && !d.IsProcessor())
}

// Selectable lists the names that Select takes: of devices, of their kinds, and for all that are no processors.
func (p *Platform) Selectable() (list []string) {
	list = p.deviceNames()
	for i := range p.Devices {
		d := &p.Devices[i]
		if list = append(list, d.Kind); !d.IsProcessor() {
			list = append(list, AnyGPU)
		}
	}
	for i := range p.Nodes {
		list = append(list, p.Nodes[i].Name, cmp.Or(p.Nodes[i].Class, p.Nodes[i].Name))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (p *Platform) deviceNames() (list []string) {
	for i := range p.Devices {
		list = append(list, p.Devices[i].Name)
	}
	return list
}

// devicesText lists the devices for an error: "cpu (cpu, 8 units), gpu0 (cuda)"; devices of a cluster as ranges.
func (p *Platform) devicesText() string {
	if len(p.Nodes) > 0 {
		return strings.Join(naming.Ranges(p.deviceNames()), ", ")
	}
	var parts []string
	for i := range p.Devices {
		d := &p.Devices[i]
		units := ""
		if d.Count > 1 {
			units = fmt.Sprintf(", %d units", d.Count)
		}
		parts = append(parts, fmt.Sprintf("%s (%s%s)", d.Name, d.Kind, units))
	}
	return strings.Join(parts, ", ")
}

// keepHost keeps one unit of a processor if none is selected: the first at the host's memory,
// else the first.
func (p *Platform) keepHost(keep []int) {
	first, host := -1, p.HostMemory()
	if d := slices.IndexFunc(keep, func(units int) bool { return units > 0 }); d >= 0 && len(p.Nodes) > 0 {
		host = p.HostOf(p.Devices[d].Memory) // the first node with a device has the host's memory
	}
	for d := range p.Devices {
		if !p.Devices[d].IsProcessor() {
			continue
		}
		if keep[d] > 0 {
			return
		}
		if first < 0 || p.Devices[d].Memory == host && p.Devices[first].Memory != host {
			first = d
		}
	}
	if first >= 0 {
		keep[first] = 1
		p.Devices[first].PlacedOnly = true
	}
}

// shrink leaves a device n units. The watts of the others become the host's.
func (p *Platform) shrink(id DeviceID, n int) {
	d := &p.Devices[id]
	watts, sleeps := d.unusedWatts()
	left := float64(float64(d.Count-n) * watts)
	switch {
	case n == 0 && d.MayBeOff:
		left = d.OffWatts
		p.LeftOff = append(slices.Clone(p.LeftOff), d.Name)
	case sleeps && n < d.Count && !slices.Contains(p.LeftAsleep, d.Name):
		p.LeftAsleep = append(slices.Clone(p.LeftAsleep), d.Name)
	}
	if left > 0 {
		power := &p.HostPower
		if len(p.Nodes) > 0 {
			power = &p.Nodes[p.NodeOf(d.Memory)].HostPower
		}
		*power = Quantity{power.Value + left, leastTrusted(*power, d.PowerSource)}
	}
	if d.CapWatts > 0 { // of the units that stay
		d.CapWatts = max(math.SmallestNonzeroFloat64, d.CapWatts-left)
	}
	if n > 0 && n < d.Count {
		d.Whole = cmp.Or(d.Whole, d.Count)
		d.Busy = busyOfSome(d.Busy, d.Count, n, d.IdleWatts)
		d.Clocks = slices.Clone(d.Clocks)
		for i := range d.Clocks {
			c := &d.Clocks[i]
			c.Busy = busyOfSome(c.Busy, d.Count, n, c.Idle)
		}
	}
	d.Count = n
}

// turnNodesOff lets the nodes without a selected device be off, if they may.
func (p *Platform) turnNodesOff(keep []int) {
	used := make([]bool, len(p.Nodes))
	for d := range p.Devices {
		if len(used) > 0 && keep[d] > 0 {
			used[p.NodeOf(p.Devices[d].Memory)] = true
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.MayBeOff && !used[i] {
			n.Off, n.HostPower = true, Quantity{n.OffWatts, n.HostPower.Source}
		}
	}
	p.Links = slices.Clone(p.Links)
	for l, n := range p.NodesOfLinks() {
		if n != NoNode && int(n) < len(p.Nodes) && p.Nodes[n].Off {
			p.Links[l].IdleWatts, p.Links[l].Sleeps = 0, nil
		}
	}
}

// unusedWatts are the watts of a unit after a long time without work. sleeps says that it sleeps then.
func (d *Device) unusedWatts() (watts float64, sleeps bool) {
	for _, s := range slices.Backward(d.Sleeps) {
		if s.After > 0 {
			return s.Watts, true
		}
	}
	return d.ClockInForce().Idle, false
}

// busyOfSome is the busy power of n of count units, without the idle watts of the others.
func busyOfSome(b BusyPower, count, n int, idle float64) BusyPower {
	if !b.WholeDevice {
		return b
	}
	watts := func(busy int) float64 {
		return max(0, b.watts(count, busy, idle)-float64(float64(count-n)*idle))
	}
	if n == 1 {
		return BusyPower{UnitWatts: watts(1)}
	}
	return BusyPower{FirstWatts: watts(1), AllWatts: watts(n), WholeDevice: true}
}

// leastTrusted is the source of the sum of two quantities.
func leastTrusted(a Quantity, b Source) Source {
	trust := []Source{"", Guess, Datasheet, Measured}
	if a.Source == "" && a.Value == 0 || slices.Index(trust, b) < slices.Index(trust, a.Source) {
		return b
	}
	return a.Source
}
