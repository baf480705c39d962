package platform

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"dahl/must"
)

// alike reports whether two platforms have the same parts, whatever ways between memories they have found so far.
func alike(a, b *Platform) bool {
	x, y := *a, *b
	x.ways, y.ways = nil, nil
	return reflect.DeepEqual(&x, &y)
}

func checkRoundTrip(t *testing.T, p *Platform) {
	t.Helper()
	var text bytes.Buffer
	must.Do(t, p.WriteTOML(&text))
	back, err := Parse(text.Bytes(), "written.toml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text.Bytes())
	}
	if !alike(p, back) {
		t.Fatalf("wrote %+v\nread  %+v\n%s", p, back, text.Bytes())
	}
	if p.Hash() != back.Hash() {
		t.Error("the hashes differ")
	}
}

func TestWriteRoundTrips(t *testing.T) {
	p := must.Get(Parse([]byte(everyKey), "node.toml"))(t)
	checkRoundTrip(t, p)
	for seed := range uint64(200) {
		checkRoundTrip(t, randomPlatform(t, rand.New(rand.NewPCG(seed, 0))))
	}
}

// randomDistribution has whole nanoseconds, as measured ones do, or none.
func randomDistribution(r *rand.Rand) (d Distribution) {
	if r.IntN(2) == 0 {
		return d
	}
	for i := range d {
		d[i] = 1 + float64(r.Int64N(1<<30))
	}
	slices.Sort(d[:])
	return d
}

// randomPlatform has numbers with all their bits in use.
func randomPlatform(t *testing.T, r *rand.Rand) *Platform {
	real := func() float64 { return math.Ldexp(1+r.Float64(), r.IntN(60)-20) }
	whole := func() int64 { return 1 + r.Int64N(1<<53)>>r.IntN(50) }
	maybe := func(n int64) int64 { return n * int64(r.IntN(2)) }
	sources := []Source{Measured, Datasheet, Guess}
	source := func() Source { return sources[r.IntN(3)] }
	busy := func(count int) BusyPower {
		if count > 1 && r.IntN(2) == 0 {
			return BusyPower{FirstWatts: real(), AllWatts: real(), WholeDevice: true}
		}
		return BusyPower{UnitWatts: real()}
	}
	p := &Platform{Name: fmt.Sprintf("näme \"%d\" \\ \u00a0", r.IntN(9)), HostPower: Quantity{real(), source()}}
	for i := range 1 + r.IntN(4) {
		p.Memories = append(p.Memories, Memory{Name: fmt.Sprint("m", i), CapacityBytes: maybe(whole()), BandwidthBytesPerSec: real()})
	}
	p.Memories[r.IntN(len(p.Memories))].Host = r.IntN(2) == 0
	for i := range 1 + r.IntN(4) {
		d := Device{Name: fmt.Sprint("d", i), Kind: kinds[r.IntN(len(kinds))].Name, Count: 1 + r.IntN(5), Whole: r.IntN(3), Memory: MemoryID(r.IntN(len(p.Memories))),
			FlopsPerSec: map[string]float64{"float32": real(), "int32": real()}, L2Bytes: maybe(whole()), L3Bytes: maybe(whole()),
			Dispatch: time.Duration(maybe(whole())), Handoff: time.Duration(maybe(whole())), RunSpread: r.Float64(), CopyEnginesIn: r.IntN(3), CopyEnginesOut: r.IntN(3), Streams: r.IntN(3),
			PlacedOnly: r.IntN(2) == 0, FirstUse: FirstUse{time.Duration(maybe(whole())), time.Duration(maybe(whole())), real() * float64(r.IntN(2))}}
		if r.IntN(4) > 0 {
			d.IdleWatts, d.Busy, d.PowerSource = real(), busy(d.Count), source()
			if d.PowerSource == Measured && r.IntN(2) == 0 {
				d.PowerMeter, d.PowerSpread = `RAPL "x" (2 packages)`, r.Float64()
			}
			if r.IntN(2) == 0 {
				d.Clocks = []Clock{{Name: "own", Scale: 1, Idle: d.IdleWatts, Busy: d.Busy, FrequencyHz: real()}, {Name: "x", Scale: real(), Idle: real(), Busy: busy(d.Count), FrequencyHz: real()}, {Name: "y", Scale: real(), Busy: busy(d.Count)}}
				d.AtClock = ClockID(r.IntN(3))
			}
		}
		if d.Kind == "emulated" && r.IntN(2) == 0 {
			d.Fault = DeviceFault{[]string{FaultLost, FaultMemory}[r.IntN(2)], r.IntN(1000)}
		}
		if d.Kind != "cpu" {
			d.HandoffToCPU, d.Timing = time.Duration(maybe(whole())), time.Duration(maybe(whole()))
		}
		if r.IntN(2) == 0 {
			d.WakeAfter, d.Wake = time.Duration(whole()), time.Duration(whole())
		}
		p.Devices = append(p.Devices, d)
		p.Models = append(p.Models, Model{Op: "o", Variant: "v\u00a0", Type: "float32", Device: d.Name, Clock: "own", Shape: `s"`, Compute: float64(r.IntN(2)) * r.Float64(), Active: 1 + r.IntN(9),
			MedianNs: real(), P95Ns: real(), WarmNs: real(), FarNs: real(), StepNs: real(), FirstNs: real(), Unsteady: r.IntN(2) == 0,
			Distribution: randomDistribution(r), StepDistribution: randomDistribution(r), Count: r.IntN(5), Joules: real() * float64(r.IntN(2)), WorkspaceBytes: maybe(whole()), Flops: real(), MovedBytes: maybe(whole())})
	}
	for i := range 1 + r.IntN(3) {
		l := Link{Name: fmt.Sprint("l", i), BandwidthBytesPerSec: real(), Latency: time.Duration(maybe(whole())), Sharing: Sharing(r.IntN(3))}
		if r.IntN(2) == 0 {
			l.IdleWatts, l.BusyWatts, l.PowerSource = real(), real(), source()
		}
		p.Links = append(p.Links, l)
	}
	for i := 1; i < len(p.Memories); i++ {
		p.Routes = append(p.Routes, Route{MemoryID(i - 1), MemoryID(i), []LinkID{LinkID(r.IntN(len(p.Links))), 0}, r.IntN(2) == 0})
	}
	if r.IntN(2) == 0 {
		for i := range p.Devices {
			if d := &p.Devices[i]; d.Kind == "cuda" {
				d.Ordinal = 2 * (len(p.Devices) - i)
			}
		}
	}
	for i := range p.Devices {
		d, host := &p.Devices[i], p.HostMemory()
		_, there := p.Route(host, d.Memory)
		_, back := p.Route(d.Memory, host)
		d.Unreachable = !there || !back
	}
	must.Do(t, p.Complete())
	return p
}

// The hash is that of the content: comments, units and the order of keys do not show.
func TestHashIgnoresLayout(t *testing.T) {
	a := must.Get(Parse([]byte("[[memory]]\nname = \"ram\"\ncapacity = \"2 GB\"\n[[device]]\nname = \"cpu\"\nkind = \"cpu\"\nmemory = \"ram\"\n"), "a"))(t)
	b := must.Get(Parse([]byte("# x\n[[device]]\nmemory = \"ram\"\nname = \"cpu\"\nkind = \"cpu\"\ncount = 1\n[[memory]]\ncapacity = \"2000 MB\"\nname = \"ram\"\n"), "b"))(t)
	if a.Hash() != b.Hash() {
		t.Error("equal platforms have different hashes")
	}
	b.Memories[0].CapacityBytes++
	if a.Hash() == b.Hash() {
		t.Error("different platforms have equal hashes")
	}
}
