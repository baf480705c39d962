package platform

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dahl/naming"
	"dahl/platform/quantity"
	"dahl/platform/tomlfile"
)

// keys are the keys of a platform file. It returns the model files that are named; models are
// written into the platform's file.
func (p *Platform) keys(f *form, open opener) (modelFiles []string) {
	f.text("name", &p.Name)
	plain := false // host_power is watts without a source
	if f.in != nil {
		v := f.in.Keys["host_power"]
		_, isTable := v.(map[string]any)
		plain = v != nil && !isTable
	}
	if plain {
		p.HostPower.Source = Guess
		f.quantity("host_power", &quantity.Watts, &p.HostPower.Value)
	} else {
		f.inline("host_power", p.HostPower.Source != "", func(f *form) {
			f.need(`"35 W"`).quantity("watts", &quantity.Watts, &p.HostPower.Value)
			f.source(&p.HostPower.Source)
		})
	}
	f.above0().quantity("power_cap", &quantity.Watts, &p.CapWatts)
	f.key("share_size", !p.BySize, func() {
		if _, p.BySize = f.in.Keys["share_size"]; p.BySize {
			p.ShareBytes = int64(f.read("share_size", &quantity.Bytes))
		}
	}, func() string { return quote(quantity.Bytes.Format(float64(p.ShareBytes))) })
	f.key("left_off", len(p.LeftOff) == 0, func() { p.LeftOff = f.in.Texts("left_off") }, func() string { return quoteList(p.LeftOff) })
	f.key("left_asleep", len(p.LeftAsleep) == 0, func() { p.LeftAsleep = f.in.Texts("left_asleep") }, func() string { return quoteList(p.LeftAsleep) })
	f.key("models", true, func() { modelFiles = f.in.Texts("models") }, nil)
	p.nodeKeys(f, open)
	tables(f, "memory", &p.Memories, p.memoryKeys)
	tables(f, "device", &p.Devices, p.deviceKeys)
	p.networkKeys(f)
	tables(f, "route", &p.Routes, p.routeKeys)
	return modelFiles
}

func (p *Platform) memoryKeys(m *Memory, f *form) {
	f.need(`"ram"`).text("name", &m.Name)
	f.key("node", len(p.Nodes) == 0, func() {
		if _, ok := f.in.Keys["node"]; ok || len(p.Nodes) > 0 {
			m.Node = NodeID(named(f.in, "node", f.in.Text("node"), "no node has this name; nodes are ", p.Nodes, func(n Node) string { return n.Name }))
		}
	}, func() string { return quote(p.Nodes[m.Node].Name) })
	f.above0().size("capacity", &m.CapacityBytes)
	f.above0().quantity("bandwidth", &quantity.BytesPerSec, &m.BandwidthBytesPerSec)
	f.flag("host", &m.Host)
}

func (p *Platform) deviceKeys(d *Device, f *form) {
	f.need(`"cpu"`).text("name", &d.Name)
	f.need(strconv.Quote(CPU)).text("kind", &d.Kind)
	f.count("count", 1, maxUnits, 1, &d.Count)
	f.count("whole", 1, maxUnits, 0, &d.Whole)
	p.memoryKey(f.need(`the name of a memory, such as "ram"`), "memory", &d.Memory)
	f.inline("speed", len(d.FlopsPerSec) > 0, func(f *form) {
		for _, elem := range elementTypes {
			v := d.FlopsPerSec[elem]
			if f.above0().quantity(elem, &quantity.FlopsPerSec, &v); f.in != nil && v != 0 {
				if d.FlopsPerSec == nil {
					d.FlopsPerSec = map[string]float64{}
				}
				d.FlopsPerSec[elem] = v
			}
		}
	})
	f.inline("cache", d.L2Bytes+d.L3Bytes != 0, func(f *form) {
		f.above0().size("l2", &d.L2Bytes)
		f.above0().size("l3", &d.L3Bytes)
	})
	f.duration("dispatch", &d.Dispatch)
	f.duration("handoff", &d.Handoff)
	f.duration("handoff_to_cpu", &d.HandoffToCPU)
	f.duration("timing", &d.Timing)
	f.inline("wake", d.WakeAfter+d.Wake != 0, func(f *form) {
		f.need(`"50 us"`).duration("after", &d.WakeAfter)
		f.need(`"10 us"`).duration("cost", &d.Wake)
	})
	f.number("run_spread", &d.RunSpread)
	f.inline("first_use", d.FirstUse != FirstUse{}, func(f *form) {
		f.duration("context", &d.FirstUse.Context)
		f.duration("kernels", &d.FirstUse.Kernels)
		f.above0().quantity("memory", &quantity.BytesPerSec, &d.FirstUse.MemoryBytesPerSec)
	})
	f.inline("copy_engines", d.CopyEnginesIn+d.CopyEnginesOut != 0, func(f *form) {
		f.count("in", 1, maxUnits, 0, &d.CopyEnginesIn)
		f.count("out", 1, maxUnits, 0, &d.CopyEnginesOut)
	})
	f.count("streams", 1, maxUnits, 0, &d.Streams)
	f.count("ordinal", 0, maxUnits, 0, &d.Ordinal)
	f.flag("placed_only", &d.PlacedOnly)
	f.flag("unreachable", &d.Unreachable)
	f.inline("fault", d.Fault.Kind != "", func(f *form) {
		f.need("100").count("after", 0, math.MaxInt32, 0, &d.Fault.After)
		f.need(`"lost"`).text("kind", &d.Fault.Kind)
	})
	f.inline("power", d.PowerSource != "", func(f *form) {
		f.powers(d.Count, &d.IdleWatts, &d.Busy)
		f.key("off", !d.MayBeOff, func() {
			_, d.MayBeOff = f.in.Keys["off"]
			d.OffWatts = f.read("off", &quantity.Watts)
		}, func() string { return quote(quantity.Watts.Format(d.OffWatts)) })
		f.source(&d.PowerSource)
		f.text("meter", &d.PowerMeter)
		f.number("spread", &d.PowerSpread)
	})
	d.stateKeys(f)
	d.clockKeys(f)
	tables(f, "device.sleep", &d.Sleeps, (*SleepState).keys)
}

// powers are idle and busy watts: busy of one unit, or of the whole device with one unit busy and
// with all.
func (f *form) powers(count int, idle *float64, busy *BusyPower) {
	f.need(`"2 W"`).quantity("idle", &quantity.Watts, idle)
	f.need(`"9 W"`).key("busy", false, func() {
		list, isList := f.in.Keys["busy"].([]any)
		if !isList {
			*busy = BusyPower{UnitWatts: f.read("busy", &quantity.Watts)}
			return
		}
		f.in.Take("busy")
		if len(list) != 2 {
			f.in.Fail("busy", list, `want two powers of the whole device, ["one unit busy", "all busy"]`)
			return
		}
		*busy = BusyPower{FirstWatts: f.measure("busy", list[0], &quantity.Watts), AllWatts: f.measure("busy", list[1], &quantity.Watts), WholeDevice: true}
		if count == 1 && busy.FirstWatts != busy.AllWatts {
			f.in.Fail("busy", list, "with one unit, one busy is all busy; write one power")
		}
	}, func() string {
		if busy.WholeDevice {
			return fmt.Sprintf("[%q, %q]", quantity.Watts.Format(busy.FirstWatts), quantity.Watts.Format(busy.AllWatts))
		}
		return quote(quantity.Watts.Format(busy.UnitWatts))
	})
}

func (l *linkTable) keys(f *form) {
	f.need(`"pcie0"`).text("name", &l.Name)
	f.text("from", &l.from)
	f.text("to", &l.to)
	l.pattern.keys(f)
	f.count("order", 0, maxUnits, 0, &l.order)
	f.need(`"12 GB/s"`).above0().quantity("bandwidth", &quantity.BytesPerSec, &l.BandwidthBytesPerSec)
	f.duration("latency", &l.Latency)
	l.sharingKey(f)
	l.powerKeys(f, "link.sleep")
}

func (l *Link) sharingKey(f *form) {
	f.key("sharing", false, func() {
		if _, ok := f.in.Keys["sharing"]; !ok {
			return
		}
		text := f.in.Text("sharing")
		i := slices.Index(sharingNames[:], text)
		if i < 0 {
			f.in.Fail("sharing", text, `write "shared" (one capacity for both directions), "duplex" or "fatpipe" (no sharing)`)
		}
		l.Sharing = Sharing(max(i, 0))
	}, func() string { return quote(l.Sharing.String()) })
}

// powerKeys are the watts of a link or a switch, and its sleep states in tables of a path.
func (l *Link) powerKeys(f *form, sleeps string) {
	f.inline("power", l.PowerSource != "", func(f *form) {
		f.need(`"1 W"`).quantity("idle", &quantity.Watts, &l.IdleWatts)
		f.need(`"3 W"`).quantity("busy", &quantity.Watts, &l.BusyWatts)
		f.source(&l.PowerSource)
	})
	tables(f, sleeps, &l.Sleeps, (*SleepState).keys)
}

var sharingNames = [...]string{"shared", "duplex", "fatpipe"}

func (s Sharing) String() string {
	if int(s) < len(sharingNames) {
		return sharingNames[s]
	}
	return fmt.Sprintf("invalid(%d)", s)
}

func (p *Platform) routeKeys(r *Route, f *form) {
	p.memoryKey(f.need("the name of a memory"), "from", &r.From)
	p.memoryKey(f.need("the name of a memory"), "to", &r.To)
	f.need(`["…"]`).key("links", false, func() {
		for _, name := range f.in.Texts("links") {
			link := named(f.in, "links", name, "no link has this name; links are ", p.Links, func(l Link) string { return l.Name })
			r.Links = append(r.Links, LinkID(link))
		}
	}, func() string {
		var names []string
		for _, l := range r.Links {
			names = append(names, p.Links[l].Name)
		}
		return quoteList(names)
	})
	f.flag("oneway", &r.OneWay)
}

// memoryKey is the name of a memory of the platform.
func (p *Platform) memoryKey(f *form, key string, m *MemoryID) {
	f.key(key, false, func() {
		*m = MemoryID(named(f.in, key, f.in.Text(key), "no memory has this name; memories are ", p.Memories, func(m Memory) string { return m.Name }))
	}, func() string { return quote(p.Memories[*m].Name) })
}

// named finds an element of a list by the name that a key gives. If there is none, the error says
// which names there are, up to a few.
func named[T any](t *tomlfile.Table, key, name, wrong string, all []T, nameOf func(T) string) int {
	if at := slices.IndexFunc(all, func(x T) bool { return nameOf(x) == name }); at >= 0 {
		return at
	}
	const most = 8
	var known []string
	for _, x := range all {
		known = append(known, clip(nameOf(x)))
	}
	hint := naming.DidYouMean(name, known)
	if len(known) > most {
		known = append(known[:most], "…")
	}
	t.Fail(key, name, wrong+cmp.Or(strings.Join(known, ", "), "none")+hint)
	return 0
}

func (m *Model) keys(f *form) {
	const some = `"…"`
	f.need(some).text("op", &m.Op)
	f.text("variant", &m.Variant)
	f.need(some).text("type", &m.Type)
	f.need(some).text("device", &m.Device)
	f.text("clock", &m.Clock)
	f.above0().number("compute", &m.Compute)
	f.need(some).text("shape", &m.Shape)
	f.count("active", 1, maxUnits, 1, &m.Active)
	f.need(`"12.3 us"`).above0().quantity("median", &quantity.Nanoseconds, &m.MedianNs)
	f.quantity("p95", &quantity.Nanoseconds, &m.P95Ns)
	f.quantity("warm", &quantity.Nanoseconds, &m.WarmNs)
	f.quantity("far", &quantity.Nanoseconds, &m.FarNs)
	f.count("count", 1, math.MaxInt32, 0, &m.Count)
	f.distribution("distribution", &m.Distribution)
	f.flag("unsteady", &m.Unsteady)
	f.quantity("in_step", &quantity.Nanoseconds, &m.StepNs)
	f.quantity("first_step", &quantity.Nanoseconds, &m.FirstNs)
	f.distribution("in_step_distribution", &m.StepDistribution)
	f.quantity("joules", &quantity.Joules, &m.Joules)
	f.quantity("flops", &quantity.Flops, &m.Flops)
	f.size("bytes", &m.MovedBytes)
	f.size("workspace", &m.WorkspaceBytes)
}
