package platform

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Load reads a platform file and the model files that it names. An error says
// file, line, key, value and what to write instead.
func Load(path string) (*Platform, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the platform: %w", err)
	}
	return parse(src, path, func(name string) ([]byte, string, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		src, err := os.ReadFile(name)
		return src, name, err
	})
}

// Parse reads a platform from memory; name stands for the file in errors. A
// platform that names model files must be loaded from a file.
func Parse(src []byte, name string) (*Platform, error) { return parse(src, name, nil) }

// builder turns the tables of a file into a Platform.
type builder struct {
	p      Platform
	r      *reader
	models []*table // where each model comes from, for errors
}

func parse(src []byte, name string, open func(string) ([]byte, string, error)) (*Platform, error) {
	r, top, err := newReader(src, name)
	if err != nil {
		return nil, err
	}
	b := &builder{r: r}
	b.top(top)
	modelFiles := top.texts("models")
	top.done("name, host_power, models, [[memory]], [[device]], [[link]], [[route]], [[model]]")
	if r.err != nil {
		return nil, r.err
	}
	for _, file := range modelFiles {
		if err := b.modelFile(file, open); err != nil {
			return nil, err
		}
	}
	if f := b.p.checkParts(); f != nil {
		b.report(f)
		return nil, b.r.err
	}
	if err := b.p.Complete(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &b.p, nil
}

// report gives a fault the line of its cause.
func (b *builder) report(f *fault) {
	r, path := b.r, f.path
	if rest, ok := strings.CutPrefix(path, "model["); ok {
		number, key, _ := strings.Cut(rest, "].")
		if i, err := strconv.Atoi(number); err == nil && i < len(b.models) {
			r, path = b.models[i].r, b.models[i].join(key)
		}
	}
	r.failAt(path, f.owner, f.text)
	b.r.err = r.err
}

func (b *builder) modelFile(file string, open func(string) ([]byte, string, error)) error {
	line := b.r.lines.of("models")
	if open == nil {
		return fmt.Errorf("%s:%d: models = %q: a model file can only be named in a platform that is loaded from a file", b.r.name, line, clip(file))
	}
	src, name, err := open(file)
	if err != nil {
		return fmt.Errorf("%s:%d: models: %w", b.r.name, line, err)
	}
	r, top, err := newReader(src, name)
	if err != nil {
		return err
	}
	b.modelTables(top)
	top.done("[[model]]")
	return r.err
}

func (b *builder) top(t *table) {
	b.p.Name = t.text("name")
	if _, ok := t.keys["node"]; ok {
		b.r.failAt("node", "", "[[node]]: several machines in one platform are not supported yet; describe one machine per file")
	}
	if v, ok := t.keys["host_power"].(map[string]any); ok && v != nil {
		h := t.table("host_power")
		h.need("watts", `"35 W"`)
		b.p.HostPower = Quantity{h.quantity("watts", &wattsScale), h.source()}
		h.done("watts, source")
	} else if _, ok := t.keys["host_power"]; ok {
		b.p.HostPower = Quantity{t.quantity("host_power", &wattsScale), Guess}
	}
	for _, m := range t.tables("memory") {
		m.need("name", `"ram"`)
		b.p.Memories = append(b.p.Memories, Memory{
			Name:                 m.text("name"),
			CapacityBytes:        m.positiveBytes("capacity"),
			BandwidthBytesPerSec: m.positive("bandwidth", &bytesPerSecScale),
			Host:                 m.flag("host"),
		})
		m.done("name, capacity, bandwidth, host")
	}
	for _, d := range t.tables("device") {
		b.device(d)
	}
	for _, l := range t.tables("link") {
		b.link(l)
	}
	for _, r := range t.tables("route") {
		b.route(r)
	}
	b.modelTables(t)
}

// positive is quantity for a number that cannot be zero when it is given.
func (t *table) positive(key string, s *scale) float64 {
	raw, given := t.keys[key]
	v := t.quantity(key, s)
	if given && v == 0 {
		t.fail(key, raw, "want more than zero; leave the key out where it is not known or not limited")
	}
	return v
}

func (t *table) positiveBytes(key string) int64 {
	raw, given := t.keys[key]
	v := t.bytes(key)
	if given && v == 0 {
		t.fail(key, raw, "want more than zero; leave the key out where it is not known or not limited")
	}
	return v
}

// source reads the origin of a power; a guess when nothing is said.
func (t *table) source() Source {
	if _, ok := t.keys["source"]; !ok {
		return Guess
	}
	s := Source(t.text("source"))
	if s != Measured && s != Datasheet && s != Guess {
		t.fail("source", string(s), fmt.Sprintf("write %q, %q or %q", Measured, Datasheet, Guess))
	}
	return s
}

// distribution reads DistributionParts numbers and a unit; all zero if absent.
func (t *table) distribution(key string) Distribution {
	text := t.text(key)
	if text == "" {
		return Distribution{}
	}
	d, ok := parseDistribution(text)
	if !ok {
		t.fail(key, text, fmt.Sprintf(`want %d times from short to long and their unit, "11.9 12 … 14.1 us"`, DistributionParts))
	}
	return d
}

func (t *table) duration(key string) time.Duration {
	return time.Duration(math.Round(t.quantity(key, &nsScale)))
}

func (b *builder) device(t *table) {
	t.need("name", `"cpu"`)
	t.need("kind", strconv.Quote(CPU))
	t.need("memory", `the name of a memory, such as "ram"`)
	d := Device{
		Name:     t.text("name"),
		Kind:     t.text("kind"),
		Count:    t.count("count", 1, maxUnits, 1),
		Dispatch: t.duration("dispatch"),
		Streams:  t.count("streams", 1, maxUnits, 0),

		Ordinal:     t.count("ordinal", 0, maxUnits, 0),
		PlacedOnly:  t.flag("placed_only"),
		Unreachable: t.flag("unreachable"),
	}
	d.Memory = b.memory(t, "memory")
	if s := t.table("speed"); s != nil {
		d.FlopsPerSec = map[string]float64{}
		for _, elem := range slices.Sorted(maps.Keys(s.keys)) {
			if !slices.Contains(elementTypes, elem) {
				continue
			}
			d.FlopsPerSec[elem] = s.positive(elem, &flopsPerSecScale)
		}
		s.done(strings.Join(elementTypes, ", "))
	}
	if c := t.table("cache"); c != nil {
		d.L2Bytes, d.L3Bytes = c.positiveBytes("l2"), c.positiveBytes("l3")
		c.done("l2, l3")
	}
	if c := t.table("copy_engines"); c != nil {
		d.CopyEnginesIn, d.CopyEnginesOut = c.count("in", 1, maxUnits, 0), c.count("out", 1, maxUnits, 0)
		c.done("in, out")
	}
	d.Handoff, d.HandoffToCPU, d.Timing = t.duration("handoff"), t.duration("handoff_to_cpu"), t.duration("timing")
	if w := t.table("wake"); w != nil {
		w.need("after", `"50 us"`)
		w.need("cost", `"10 us"`)
		d.WakeAfter, d.Wake = w.duration("after"), w.duration("cost")
		w.done("after, cost")
	}
	d.RunSpread = t.number("run_spread", 0)
	if u := t.table("first_use"); u != nil {
		d.FirstUse = FirstUse{u.duration("context"), u.duration("kernels"), u.positive("memory", &bytesPerSecScale)}
		u.done("context, kernels, memory")
	}
	d.Fault = t.fault()
	if w := t.table("power"); w != nil {
		d.PowerSource = w.source()
		d.IdleWatts, d.Busy = w.power(d.Count)
		w.done("idle, busy, source")
	}
	b.clocks(t, &d)
	t.done("name, kind, count, memory, speed, cache, dispatch, handoff, handoff_to_cpu, timing, wake, run_spread, first_use, copy_engines, streams, ordinal, placed_only, unreachable, fault, power, clock_name, [[device.clock]]")
	b.p.Devices = append(b.p.Devices, d)
}

// fault reads a failure on purpose; none if absent.
func (t *table) fault() DeviceFault {
	f := t.table("fault")
	if f == nil {
		return DeviceFault{}
	}
	f.need("after", "100")
	f.need("kind", `"lost"`)
	fault := DeviceFault{f.text("kind"), f.count("after", 0, math.MaxInt32, 0)}
	f.done("after, kind")
	return fault
}

// defaultClock names a device's own setting where further clocks are listed.
const defaultClock = "nominal"

func (b *builder) clocks(t *table, d *Device) {
	own := t.text("clock_name")
	if own == "" {
		own = defaultClock
	}
	for _, c := range t.tables("clock") {
		if len(d.Clocks) == 0 {
			d.Clocks = []Clock{{Name: own, Scale: 1, Idle: d.IdleWatts, Busy: d.Busy}}
		}
		c.need("name", `"slow"`)
		c.need("scale", "0.5")
		clock := Clock{Name: c.text("name"), Scale: c.number("scale", 0), Idle: d.IdleWatts, Busy: d.Busy}
		if w := c.table("power"); w != nil {
			clock.Idle, clock.Busy = w.power(d.Count)
			w.done("idle, busy")
			if d.PowerSource == "" {
				c.r.failAt(c.path, c.owner, "a power for a clock, and none for the device; add power = { … } to the device")
			}
		}
		c.done("name, scale, power")
		d.Clocks = append(d.Clocks, clock)
	}
}

// power reads idle and busy watts: busy of one unit, or of the whole device with
// one unit busy and with all.
func (t *table) power(count int) (idle float64, busy BusyPower) {
	t.need("idle", `"2 W"`)
	t.need("busy", `"9 W"`)
	idle = t.quantity("idle", &wattsScale)
	list, isList := t.keys["busy"].([]any)
	if !isList {
		return idle, BusyPower{UnitWatts: t.quantity("busy", &wattsScale)}
	}
	t.take("busy")
	if len(list) != 2 {
		t.fail("busy", list, `want two powers of the whole device, ["one unit busy", "all busy"]`)
		return idle, busy
	}
	busy = BusyPower{WholeDevice: true}
	busy.FirstWatts, busy.AllWatts = t.measure("busy", list[0], &wattsScale), t.measure("busy", list[1], &wattsScale)
	if count == 1 && busy.FirstWatts != busy.AllWatts {
		t.fail("busy", list, "with one unit, one busy is all busy; write one power")
	}
	return idle, busy
}

func (b *builder) memory(t *table, key string) MemoryID {
	name := t.text(key)
	id, ok := b.p.MemoryByName(name)
	if !ok {
		t.fail(key, name, "no memory has this name; "+listNames("memories are", b.p.Memories, func(m Memory) string { return m.Name }))
	}
	return id
}

// listNames lists the existing names, up to a few.
func listNames[T any](what string, all []T, name func(T) string) string {
	var names []string
	for i, x := range all {
		if i == 8 {
			names = append(names, "…")
			break
		}
		names = append(names, clip(name(x)))
	}
	if len(names) == 0 {
		return what + " none"
	}
	return what + " " + strings.Join(names, ", ")
}

var sharingNames = [...]string{"shared", "duplex", "fatpipe"}

func (s Sharing) String() string {
	if int(s) < len(sharingNames) {
		return sharingNames[s]
	}
	return fmt.Sprintf("invalid(%d)", s)
}

func (b *builder) link(t *table) {
	t.need("name", `"pcie0"`)
	t.need("bandwidth", `"12 GB/s"`)
	l := Link{
		Name:                 t.text("name"),
		BandwidthBytesPerSec: t.positive("bandwidth", &bytesPerSecScale),
		Latency:              t.duration("latency"),
	}
	if _, ok := t.keys["sharing"]; ok {
		text := t.text("sharing")
		i := slices.Index(sharingNames[:], text)
		if i < 0 {
			t.fail("sharing", text, `write "shared" (one capacity for both directions), "duplex" or "fatpipe" (no sharing)`)
		}
		l.Sharing = Sharing(max(i, 0))
	}
	if w := t.table("power"); w != nil {
		w.need("idle", `"1 W"`)
		w.need("busy", `"3 W"`)
		l.IdleWatts, l.BusyWatts, l.PowerSource = w.quantity("idle", &wattsScale), w.quantity("busy", &wattsScale), w.source()
		w.done("idle, busy, source")
	}
	t.done("name, bandwidth, latency, sharing, power")
	b.p.Links = append(b.p.Links, l)
}

func (b *builder) route(t *table) {
	t.need("from", "the name of a memory")
	t.need("to", "the name of a memory")
	t.need("links", `["…"]`)
	r := Route{From: b.memory(t, "from"), To: b.memory(t, "to"), OneWay: t.flag("oneway")}
	for _, name := range t.texts("links") {
		id, ok := b.p.linkByName(name)
		if !ok {
			t.fail("links", name, "no link has this name; "+listNames("links are", b.p.Links, func(l Link) string { return l.Name }))
		}
		r.Links = append(r.Links, id)
	}
	t.done("from, to, links, oneway")
	b.p.Routes = append(b.p.Routes, r)
}

func (b *builder) modelTables(top *table) {
	for _, t := range top.tables("model") {
		for _, key := range []string{"op", "type", "device", "shape"} {
			t.need(key, `"…"`)
		}
		t.need("median", `"12.3 us"`)
		b.p.Models = append(b.p.Models, Model{
			Op: t.text("op"), Variant: t.text("variant"), Type: t.text("type"),
			Device: t.text("device"), Clock: t.text("clock"), Shape: t.text("shape"),
			Active:       t.count("active", 1, maxUnits, 1),
			MedianNs:     t.positive("median", &nsScale),
			P95Ns:        t.quantity("p95", &nsScale),
			Count:        t.count("count", 1, math.MaxInt32, 0),
			WarmNs:       t.quantity("warm", &nsScale),
			FarNs:        t.quantity("far", &nsScale),
			Distribution: t.distribution("distribution"),
			Unsteady:     t.flag("unsteady"),
			StepNs:       t.quantity("in_step", &nsScale),
			FirstNs:      t.quantity("first_step", &nsScale),

			StepDistribution: t.distribution("in_step_distribution"),

			Joules:         t.quantity("joules", &joulesScale),
			WorkspaceBytes: t.bytes("workspace"),
			Flops:          t.quantity("flops", &flopsScale),
			MovedBytes:     t.bytes("bytes"),
		})
		t.done("op, variant, type, device, clock, shape, active, median, p95, warm, far, count, distribution, unsteady, in_step, first_step, in_step_distribution, joules, flops, bytes, workspace")
		b.models = append(b.models, t)
	}
}
