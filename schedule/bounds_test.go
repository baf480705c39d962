package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// machine is four cores on a memory of a byte per ns, which compute an operation per ns, and a
// device with a memory of its own of 40 bytes.
func machine(t *testing.T) *platform.Platform {
	t.Helper()
	speed := map[string]float64{"float32": 1e9}
	p := &platform.Platform{Name: "machine",
		Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e9}, {Name: "vram", CapacityBytes: 40, BandwidthBytesPerSec: 1e9}},
		Devices: []platform.Device{
			{Name: "cpu", Kind: "cpu", Count: 4, FlopsPerSec: speed, PowerSource: platform.Guess},
			{Name: "e0", Kind: "emulated", Count: 1, Memory: 1, Dispatch: 2, Timing: 30, PowerSource: platform.Guess},
		},
		Links:  []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e9, PowerSource: platform.Guess}},
		Routes: []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}},
	}
	for _, m := range []platform.Model{
		{Op: "busy", Variant: "go", Device: "cpu", Active: 1, MedianNs: 10},
		{Op: "busy", Variant: "go", Device: "cpu", Active: 4, MedianNs: 30},
		{Op: "odd", Variant: "go", Device: "cpu", Active: 1, MedianNs: 40},
		{Op: "odd", Variant: "go", Device: "cpu", Active: 4, MedianNs: 30},
		{Op: "pinned", Variant: "go", Device: "cpu", Active: 4, MedianNs: 100, StepNs: 90},
		{Op: "pinned", Variant: "avx2", Device: "cpu", Active: 4, MedianNs: 110, StepNs: 50},
		{Op: "cached", Variant: "go", Device: "cpu", Active: 1, MedianNs: 20, WarmNs: 12, FarNs: 25},
		{Op: "cached", Variant: "go", Device: "cpu", Active: 4, MedianNs: 40, WarmNs: 14, FarNs: 55},
		{Op: "timed", Variant: "go", Device: "e0", Active: 1, MedianNs: 100},
	} {
		m.Type, m.Shape, m.P95Ns, m.Count = "float32", "s", m.MedianNs, 3
		p.Models = append(p.Models, m)
	}
	must.Do(t, p.Complete())
	return p
}

// priced prices a graph that is given by the lines of its text form after the first.
func priced(t *testing.T, lines string, target Target) *Priced {
	t.Helper()
	return pricedOn(t, machine(t), lines, target)
}

// withTurbo is the machine whose cores have another clock, which computes twice as fast.
func withTurbo(t *testing.T) *platform.Platform {
	t.Helper()
	p := machine(t)
	p.Devices[0].Clocks = []platform.Clock{{Name: "base", Scale: 1}, {Name: "turbo", Scale: 2}}
	return p
}

func pricedOn(t *testing.T, p *platform.Platform, lines string, target Target) *Priced {
	t.Helper()
	g := must.Get(dag.ParseText(strings.NewReader("graph g\n"+lines), "test"))(t)
	return must.Get(Price(&dag.Program{Name: "p", Graphs: []*dag.Graph{g}}, p, target))(t)
}

// alike are so many tasks with the same details.
func alike(n int, task, details string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "task t%d %s\n%s\n", i, task, details)
	}
	return b.String()
}

// TestLowerBoundOrders derives the longest path by hand. There are enough cores for no bound on
// the work to be more.
func TestLowerBoundOrders(t *testing.T) {
	const x = "buffer x float32 [4] activation\nbuffer w float32 [4] parameter\n"
	for _, c := range []struct {
		words, lines string
		steps        int
		want         time.Duration
	}{
		{"a chain", x + "task a\n write x\n costs cpu=3\ntask b\n read x\n costs cpu=4", 1, 3 + 4},
		{"x is written while another version of it is read: 3+5 or 4+2, in steps that need not wait for each other either",
			x + "task a\n write x\n costs cpu=3\ntask b\n read x\n costs cpu=5\ntask c\n write x\n costs cpu=4\ntask d\n read x\n costs cpu=2", 2, 3 + 5},
		{"what changes x reads it: 3+4+2",
			x + "task a\n write x\n costs cpu=3\ntask b\n read x\n costs cpu=5\ntask c\n readwrite x\n costs cpu=4\ntask d\n read x\n costs cpu=2", 2, 3 + 4 + 2},
		{"u changes w in every step: 3·7, and r, which reads w of the step before, holds nothing up: 2·7+5",
			x + "task r\n read w\n costs cpu=5\ntask u\n readwrite w\n costs cpu=7", 3, 3 * 7},
		{"r reads what u has written in the step before: 7+16",
			x + "task r\n read w\n costs cpu=16\ntask u\n readwrite w\n costs cpu=7", 2, 7 + 16},
		{"only parts that overlap: 6+2, and 7",
			x + "task a\n write x[0:2]\n costs cpu=7\ntask b\n write x[2:4]\n costs cpu=6\ntask c\n read x[3:4]\n costs cpu=2", 1, 6 + 2},
		{"without data: 3+6, and no order from step to step",
			"task a\n costs cpu=3\ntask b\n after a\n costs cpu=6", 2, 3 + 6},
	} {
		if got := priced(t, c.lines, Unbound).LowerBound(0, c.steps); got != c.want {
			t.Errorf("%s: %d, want %d", c.words, got, c.want)
		}
	}
}

// TestLowerBoundTimes derives by hand what tasks take at least, and what they keep the devices
// busy for.
func TestLowerBoundTimes(t *testing.T) {
	const s, onCPU = "type=float32 shape=s", " place device=cpu"
	for _, c := range []struct {
		words, lines string
		target       Target
		want         time.Duration
	}{
		{"two costs: the least", alike(1, "", " costs cpu=4 e0=5"), Unbound, 4},
		{"the dispatch of e0, 2, comes on top of its costs", alike(1, "", " costs cpu=40 e0=5"), Unbound, 7},
		{"five tasks of 5 on four cores: 25/4, rounded up", alike(5, "", " costs cpu=5"), Unbound, 7},
		{"two tasks of 6+2 that only e0 can run share it", alike(2, "", " costs e0=6") + "task more\n costs cpu=1", Unbound, 16},
		{"two tasks of 6 placed on one core of four share it", alike(2, "", " costs cpu=6\n place device=cpu.1"), Unbound, 12},
		{"two tasks of 6 share a core, any core", alike(2, "", " costs cpu=6\n place colocate=one"), Unbound, 12},
		{"12 tasks of 8 on a core or 1+2 on e0: x of them on e0 take 3·x, the others 8·(12−x)/4, equal for x = 24/5: 72/5",
			alike(12, "", " costs cpu=8 e0=1"), Unbound, 15},
		{"e0 would take 1+2, but its memory holds 40 bytes of 44", "buffer b float32 [11] activation\n" + alike(1, "", " write b\n costs cpu=9 e0=1"), Unbound, 9},
		{"10 on one core alone", alike(1, "op=busy "+s, onCPU), Unbound, 10},
		{"with 2 cores 10 each, with 4 cores 30: 8·10/2 is less than 8·30/4", alike(8, "op=busy "+s, onCPU), Unbound, 40},
		{"12 bytes: one core alone has the whole bandwidth", alike(1, "op=move type=float32", " work bytes=12\n"+onCPU), Unbound, 12},
		{"8·12 bytes: however many cores share the bandwidth; a time of 4 cores is rounded up and may be 1 less: 8·(48−1)/4",
			alike(8, "op=move type=float32", " work bytes=12\n"+onCPU), Unbound, 94},
		{"avx2 is slower by itself and not chosen, and a plan may say otherwise", alike(1, "op=pinned "+s, onCPU), Unbound, 50},
		{"a target that has nothing but go", alike(1, "op=pinned "+s, onCPU), oneOffer{"go"}, 90},
		{"operands in the cache, one core busy", alike(1, "op=cached "+s, onCPU), Unbound, 12},
		{"100 when it is timed, 30 less when it is not, and the dispatch", alike(1, "op=timed "+s, " place device=e0"), Unbound, 72},
		{"no memory for it anywhere", "buffer b float32 [11] activation\n" + alike(1, "", " write b\n costs e0=1"), Unbound, 0},
	} {
		if got := priced(t, c.lines, c.target).LowerBound(0, 1); got != c.want {
			t.Errorf("%s: %d, want %d", c.words, got, c.want)
		}
	}
}

// TestLowerBoundAtAnyClock derives by hand what tasks take at least at the better of two clocks,
// whichever is in force.
func TestLowerBoundAtAnyClock(t *testing.T) {
	const onCPU = " place device=cpu"
	for _, c := range []struct {
		words, lines string
		want         time.Duration
	}{
		{"20 operations: 10 at the other clock", alike(1, "op=add type=float32", " work flops=20\n"+onCPU), 10},
		{"8·10 on four cores", alike(8, "op=add type=float32", " work flops=20\n"+onCPU), 20},
		{"a cost for the other clock", alike(1, "", " costs cpu=20 cpu@turbo=7"), 7},
		{"a cost of the first clock: half of it", alike(1, "", " costs cpu=20"), 10},
		{"half of that cost follows the clock: 10 + 10/2", alike(1, "type=float32", " costs cpu=20\n work flops=5 bytes=5"), 15},
		{"a model of the first clock with one core busy: half of 10", alike(1, "op=busy type=float32 shape=s", onCPU), 5},
	} {
		for _, clock := range []string{"base", "turbo"} {
			p := must.Get(withTurbo(t).WithClock("cpu", clock))(t)
			if got := pricedOn(t, p, c.lines, Unbound).LowerBound(0, 1); got != c.want {
				t.Errorf("%s, %s in force: %d, want %d", c.words, clock, got, c.want)
			}
		}
	}
}

// TestLowerBoundOfSome: the bound of a part of the machine is of what that part can do. 23 busy
// tasks take 10 each with one or two cores selected and 30 with three or four, so that no number
// of cores does more than two in 10. An odd one takes 40 and 30. Those of 20 operations take 10 at
// the faster clock. Those that move 12 bytes take 12·n with n cores, 960 in all, of which the bound
// takes off 1 of 48 for rounding. With e0 alone a core stays for tasks placed on cores, and for
// no others.
func TestLowerBoundOfSome(t *testing.T) {
	busy := priced(t, alike(23, "op=busy type=float32 shape=s", " place device=cpu"), Unbound)
	add := pricedOn(t, withTurbo(t), alike(24, "op=add type=float32", " work flops=20\n place device=cpu"), Unbound)
	either := priced(t, alike(1, "", " costs cpu=4 e0=5"), Unbound)
	odd := priced(t, alike(1, "op=odd type=float32 shape=s", " place device=cpu"), Unbound)
	move := priced(t, alike(80, "op=move type=float32", " work bytes=12\n place device=cpu"), Unbound)
	for _, c := range []struct {
		priced  *Priced
		devices string
		want    time.Duration
	}{
		{busy, "cpu:1", 230}, {busy, "cpu:2", 115}, {busy, "cpu:3", 115}, {busy, "cpu:4", 115},
		{add, "cpu:1", 240}, {add, "cpu:2", 120}, {add, "cpu:3", 80}, {add, "cpu:4", 60}, {add, "e0", 240},
		{odd, "cpu:1", 40}, {either, "cpu:1", 4}, {either, "e0", 5 + 2},
		{move, "cpu:1", 960}, {move, "cpu:3", 940}, {move, "cpu", 940},
	} {
		view := must.Get(c.priced.On(c.devices))(t)
		for steps := range time.Duration(3) {
			if got := view.LowerBound(0, int(steps)); got != steps*c.want {
				t.Errorf("%d steps on %s: %d, want %d", steps, c.devices, got, steps*c.want)
			}
		}
	}
}

// TestLowerBoundOfLongRuns: b reads what a wrote in the step before, c copies it, and a reads the
// copy one step later: 5, 7 and 3 in every two steps. Of so many steps that the bound cannot
// visit all tasks it knows a cycle from a to a. It takes 15 in two steps, and 3 in one, as a reads
// what it wrote itself.
func TestLowerBoundOfLongRuns(t *testing.T) {
	c := priced(t, `buffer q float32 [1] parameter
buffer p float32 [1] parameter
buffer copy float32 [1] activation
task b
 read q
 write copy
 costs cpu=5
task a
 read p
 readwrite q
 costs cpu=3
task c
 read copy
 write p
 costs cpu=7`, Unbound)
	const many = 2 * maxBoundInstances
	for steps, want := range map[int]time.Duration{1: 5 + 7, 2: 15, 3: 15 + 12, 4: 15 + 15, many: many / 2 * 15, many + 1: many/2*15 + 3} {
		if got := c.LowerBound(0, steps); got != want {
			t.Errorf("%d steps: %d, want %d", steps, got, want)
		}
	}
}
