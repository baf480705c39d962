package platform

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// WriteTOML writes a platform so that Parse reads back the same one, to the last bit of every
// number. The models go into the same file. The platform must pass Check.
func (p *Platform) WriteTOML(w io.Writer) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("write a platform: %w", err)
	}
	_, err := w.Write(p.encode())
	return err
}

// Hash identifies the platform: the hex SHA-256 of its TOML form. It is the same for two files
// that differ in comments, units or layout only.
func (p *Platform) Hash() string {
	sum := sha256.Sum256(p.encode())
	return hex.EncodeToString(sum[:])
}

// encoder writes keys with values and leaves out zero values.
type encoder struct{ bytes.Buffer }

func (e *encoder) table(name string) { fmt.Fprintf(e, "\n[[%s]]\n", name) }

func (e *encoder) text(key, value string) {
	if value != "" {
		fmt.Fprintf(e, "%s = %s\n", key, quote(value))
	}
}

func (e *encoder) count(key string, n int) {
	if n != 0 {
		fmt.Fprintf(e, "%s = %d\n", key, n)
	}
}

func (e *encoder) flag(key string, v bool) {
	if v {
		fmt.Fprintf(e, "%s = true\n", key)
	}
}

func (e *encoder) quantity(key string, s *scale, v float64) {
	if v != 0 {
		fmt.Fprintf(e, "%s = %q\n", key, s.format(v))
	}
}

func (e *encoder) number(key string, v float64) {
	if v != 0 {
		fmt.Fprintf(e, "%s = %s\n", key, plainNumber(v))
	}
}

func (e *encoder) distribution(key string, d *Distribution) {
	if d.Known() {
		fmt.Fprintf(e, "%s = %q\n", key, d.format())
	}
}

// inline writes key = { … } from the parts that are not empty.
func (e *encoder) inline(key string, parts ...string) {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if len(parts) > 0 {
		fmt.Fprintf(e, "%s = { %s }\n", key, strings.Join(parts, ", "))
	}
}

// quote writes a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func part(key string, s *scale, v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%s = %q", key, s.format(v))
}

func countPart(key string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s = %d", key, n)
}

func (p *Platform) encode() []byte {
	e := &encoder{}
	e.text("name", p.Name)
	if p.HostPower.Source != "" {
		fmt.Fprintf(e, "host_power = { watts = %q, source = %q }\n", wattsScale.format(p.HostPower.Value), p.HostPower.Source)
	}
	for i := range p.Memories {
		m := &p.Memories[i]
		e.table("memory")
		e.text("name", m.Name)
		e.quantity("capacity", &bytesScale, float64(m.CapacityBytes))
		e.quantity("bandwidth", &bytesPerSecScale, m.BandwidthBytesPerSec)
		e.flag("host", m.Host)
	}
	for i := range p.Devices {
		p.encodeDevice(e, &p.Devices[i])
	}
	for i := range p.Links {
		encodeLink(e, &p.Links[i])
	}
	for i := range p.Routes {
		p.encodeRoute(e, &p.Routes[i])
	}
	for i := range p.Models {
		encodeModel(e, &p.Models[i])
	}
	return e.Bytes()
}

func (p *Platform) encodeDevice(e *encoder, d *Device) {
	e.table("device")
	e.text("name", d.Name)
	e.text("kind", d.Kind)
	e.count("count", d.Count)
	e.text("memory", p.Memories[d.Memory].Name)
	var speeds []string
	for _, t := range slices.Sorted(maps.Keys(d.FlopsPerSec)) {
		speeds = append(speeds, part(t, &flopsPerSecScale, d.FlopsPerSec[t]))
	}
	e.inline("speed", speeds...)
	e.inline("cache", part("l2", &bytesScale, float64(d.L2Bytes)), part("l3", &bytesScale, float64(d.L3Bytes)))
	e.duration("dispatch", d.Dispatch)
	e.duration("handoff", d.Handoff)
	e.duration("handoff_to_cpu", d.HandoffToCPU)
	e.duration("timing", d.Timing)
	e.inline("wake", part("after", &nsScale, float64(d.WakeAfter)), part("cost", &nsScale, float64(d.Wake)))
	e.number("run_spread", d.RunSpread)
	e.inline("first_use", part("context", &nsScale, float64(d.FirstUse.Context)), part("kernels", &nsScale, float64(d.FirstUse.Kernels)),
		part("memory", &bytesPerSecScale, d.FirstUse.MemoryBytesPerSec))
	e.inline("copy_engines", countPart("in", d.CopyEnginesIn), countPart("out", d.CopyEnginesOut))
	e.count("streams", d.Streams)
	if d.Ordinal != 0 {
		fmt.Fprintf(e, "ordinal = %d\n", d.Ordinal)
	}
	e.flag("placed_only", d.PlacedOnly)
	e.flag("unreachable", d.Unreachable)
	if f := d.Fault; f.Kind != "" {
		fmt.Fprintf(e, "fault = { after = %d, kind = %q }\n", f.After, f.Kind)
	}
	if d.PowerSource != "" {
		e.inline("power", powerPart(d.IdleWatts, d.Busy), fmt.Sprintf("source = %q", d.PowerSource))
	}
	if len(d.Clocks) == 0 {
		return
	}
	e.text("clock_name", d.Clocks[0].Name)
	for _, c := range d.Clocks[1:] {
		e.table("device.clock")
		e.text("name", c.Name)
		fmt.Fprintf(e, "scale = %s\n", plainNumber(c.Scale))
		if d.PowerSource != "" {
			e.inline("power", powerPart(c.Idle, c.Busy))
		}
	}
}

func (e *encoder) duration(key string, d time.Duration) { e.quantity(key, &nsScale, float64(d)) }

// plainNumber writes a number in the form of TOML, with a point or an exponent.
func plainNumber(v float64) string {
	s := fmt.Sprint(v)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func powerPart(idle float64, b BusyPower) string {
	busy := fmt.Sprintf("%q", wattsScale.format(b.UnitWatts))
	if b.WholeDevice {
		busy = fmt.Sprintf("[%q, %q]", wattsScale.format(b.FirstWatts), wattsScale.format(b.AllWatts))
	}
	return fmt.Sprintf("idle = %q, busy = %s", wattsScale.format(idle), busy)
}

func encodeLink(e *encoder, l *Link) {
	e.table("link")
	e.text("name", l.Name)
	e.quantity("bandwidth", &bytesPerSecScale, l.BandwidthBytesPerSec)
	e.duration("latency", l.Latency)
	e.text("sharing", l.Sharing.String())
	if l.PowerSource != "" {
		fmt.Fprintf(e, "power = { idle = %q, busy = %q, source = %q }\n",
			wattsScale.format(l.IdleWatts), wattsScale.format(l.BusyWatts), l.PowerSource)
	}
}

func (p *Platform) encodeRoute(e *encoder, r *Route) {
	e.table("route")
	e.text("from", p.Memories[r.From].Name)
	e.text("to", p.Memories[r.To].Name)
	names := make([]string, len(r.Links))
	for i, l := range r.Links {
		names[i] = quote(p.Links[l].Name)
	}
	fmt.Fprintf(e, "links = [%s]\n", strings.Join(names, ", "))
	e.flag("oneway", r.OneWay)
}

func encodeModel(e *encoder, m *Model) {
	e.table("model")
	e.text("op", m.Op)
	e.text("variant", m.Variant)
	e.text("type", m.Type)
	e.text("device", m.Device)
	e.text("clock", m.Clock)
	e.text("shape", m.Shape)
	e.count("active", m.Active)
	e.quantity("median", &nsScale, m.MedianNs)
	e.quantity("p95", &nsScale, m.P95Ns)
	e.quantity("warm", &nsScale, m.WarmNs)
	e.quantity("far", &nsScale, m.FarNs)
	e.count("count", m.Count)
	e.distribution("distribution", &m.Distribution)
	e.flag("unsteady", m.Unsteady)
	e.quantity("in_step", &nsScale, m.StepNs)
	e.quantity("first_step", &nsScale, m.FirstNs)
	e.distribution("in_step_distribution", &m.StepDistribution)
	e.quantity("joules", &joulesScale, m.Joules)
	e.quantity("flops", &flopsScale, m.Flops)
	e.quantity("bytes", &bytesScale, float64(m.MovedBytes))
	e.quantity("workspace", &bytesScale, float64(m.WorkspaceBytes))
}
