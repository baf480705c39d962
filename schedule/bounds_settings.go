package schedule

import (
	"math"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// setting is one in which a device may run a task: by some variant, at one of its clocks, with from
// to to of its units selected, and with nothing else at its memory. A bound looks at all of them, since a task takes
// longer the more units share a bandwidth, and since models were measured with some number of units busy.
type setting struct {
	from, to int           // units
	takes    time.Duration // with from units, and no less with more; dispatch included
	shareNs  float64       // takes over units is no less; 0 means not known
}

// settingsOf lists the settings of the tasks of each class, by device.
func (c *Priced) settingsOf(graph int) [][][]setting {
	g, costs := c.Program.Graphs[graph], c.Costs(graph)
	all := make([][][]setting, len(costs.ByClass))
	for t, class := range costs.Class {
		if all[class] != nil {
			continue
		}
		all[class] = make([][]setting, len(c.Platform.Devices))
		for d := range all[class] {
			if mayRunOn(g.Tasks[t].Placement, c.Platform, platform.DeviceID(d)) {
				all[class][d] = c.settings(g, dag.TaskID(t), &c.Platform.Devices[d])
			}
		}
	}
	return all
}

func (c *Priced) settings(g *dag.Graph, t dag.TaskID, device *platform.Device) (all []setting) {
	task, offers := &g.Tasks[t], c.target.Offers(g, t, device.Kind)
	models := modelsOf(c.Platform, task, device)
	variants, counts := variantsOf(task, models), unitCounts(device.Count, models)
	alone := *c.Platform
	alone.Devices, alone.Models = []platform.Device{*device}, models
	for _, at := range atClocks(&alone) {
		for k, from := range counts[:len(counts)-1] {
			for _, variant := range variants {
				if s, ok := newSetting(task, at, offers, variant, from, counts[k+1]-1); ok {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// variantsOf lists the variants of a task in the graph and in some models. The first, "", leaves the variant open.
func variantsOf(task *dag.Task, models []platform.Model) []string {
	known := []string{""}
	add := func(variant string) {
		if !slices.Contains(known, variant) {
			known = append(known, variant)
		}
	}
	for _, c := range task.Costs {
		_, variant, _ := dag.SplitCostKey(c.Key)
		add(variant)
	}
	for i := range models {
		add(models[i].Variant)
	}
	return known
}

// modelsOf are the models for a task on a device. There are none where the graph gives the task's time.
func modelsOf(p *platform.Platform, task *dag.Task, device *platform.Device) (found []platform.Model) {
	if len(task.Costs) > 0 {
		return nil
	}
	name, kind := p.ModelNames(device)
	for i := range p.Models {
		if m := &p.Models[i]; m.Op == task.Op && m.Type == task.Type.String() && (m.Device == name || m.Device == kind) {
			found = append(found, *m)
		}
	}
	return found
}

// unitCounts are the numbers of units of a device at which another model becomes the nearest, and one more than there
// are. Of two models measured with a < b units busy, the second
// is the nearer from (a+b)/2 units on.
func unitCounts(units int, models []platform.Model) []int {
	var busy []int
	for i := range models {
		if !slices.Contains(busy, models[i].Active) {
			busy = append(busy, models[i].Active)
		}
	}
	counts := []int{1, units + 1}
	for i, a := range busy {
		for _, b := range busy[:i] {
			if n := (a + b + 1) / 2; n > 1 && n <= units {
				counts = append(counts, n)
			}
		}
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// atClocks is a platform of one device with each of its clocks in force.
func atClocks(alone *platform.Platform) (all []*platform.Platform) {
	for clock := range alone.Devices[0].NumClocks() {
		at := *alone
		at.Devices = slices.Clone(alone.Devices)
		at.Devices[0].AtClock = clock
		all = append(all, &at)
	}
	return all
}

// newSetting prices a task on the one device of a platform, whose count it changes. The same models
// are the nearest for all numbers of units between from and to, so that only a roofline differs:
// with more units it takes more time, but no more over the number of units.
func newSetting(task *dag.Task, alone *platform.Platform, offers []Offer, variant string, from, to int) (s setting, ok bool) {
	device := &alone.Devices[0]
	device.Count = from
	cost, ok := costOn(task, alone, 0, offers, variant, false)
	if !ok {
		return s, false
	}
	s = setting{from: from, to: to, takes: device.Dispatch + cost.Least()}
	if cost.Source == FromRoofline && to > from {
		device.Count = to
		if cost, ok := costOn(task, alone, 0, offers, variant, false); ok { // rounded up, by less than 1
			s.shareNs = float64(device.Dispatch+cost.Duration-1) / float64(to)
		}
	}
	return s, true
}

// leasts is the least in any setting, by class and device of a platform.
type leasts struct {
	costs   *Costs      // their durations, dispatch included
	shareNs [][]float64 // of the duration over the number of units selected
}

// leasts finds the least times on the devices and units of c. The settings are by device of the whole
// machine.
func (c *Priced) leasts(graph int, settings [][][]setting) leasts {
	whole := c.Platform
	if c.whole != nil {
		whole = c.whole.Platform
	}
	g, classes := c.Program.Graphs[graph], c.Costs(graph).Class
	l := leasts{&Costs{Class: classes, ByClass: make([][]Cost, len(settings))}, make([][]float64, len(settings))}
	inWhole := make([]platform.DeviceID, len(c.Platform.Devices))
	for d := range inWhole {
		inWhole[d], _ = whole.DeviceByName(c.Platform.Devices[d].Name)
	}
	for t, class := range classes {
		if l.shareNs[class] != nil {
			continue
		}
		l.costs.ByClass[class], l.shareNs[class] = make([]Cost, len(c.Platform.Devices)), make([]float64, len(c.Platform.Devices))
		for d := range c.Platform.Devices {
			device, takes, shareNs := &c.Platform.Devices[d], &l.costs.ByClass[class][d].Duration, &l.shareNs[class][d]
			*takes, *shareNs = -1, math.Inf(1)
			if !mayRunOn(g.Tasks[t].Placement, c.Platform, platform.DeviceID(d)) {
				continue
			}
			for _, s := range settings[class][inWhole[d]] {
				if s.from > device.Count {
					continue
				}
				if *takes < 0 || s.takes < *takes {
					*takes = s.takes
				}
				*shareNs = min(*shareNs, max(s.shareNs, float64(s.takes)/float64(min(s.to, device.Count))))
			}
		}
	}
	return l
}
