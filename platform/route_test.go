package platform

import (
	"math"
	"slices"
	"testing"
	"time"

	"dahl/must"
)

// star has memories ram, a, b, c, d: a and b hang on ram, c only takes from b,
// and nothing leads to d.
func star() *Platform {
	mem := func(n string) Memory { return Memory{Name: n} }
	return &Platform{
		Memories: []Memory{mem("ram"), mem("a"), mem("b"), mem("c"), mem("d")},
		Devices:  []Device{{Name: "gpu", Kind: "cuda", Count: 1, Memory: 1}, {Name: "cpu", Kind: "cpu", Count: 2, Memory: 2}},
		Links: []Link{
			{Name: "l0", BandwidthBytesPerSec: 10e9, Latency: 8000},
			{Name: "l1", BandwidthBytesPerSec: 5e9, Latency: 2000},
			{Name: "l2", BandwidthBytesPerSec: 20e9, Latency: 500},
		},
		Routes: []Route{
			{From: 0, To: 1, Links: []LinkID{0, 2}},
			{From: 2, To: 0, Links: []LinkID{1}},
			{From: 2, To: 3, Links: []LinkID{2}, OneWay: true},
		},
	}
}

func TestRoute(t *testing.T) {
	bare, complete := star(), star()
	must.Do(t, complete.Complete())
	for _, c := range []struct {
		from, to MemoryID
		links    []LinkID
		ok       bool
		time     time.Duration // of 1e6 bytes
	}{
		{0, 1, []LinkID{0, 2}, true, 8500 + 100_000},         // 10 GB/s is the slowest
		{1, 0, []LinkID{2, 0}, true, 8500 + 100_000},         // turned round
		{0, 2, []LinkID{1}, true, 2000 + 200_000},            // given as 2 to 0
		{1, 2, []LinkID{2, 0, 1}, true, 10_500 + 200_000},    // through ram
		{1, 3, []LinkID{2, 0, 1, 2}, true, 11_000 + 200_000}, // through ram and b
		{3, 2, nil, false, Unreachable},                      // against a one-way route
		{0, 4, nil, false, Unreachable},
		{2, 2, nil, true, 0},
		{4, 4, nil, true, 0},
	} {
		for _, p := range []*Platform{bare, complete} {
			links, ok := p.Route(c.from, c.to)
			if !slices.Equal(links, c.links) || ok != c.ok {
				t.Errorf("%d to %d: %v, %v; want %v, %v", c.from, c.to, links, ok, c.links, c.ok)
			}
			if got := p.RouteTime(c.from, c.to, 1e6); got != c.time {
				t.Errorf("%d to %d: %v, want %v", c.from, c.to, got, c.time)
			}
		}
	}
}

// A route may cross a link several times: of a shared one each crossing takes its part
// of the bandwidth, of a duplex one each in its direction does, and of a fatpipe none.
// From a to b the way is that from a to ram and that from ram to b.
func TestLinkUses(t *testing.T) {
	const up, down = 0, 1 // link up has an end of its own by the route of a; link down by no route
	for _, c := range []struct {
		words    string
		sharing  Sharing
		a, b     []LinkID // links from ram
		from, to MemoryID
		want     []LinkUse
		time     time.Duration // of 1e6 bytes at 10 GB/s, 100 us for each crossing in one direction
	}{
		{"once", Shared, []LinkID{up}, []LinkID{down}, 0, 1, []LinkUse{{up, 0, 1}}, 100_000},
		{"twice by name", Shared, []LinkID{up, up}, []LinkID{down}, 0, 1, []LinkUse{{up, 0, 2}}, 200_000},
		{"twice by name, back", Shared, []LinkID{up, up}, []LinkID{down}, 1, 0, []LinkUse{{up, 0, 2}}, 200_000},
		{"three times on the way over ram", Shared, []LinkID{up, up}, []LinkID{down, up}, 1, 2, []LinkUse{{up, 0, 3}, {down, 0, 1}}, 300_000},
		{"there and back through a duplex link", Duplex, []LinkID{up}, []LinkID{up}, 1, 2, []LinkUse{{up, 0, 1}, {up, 1, 1}}, 100_000},
		{"the same without known ends", Duplex, []LinkID{up, down}, []LinkID{up, down}, 1, 2,
			[]LinkUse{{up, 0, 1}, {up, 1, 1}, {down, 0, 1}, {down, 1, 1}}, 100_000},
		{"by one route without known ends", Duplex, []LinkID{up, down, down, up}, []LinkID{down, up}, 1, 0,
			[]LinkUse{{up, 0, 1}, {up, 1, 1}, {down, 0, 1}, {down, 1, 1}}, 100_000},
		{"three times by one route", Duplex, []LinkID{down, down, down}, []LinkID{up}, 0, 1, []LinkUse{{down, 0, 2}, {down, 1, 1}}, 200_000},
		{"a fatpipe twice", Fatpipe, []LinkID{up, up}, []LinkID{down}, 0, 1, []LinkUse{{up, 0, 2}}, 100_000},
		{"within one memory", Shared, []LinkID{up}, []LinkID{down}, 1, 1, nil, 0},
	} {
		p := &Platform{Memories: []Memory{{Name: "ram"}, {Name: "a"}, {Name: "b"}}, Devices: []Device{{Name: "cpu", Kind: "cpu", Count: 1}},
			Links:  []Link{{Name: "up", BandwidthBytesPerSec: 10e9, Sharing: c.sharing}, {Name: "down", BandwidthBytesPerSec: 10e9, Sharing: c.sharing}},
			Routes: []Route{{From: 0, To: 1, Links: c.a}, {From: 0, To: 2, Links: c.b}}}
		must.Do(t, p.Complete())
		if got := p.LinkUses(c.from, c.to); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.words, got, c.want)
		}
		if got := p.RouteTime(c.from, c.to, 1e6); got != c.time {
			t.Errorf("%s: %v, want %v", c.words, got, c.time)
		}
	}
}

// TestPasses: from a to c the way is a, ram, b, c; it is the shortest of all that
// Route finds, so it passes ram and b and not its ends.
func TestPasses(t *testing.T) {
	p := star()
	for _, c := range []struct {
		from, to, through MemoryID
		want              bool
	}{{1, 3, 0, true}, {1, 3, 2, true}, {1, 3, 1, false}, {1, 3, 3, false}, {1, 3, 4, false},
		{0, 1, 2, false}, {1, 2, 0, true}, {3, 2, 0, false}, {0, 4, 2, false}, {2, 2, 2, false}} {
		if got := p.Passes(c.from, c.to, c.through); got != c.want {
			t.Errorf("from %d to %d through %d: %v", c.from, c.to, c.through, got)
		}
	}
}

func TestLookups(t *testing.T) {
	p := star()
	must.Do(t, p.Complete())
	if p.HostMemory() != 2 {
		t.Errorf("the host memory is %d, want that of the cpu", p.HostMemory())
	}
	if m, ok := p.MemoryByName("b"); !ok || m != 2 {
		t.Errorf("b is %d, %v", m, ok)
	}
	if d, ok := p.DeviceByName("cpu"); !ok || d != 1 {
		t.Errorf("cpu is %d, %v", d, ok)
	}
	if w, ok := p.WorkerByName("cpu.1"); !ok || w != 2 || p.Workers[w] != (Worker{"cpu.1", 1, 1}) {
		t.Errorf("cpu.1 is %d, %v", w, ok)
	}
	if w, ok := p.WorkerByName("cpu"); ok {
		t.Errorf("cpu is worker %d; its units are cpu.0 and cpu.1", w)
	}
}

// TestHostMemory: the one that is marked, else that of the first cpu, else the first.
func TestHostMemory(t *testing.T) {
	for _, c := range []struct {
		change func(p *Platform)
		want   MemoryID
	}{
		{func(*Platform) {}, 2},
		{func(p *Platform) { p.Memories[1].Host = true }, 1},
		{func(p *Platform) { p.Memories[2].Host = true }, 2},
		{func(p *Platform) { p.Devices[1].Kind = "emulated" }, 0},
		{func(p *Platform) { p.Devices[1].Kind, p.Memories[1].Host = "emulated", true }, 1},
	} {
		p := star()
		c.change(p)
		bare := p.HostMemory()
		must.Do(t, p.Complete())
		if got := p.HostMemory(); got != c.want || bare != c.want {
			t.Errorf("the host memory is %d, %d before Complete; want %d", got, bare, c.want)
		}
	}
}

// By unit: n·busy + (count − n)·idle. For the whole device: linear from the first
// unit, 120 W, to all four, 200 W, so 120 + 80/3 with two.
func TestWatts(t *testing.T) {
	p := &Platform{Devices: []Device{
		{Count: 3, IdleWatts: 2, Busy: BusyPower{UnitWatts: 9}},
		{Count: 4, IdleWatts: 25, Busy: BusyPower{FirstWatts: 120, AllWatts: 200, WholeDevice: true}},
		{Count: 1, IdleWatts: 20, Busy: BusyPower{FirstWatts: 250, AllWatts: 250, WholeDevice: true}},
	}}
	for _, c := range []struct {
		d    DeviceID
		n    int
		want float64
	}{{0, 0, 6}, {0, 1, 13}, {0, 2, 20}, {0, 3, 27}, {1, 0, 100}, {1, 1, 120}, {1, 2, 120 + 80.0/3}, {1, 4, 200}, {2, 0, 20}, {2, 1, 250}} {
		if got := p.Devices[c.d].Watts(p.Devices[c.d].AtClock, c.n); !near(got, c.want, 1e-15) {
			t.Errorf("device %d with %d busy: %g W, want %g", c.d, c.n, got, c.want)
		}
	}
}

func near(a, b, rel float64) bool { return math.Abs(a-b) <= rel*max(math.Abs(a), math.Abs(b), 1e-300) }
