package platform

import (
	"dahl/platform/quantity"
	"fmt"
	"maps"
	"slices"
)

// maxRunSpread is the standard deviation above which runs do not count as equal.
const maxRunSpread = 1

// elementTypes are the types that a speed may be given for.
var elementTypes = []string{"bfloat16", "float32", "float64", "int32", "int64", "uint8"}

func (p *Platform) checkDevices() *fault {
	kinds, taken := map[string]string{}, map[driverNumber]string{} // the first device of a kind, the device of a number
	for i := range p.Devices {
		if _, ok := kinds[p.Devices[i].Kind]; !ok {
			kinds[p.Devices[i].Kind] = p.Devices[i].Name
		}
	}
	given := slices.ContainsFunc(p.Devices, func(d Device) bool { return d.Ordinal != 0 })
	for i := range p.Devices {
		d := &p.Devices[i]
		if f := p.checkDevice(i, d); f != nil {
			return f
		}
		if f := checkClocks(i, d); f != nil {
			return f
		}
		if f := d.checkStates(i); f != nil {
			return f
		}
		if f := p.checkOrdinal(i, d, given, taken); f != nil {
			return f
		}
		if other, ok := kinds[d.Name]; ok && d.Kind != d.Name {
			return &fault{at("device", i, "name"), owner("device", d.Name),
				fmt.Sprintf("it has the name of the kind of device %q; a model or cost for %q would mean both", other, d.Name)}
		}
	}
	return nil
}

// driverNumber is a number that the driver of a kind gives on a node.
type driverNumber struct {
	node    NodeID
	kind    string
	ordinal int
}

// checkOrdinal checks that no two devices of a node have the same number in the driver. If all ordinals are
// 0, they have not been given yet.
func (p *Platform) checkOrdinal(i int, d *Device, given bool, taken map[driverNumber]string) *fault {
	if d.Ordinal < 0 || d.Ordinal != 0 && !d.kind().Numbered {
		kinds := kindNames("", func(k Kind) bool { return k.Numbered })
		return &fault{at("device", i, "ordinal"), owner("device", d.Name), fmt.Sprintf("ordinal = %d: only devices of kind %s have one, from 0", d.Ordinal, kinds)}
	}
	number := driverNumber{p.NodeOf(d.Memory), d.Kind, d.Ordinal}
	if other, ok := taken[number]; ok && given && d.kind().Numbered {
		return &fault{at("device", i, "ordinal"), owner("device", d.Name), fmt.Sprintf("ordinal = %d is that of device %q; give each its own", d.Ordinal, other)}
	}
	taken[number] = d.Name
	return nil
}

func (p *Platform) checkDevice(i int, d *Device) *fault {
	bad := func(key, format string, args ...any) *fault {
		return &fault{at("device", i, key), owner("device", d.Name), fmt.Sprintf(format, args...)}
	}
	if _, err := KindByName(d.Kind); err != nil {
		return bad("kind", "kind = %q: write %s", clip(d.Kind), kindNames(`"`, func(Kind) bool { return true }))
	}
	if d.Memory < 0 || int(d.Memory) >= len(p.Memories) {
		return bad("memory", "its memory is not of this platform")
	}
	for _, t := range slices.Sorted(maps.Keys(d.FlopsPerSec)) {
		if v := d.FlopsPerSec[t]; !slices.Contains(elementTypes, t) || !amount(v) || v == 0 {
			return bad("speed", "speed of %q is %g F/s; want a positive one for %v", clip(t), v, elementTypes)
		}
	}
	const ns, bare = " ns", ""
	for _, n := range []struct {
		key   string
		value int64
		unit  string
	}{
		{"whole", int64(d.Whole), bare}, {"cache", d.L2Bytes, bare}, {"cache", d.L3Bytes, bare}, {"dispatch", int64(d.Dispatch), ns},
		{"copy_engines", int64(d.CopyEnginesIn), bare}, {"copy_engines", int64(d.CopyEnginesOut), bare}, {"streams", int64(d.Streams), bare},
		{"handoff", int64(d.Handoff), ns}, {"handoff_to_cpu", int64(d.HandoffToCPU), ns}, {"timing", int64(d.Timing), ns},
		{"wake", int64(d.WakeAfter), ns}, {"wake", int64(d.Wake), ns},
		{"first_use", int64(d.FirstUse.Context), ns}, {"first_use", int64(d.FirstUse.Kernels), ns},
	} {
		if n.value < 0 || n.value > quantity.MaxWhole {
			return bad(n.key, "%s: %d%s is out of range", n.key, n.value, n.unit)
		}
	}
	if v := d.FirstUse.MemoryBytesPerSec; !amount(v) {
		return bad("first_use", "first_use: %g B/s is out of range", v)
	}
	if d.HandoffToCPU != 0 && d.IsProcessor() {
		return bad("handoff_to_cpu", "handoff_to_cpu = %q: units of a processor learn of each other's ends after handoff", d.HandoffToCPU.String())
	}
	if d.Timing != 0 && d.IsProcessor() {
		return bad("timing", "timing = %q: on a processor being timed costs nothing", d.Timing.String())
	}
	if (d.Wake == 0) != (d.WakeAfter == 0) {
		return bad("wake", "wake: a cost and the time after which it is paid belong together, both positive")
	}
	if !(d.RunSpread >= 0 && d.RunSpread <= maxRunSpread) {
		return bad("run_spread", "run_spread = %g: want 0 to %g, relative to the time of a step", d.RunSpread, float64(maxRunSpread))
	}
	if text := d.checkFault(); text != "" {
		return bad("fault", "fault = { after = %d, kind = %q }: %s", d.Fault.After, clip(d.Fault.Kind), text)
	}
	if d.PowerSource != Measured && (d.PowerMeter != "" || d.PowerSpread != 0) {
		return bad("power", "a meter or a spread of a power that is not measured; write source = %q, or leave meter and spread out", Measured)
	}
	if !amount(d.PowerSpread) {
		return bad("power", "spread = %g: want a number that is not negative, relative to the power", d.PowerSpread)
	}
	return checkPower(i, "power", owner("device", d.Name), d.PowerSource, d.IdleWatts, d.Busy)
}

// checkFault returns what is wrong with a failure on purpose. Empty means nothing.
func (d *Device) checkFault() string {
	switch f := d.Fault; {
	case f == DeviceFault{}:
		return ""
	case !d.IsEmulated():
		return fmt.Sprintf("only devices of kind %s can be told to fail", kindNames("", func(k Kind) bool { return k.Emulated }))
	case f.Kind != FaultLost && f.Kind != FaultMemory:
		return fmt.Sprintf("write kind = %q or %q", FaultLost, FaultMemory)
	case f.After < 0:
		return "after is a number of launches"
	}
	return ""
}

func checkPower(i int, key, who string, s Source, idle float64, b BusyPower) *fault {
	if b.WholeDevice && b.UnitWatts != 0 || !b.WholeDevice && (b.FirstWatts != 0 || b.AllWatts != 0) {
		return &fault{at("device", i, key), who, "busy power is given by unit and for the whole device; give one"}
	}
	for _, w := range []float64{idle, b.UnitWatts, b.FirstWatts, b.AllWatts} {
		if f := checkSource(s, w, at("device", i, key), who); f != nil {
			return f
		}
	}
	return nil
}

// checkClocks checks that the first clock is the device's own setting and the
// others have names and speeds of their own.
func checkClocks(i int, d *Device) *fault {
	who := owner("device", d.Name)
	if d.AtClock < 0 || d.AtClock >= d.NumClocks() {
		return &fault{at("device", i, clockInForceKey), who, "the clock in force is none of the device's"}
	}
	if len(d.Clocks) == 0 {
		return nil
	}
	if c := &d.Clocks[0]; c.Scale != 1 || c.Idle != d.IdleWatts || c.Busy != d.Busy {
		return &fault{at("device", i, "clock"), who, "the first clock is not the device's own setting: scale 1 and its powers"}
	}
	seen := map[string]bool{}
	for j := range d.Clocks {
		c := &d.Clocks[j]
		key, named := fmt.Sprintf("clock[%d]", j-1), "clock_name" // the first is the device's own
		if j > 0 {
			named = key + ".name"
		}
		if !isName(c.Name) || seen[c.Name] {
			return &fault{at("device", i, named), who, fmt.Sprintf("clock name %q: give each clock a name of its own, of letters and digits", clip(c.Name))}
		}
		seen[c.Name] = true
		if !amount(c.Scale) || c.Scale == 0 {
			return &fault{at("device", i, key+".scale"), who, fmt.Sprintf("clock %q: scale = %g: want a positive number, 1 for the speed of the device", c.Name, c.Scale)}
		}
		if !amount(c.FrequencyHz) {
			return &fault{at("device", i, key+".frequency"), who, fmt.Sprintf("clock %q: a frequency of %g Hz; want a positive one", c.Name, c.FrequencyHz)}
		}
		if f := checkPower(i, key+".power", who, d.PowerSource, c.Idle, c.Busy); f != nil {
			return f
		}
	}
	return nil
}
