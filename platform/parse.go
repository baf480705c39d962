package platform

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dahl/platform/tomlfile"
)

// Load reads a platform file and the model files that it names. An error says
// file, line, key, value and what to write instead.
func Load(path string) (*Platform, error) {
	src, err := tomlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the platform: %w", err)
	}
	return parse(src, path, func(name string) ([]byte, string, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		src, err := tomlfile.Read(name)
		return src, name, err
	})
}

// Parse reads a platform from memory; name stands for the file in errors. A
// platform that names model files must be loaded from a file.
func Parse(src []byte, name string) (*Platform, error) { return parse(src, name, nil) }

// builder turns the tables of a file into a Platform.
type builder struct {
	p      Platform
	r      *tomlfile.File
	models []*tomlfile.Table // where each model comes from, for errors
}

func parse(src []byte, name string, open func(string) ([]byte, string, error)) (*Platform, error) {
	r, top, err := tomlfile.Parse(src, name)
	if err != nil {
		return nil, err
	}
	b := &builder{r: r}
	b.top(top)
	modelFiles := top.Texts("models")
	top.Done("name, host_power, models, [[memory]], [[device]], [[link]], [[route]], [[model]]")
	if r.Err != nil {
		return nil, r.Err
	}
	for _, file := range modelFiles {
		if err := b.modelFile(file, open); err != nil {
			return nil, err
		}
	}
	if f := b.p.checkParts(); f != nil {
		b.report(f)
		return nil, b.r.Err
	}
	if err := b.p.Complete(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &b.p, nil
}

// report gives a fault the line that it stems from.
func (b *builder) report(f *fault) {
	r, path := b.r, f.path
	if rest, ok := strings.CutPrefix(path, "model["); ok {
		number, key, _ := strings.Cut(rest, "].")
		if i, err := strconv.Atoi(number); err == nil && i < len(b.models) {
			r, path = b.models[i].File, b.models[i].Join(key)
		}
	}
	r.FailAt(path, f.owner, f.text)
	b.r.Err = r.Err
}

func (b *builder) modelFile(file string, open func(string) ([]byte, string, error)) error {
	line := b.r.Line("models")
	if open == nil {
		return fmt.Errorf("%s:%d: models = %q: a model file can only be named in a platform that is loaded from a file", b.r.Name, line, clip(file))
	}
	src, name, err := open(file)
	if err != nil {
		return fmt.Errorf("%s:%d: models: %w", b.r.Name, line, err)
	}
	r, top, err := tomlfile.Parse(src, name)
	if err != nil {
		return err
	}
	b.modelTables(top)
	top.Done("[[model]]")
	return r.Err
}

func (b *builder) top(t *tomlfile.Table) {
	b.p.Name = t.Text("name")
	if _, ok := t.Keys["node"]; ok {
		b.r.FailAt("node", "", "[[node]]: several machines in one platform are not supported yet; describe one machine per file")
	}
	if v, ok := t.Keys["host_power"].(map[string]any); ok && v != nil {
		h := t.Table("host_power")
		h.Need("watts", `"35 W"`)
		b.p.HostPower = Quantity{quantity(h, "watts", &wattsScale), source(h)}
		h.Done("watts, source")
	} else if _, ok := t.Keys["host_power"]; ok {
		b.p.HostPower = Quantity{quantity(t, "host_power", &wattsScale), Guess}
	}
	for _, m := range t.Tables("memory") {
		m.Need("name", `"ram"`)
		b.p.Memories = append(b.p.Memories, Memory{
			Name:                 m.Text("name"),
			CapacityBytes:        positiveSize(m, "capacity"),
			BandwidthBytesPerSec: positive(m, "bandwidth", &bytesPerSecScale),
			Host:                 m.Flag("host", false),
		})
		m.Done("name, capacity, bandwidth, host")
	}
	for _, d := range t.Tables("device") {
		b.device(d)
	}
	for _, l := range t.Tables("link") {
		b.link(l)
	}
	for _, r := range t.Tables("route") {
		b.route(r)
	}
	b.modelTables(t)
}

// quantity reads a number with a unit; 0 if absent.
func quantity(t *tomlfile.Table, key string, s *scale) float64 {
	v, ok := t.Take(key)
	if !ok {
		return 0
	}
	return measure(t, key, v, s)
}

func measure(t *tomlfile.Table, key string, v any, s *scale) float64 {
	var text string
	switch x := v.(type) {
	case string:
		text = x
	case int64, float64:
		text = fmt.Sprint(x)
	}
	f, err := s.parse(text)
	if err != nil {
		t.Fail(key, v, err.Error())
	}
	return f
}

// size reads a size; 0 if absent.
func size(t *tomlfile.Table, key string) int64 {
	v := t.Keys[key]
	f := quantity(t, key, &bytesScale)
	if f != math.Trunc(f) {
		t.Fail(key, v, "not a whole number of bytes")
	}
	return int64(f)
}

// positive is quantity for what cannot be zero when it is given.
func positive(t *tomlfile.Table, key string, s *scale) float64 {
	raw, given := t.Keys[key]
	v := quantity(t, key, s)
	if given && v == 0 {
		t.Fail(key, raw, "want more than zero; leave the key out where it is not known or not limited")
	}
	return v
}

func positiveSize(t *tomlfile.Table, key string) int64 {
	raw, given := t.Keys[key]
	v := size(t, key)
	if given && v == 0 {
		t.Fail(key, raw, "want more than zero; leave the key out where it is not known or not limited")
	}
	return v
}

// source reads where a power comes from; a guess when nothing is said.
func source(t *tomlfile.Table) Source {
	if _, ok := t.Keys["source"]; !ok {
		return Guess
	}
	s := Source(t.Text("source"))
	if s != Measured && s != Datasheet && s != Guess {
		t.Fail("source", string(s), fmt.Sprintf("write %q, %q or %q", Measured, Datasheet, Guess))
	}
	return s
}

// distribution reads DistributionParts numbers and a unit; all zero if absent.
func distribution(t *tomlfile.Table, key string) Distribution {
	text := t.Text(key)
	if text == "" {
		return Distribution{}
	}
	d, ok := parseDistribution(text)
	if !ok {
		t.Fail(key, text, fmt.Sprintf(`want %d times from short to long and their unit, "11.9 12 … 14.1 us"`, DistributionParts))
	}
	return d
}

func duration(t *tomlfile.Table, key string) time.Duration {
	return time.Duration(math.Round(quantity(t, key, &nsScale)))
}

func (b *builder) device(t *tomlfile.Table) {
	t.Need("name", `"cpu"`)
	t.Need("kind", strconv.Quote(CPU))
	t.Need("memory", `the name of a memory, such as "ram"`)
	d := Device{
		Name:     t.Text("name"),
		Kind:     t.Text("kind"),
		Count:    t.Count("count", 1, maxUnits, 1),
		Dispatch: duration(t, "dispatch"),
		Streams:  t.Count("streams", 1, maxUnits, 0),

		Ordinal:     t.Count("ordinal", 0, maxUnits, 0),
		PlacedOnly:  t.Flag("placed_only", false),
		Unreachable: t.Flag("unreachable", false),
	}
	d.Memory = b.memory(t, "memory")
	if s := t.Table("speed"); s != nil {
		d.FlopsPerSec = map[string]float64{}
		for _, elem := range slices.Sorted(maps.Keys(s.Keys)) {
			if !slices.Contains(elementTypes, elem) {
				continue
			}
			d.FlopsPerSec[elem] = positive(s, elem, &flopsPerSecScale)
		}
		s.Done(strings.Join(elementTypes, ", "))
	}
	if c := t.Table("cache"); c != nil {
		d.L2Bytes, d.L3Bytes = positiveSize(c, "l2"), positiveSize(c, "l3")
		c.Done("l2, l3")
	}
	if c := t.Table("copy_engines"); c != nil {
		d.CopyEnginesIn, d.CopyEnginesOut = c.Count("in", 1, maxUnits, 0), c.Count("out", 1, maxUnits, 0)
		c.Done("in, out")
	}
	d.Handoff, d.HandoffToCPU, d.Timing = duration(t, "handoff"), duration(t, "handoff_to_cpu"), duration(t, "timing")
	if w := t.Table("wake"); w != nil {
		w.Need("after", `"50 us"`)
		w.Need("cost", `"10 us"`)
		d.WakeAfter, d.Wake = duration(w, "after"), duration(w, "cost")
		w.Done("after, cost")
	}
	d.RunSpread = t.Number("run_spread", 0)
	if u := t.Table("first_use"); u != nil {
		d.FirstUse = FirstUse{duration(u, "context"), duration(u, "kernels"), positive(u, "memory", &bytesPerSecScale)}
		u.Done("context, kernels, memory")
	}
	d.Fault = faultOf(t)
	if w := t.Table("power"); w != nil {
		d.PowerSource = source(w)
		d.IdleWatts, d.Busy = powers(w, d.Count)
		w.Done("idle, busy, source")
	}
	b.clocks(t, &d)
	t.Done("name, kind, count, memory, speed, cache, dispatch, handoff, handoff_to_cpu, timing, wake, run_spread, first_use, copy_engines, streams, ordinal, placed_only, unreachable, fault, power, clock_name, [[device.clock]]")
	b.p.Devices = append(b.p.Devices, d)
}

// faultOf reads a failure on purpose; none if absent.
func faultOf(t *tomlfile.Table) DeviceFault {
	f := t.Table("fault")
	if f == nil {
		return DeviceFault{}
	}
	f.Need("after", "100")
	f.Need("kind", `"lost"`)
	fault := DeviceFault{f.Text("kind"), f.Count("after", 0, math.MaxInt32, 0)}
	f.Done("after, kind")
	return fault
}

// defaultClock names a device's own setting where further clocks are listed.
const defaultClock = "nominal"

func (b *builder) clocks(t *tomlfile.Table, d *Device) {
	own := t.Text("clock_name")
	if own == "" {
		own = defaultClock
	}
	for _, c := range t.Tables("clock") {
		if len(d.Clocks) == 0 {
			d.Clocks = []Clock{{Name: own, Scale: 1, Idle: d.IdleWatts, Busy: d.Busy}}
		}
		c.Need("name", `"slow"`)
		c.Need("scale", "0.5")
		clock := Clock{Name: c.Text("name"), Scale: c.Number("scale", 0), Idle: d.IdleWatts, Busy: d.Busy}
		if w := c.Table("power"); w != nil {
			clock.Idle, clock.Busy = powers(w, d.Count)
			w.Done("idle, busy")
			if d.PowerSource == "" {
				c.File.FailAt(c.Path, c.Owner, "a power for a clock, and none for the device; add power = { … } to the device")
			}
		}
		c.Done("name, scale, power")
		d.Clocks = append(d.Clocks, clock)
	}
}

// powers reads idle and busy watts: busy of one unit, or of the whole device with
// one unit busy and with all.
func powers(t *tomlfile.Table, count int) (idle float64, busy BusyPower) {
	t.Need("idle", `"2 W"`)
	t.Need("busy", `"9 W"`)
	idle = quantity(t, "idle", &wattsScale)
	list, isList := t.Keys["busy"].([]any)
	if !isList {
		return idle, BusyPower{UnitWatts: quantity(t, "busy", &wattsScale)}
	}
	t.Take("busy")
	if len(list) != 2 {
		t.Fail("busy", list, `want two powers of the whole device, ["one unit busy", "all busy"]`)
		return idle, busy
	}
	busy = BusyPower{WholeDevice: true}
	busy.FirstWatts, busy.AllWatts = measure(t, "busy", list[0], &wattsScale), measure(t, "busy", list[1], &wattsScale)
	if count == 1 && busy.FirstWatts != busy.AllWatts {
		t.Fail("busy", list, "with one unit, one busy is all busy; write one power")
	}
	return idle, busy
}

func (b *builder) memory(t *tomlfile.Table, key string) MemoryID {
	name := t.Text(key)
	id, ok := b.p.MemoryByName(name)
	if !ok {
		t.Fail(key, name, "no memory has this name; "+listNames("memories are", b.p.Memories, func(m Memory) string { return m.Name }))
	}
	return id
}

// listNames says which names there are, up to a few.
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

func (b *builder) link(t *tomlfile.Table) {
	t.Need("name", `"pcie0"`)
	t.Need("bandwidth", `"12 GB/s"`)
	l := Link{
		Name:                 t.Text("name"),
		BandwidthBytesPerSec: positive(t, "bandwidth", &bytesPerSecScale),
		Latency:              duration(t, "latency"),
	}
	if _, ok := t.Keys["sharing"]; ok {
		text := t.Text("sharing")
		i := slices.Index(sharingNames[:], text)
		if i < 0 {
			t.Fail("sharing", text, `write "shared" (one capacity for both directions), "duplex" or "fatpipe" (no sharing)`)
		}
		l.Sharing = Sharing(max(i, 0))
	}
	if w := t.Table("power"); w != nil {
		w.Need("idle", `"1 W"`)
		w.Need("busy", `"3 W"`)
		l.IdleWatts, l.BusyWatts, l.PowerSource = quantity(w, "idle", &wattsScale), quantity(w, "busy", &wattsScale), source(w)
		w.Done("idle, busy, source")
	}
	t.Done("name, bandwidth, latency, sharing, power")
	b.p.Links = append(b.p.Links, l)
}

func (b *builder) route(t *tomlfile.Table) {
	t.Need("from", "the name of a memory")
	t.Need("to", "the name of a memory")
	t.Need("links", `["…"]`)
	r := Route{From: b.memory(t, "from"), To: b.memory(t, "to"), OneWay: t.Flag("oneway", false)}
	for _, name := range t.Texts("links") {
		id, ok := b.p.linkByName(name)
		if !ok {
			t.Fail("links", name, "no link has this name; "+listNames("links are", b.p.Links, func(l Link) string { return l.Name }))
		}
		r.Links = append(r.Links, id)
	}
	t.Done("from, to, links, oneway")
	b.p.Routes = append(b.p.Routes, r)
}

func (b *builder) modelTables(top *tomlfile.Table) {
	for _, t := range top.Tables("model") {
		for _, key := range []string{"op", "type", "device", "shape"} {
			t.Need(key, `"…"`)
		}
		t.Need("median", `"12.3 us"`)
		b.p.Models = append(b.p.Models, Model{
			Op: t.Text("op"), Variant: t.Text("variant"), Type: t.Text("type"),
			Device: t.Text("device"), Clock: t.Text("clock"), Shape: t.Text("shape"),
			Active:       t.Count("active", 1, maxUnits, 1),
			MedianNs:     positive(t, "median", &nsScale),
			P95Ns:        quantity(t, "p95", &nsScale),
			Count:        t.Count("count", 1, math.MaxInt32, 0),
			WarmNs:       quantity(t, "warm", &nsScale),
			FarNs:        quantity(t, "far", &nsScale),
			Distribution: distribution(t, "distribution"),
			Unsteady:     t.Flag("unsteady", false),
			StepNs:       quantity(t, "in_step", &nsScale),
			FirstNs:      quantity(t, "first_step", &nsScale),

			StepDistribution: distribution(t, "in_step_distribution"),

			Joules:         quantity(t, "joules", &joulesScale),
			WorkspaceBytes: size(t, "workspace"),
			Flops:          quantity(t, "flops", &flopsScale),
			MovedBytes:     size(t, "bytes"),
		})
		t.Done("op, variant, type, device, clock, shape, active, median, p95, warm, far, count, distribution, unsteady, in_step, first_step, in_step_distribution, joules, flops, bytes, workspace")
		b.models = append(b.models, t)
	}
}
