package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"dahl/must"
	"dahl/platform"
)

// line is memories 0, 1, 2 … in a row, joined by links of the given bandwidths
// in bytes per second.
func line(t *testing.T, sharing platform.Sharing, bandwidths ...float64) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "line", Memories: []platform.Memory{{Name: "m0", BandwidthBytesPerSec: 1}},
		Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 1, PowerSource: platform.Guess}}}
	for i, b := range bandwidths {
		p.Memories = append(p.Memories, platform.Memory{Name: "m" + strconv.Itoa(i+1), BandwidthBytesPerSec: 1})
		p.Links = append(p.Links, platform.Link{Name: "l" + strconv.Itoa(i), BandwidthBytesPerSec: b, Sharing: sharing, PowerSource: platform.Guess})
		p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(i), To: platform.MemoryID(i + 1), Links: []platform.LinkID{platform.LinkID(i)}})
	}
	must.Do(t, p.Complete())
	return p
}

type testFlow struct {
	at       time.Duration
	from, to platform.MemoryID
	bytes    int64
}

// endsOf runs flows through a network and returns when each ends.
func endsOf(p *platform.Platform, flows []testFlow) []time.Duration {
	n := newNetwork(p)
	ends := make([]time.Duration, len(flows))
	next := 0
	for {
		end, ok := n.next()
		if next < len(flows) && (!ok || flows[next].at < end) {
			f := flows[next]
			n.join(f.at, numberOf(n, f.from, f.to), f.bytes, int32(next), int64(next))
			next++
			continue
		}
		if !ok {
			return ends
		}
		n.ended(end, func(id int32) { ends[id] = end })
	}
}

const second = time.Second

func TestFlows(t *testing.T) {
	for _, c := range []struct {
		words   string
		sharing platform.Sharing
		links   []float64
		flows   []testFlow
		want    []time.Duration
	}{
		{"one flow of 2 bytes on a link of 2 B/s: exactly 1 s", platform.Shared, []float64{2},
			[]testFlow{{0, 0, 1, 2}}, []time.Duration{second}},
		{"two flows of 1 byte share one link of 1 B/s: exactly 2 s each", platform.Shared, []float64{1},
			[]testFlow{{0, 0, 1, 1}, {0, 0, 1, 1}}, []time.Duration{2 * second, 2 * second}},
		{"in opposite directions of a shared link: the same", platform.Shared, []float64{1},
			[]testFlow{{0, 0, 1, 1}, {0, 1, 0, 1}}, []time.Duration{2 * second, 2 * second}},
		{"in opposite directions of a duplex link: 1 s each", platform.Duplex, []float64{1},
			[]testFlow{{0, 0, 1, 1}, {0, 1, 0, 1}}, []time.Duration{second, second}},
		{"in one direction of a fatpipe: 1 s each", platform.Fatpipe, []float64{1},
			[]testFlow{{0, 0, 1, 1}, {0, 0, 1, 1}}, []time.Duration{second, second}},
		{"3 bytes alone for 1 s, then with 1 byte at half rate for 2 s, then alone: 4 s and 3 s", platform.Shared, []float64{1},
			[]testFlow{{0, 0, 1, 3}, {second, 0, 1, 1}}, []time.Duration{4 * second, 3 * second}},
		// The long flow and the one on link 0 get 1/2 each. Link 1 leaves 2-1/2 = 3/2
		// to its own flow, link 2 leaves 4-1/2 = 7/2. With 1, 3 and 7 bytes all but
		// the long flow end at 2 s, by when that was served 1 byte of its 2; the last
		// goes at the 1 B/s of link 0: 3 s.
		{"a chain of three links of 1, 2 and 4 B/s, a long flow and one on each link", platform.Shared, []float64{1, 2, 4},
			[]testFlow{{0, 0, 3, 2}, {0, 0, 1, 1}, {0, 1, 2, 3}, {0, 2, 3, 7}},
			[]time.Duration{3 * second, 2 * second, 2 * second, 2 * second}},
		{"1 byte at 3 B/s takes a third of a second, rounded up", platform.Shared, []float64{3},
			[]testFlow{{0, 0, 1, 1}}, []time.Duration{333333334}},
	} {
		if got := endsOf(line(t, c.sharing, c.links...), c.flows); !slices.Equal(got, c.want) {
			t.Errorf("%s: ends at %v, want %v", c.words, got, c.want)
		}
	}
}

// TestWorkedSystem is the system in the comment of network.
func TestWorkedSystem(t *testing.T) {
	n := newNetwork(line(t, platform.Shared, 1, 2, 2))
	for i, f := range []testFlow{{0, 0, 3, 9}, {0, 0, 1, 9}, {0, 1, 2, 9}, {0, 2, 3, 9}, {0, 2, 3, 9}} {
		n.join(0, numberOf(n, f.from, f.to), f.bytes, int32(i), int64(i))
	}
	n.solve()
	want := []float64{0.5, 0.5, 1.5, 0.75} // the last class has two flows
	for i, c := range n.classes {
		if c.rate != want[i] {
			t.Errorf("class %d has %g B/s, want %g", i, c.rate, want[i])
		}
	}
}

// TestWeights: flows of two links, from m0 to m1 and on to m2, share the first link by one over the time of so many bytes on their routes. The
// latencies are 1 s and 2 s, and the ends are those of flows that begin to move at 0.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		words      string
		shareBytes int64
		sharing    platform.Sharing // of the second link
		bytes      [2]int64
		ends       [2]time.Duration
	}{
		{"latencies of 1 s and 3 s: 9 and 3 B/s of 12; after 1 s the second is alone with 3 bytes left", 0, platform.Shared, [2]int64{9, 6}, [2]time.Duration{second, 5 * second / 4}},
		{"24 B take 1 + 24/12 = 3 s and 3 + 2·24/12 = 7 s: 8.4 and 3.6 B/s", 24, platform.Shared, [2]int64{84, 36}, [2]time.Duration{10 * second, 10 * second}},
		{"a fatpipe of 2 B/s holds the second, and the first has 10 B/s", 0, platform.Fatpipe, [2]int64{10, 2}, [2]time.Duration{second, second}},
	} {
		p := line(t, platform.Shared, 12, 12)
		p.BySize, p.ShareBytes = true, c.shareBytes
		p.Links[0].Latency, p.Links[1].Latency = second, 2*second
		if p.Links[1].Sharing = c.sharing; c.sharing == platform.Fatpipe {
			p.Links[1].BandwidthBytesPerSec = 2
		}
		must.Do(t, p.Complete())
		if got := endsOf(p, []testFlow{{0, 0, 1, c.bytes[0]}, {0, 0, 2, c.bytes[1]}}); !slices.Equal(got, c.ends[:]) {
			t.Errorf("%s: the flows end at %v, want %v", c.words, got, c.ends)
		}
	}
}

// TestWeightsOfSimGrid: 90 and 60 MB over the same links of 12 MB/s each, with latencies of 1 ms and 2 ms, as SimGrid 3.32 has them with --cfg=network/model:CM02,
// network/weight-S as here, network/TCP-gamma:0 and network/crosstraffic:0.
func TestWeightsOfSimGrid(t *testing.T) {
	for shareBytes, want := range map[int64][2]float64{0: {10.000333333, 12.501}, 20537: {10.666301217, 12.501}, 24000: {10.714428571, 12.501}} {
		p := line(t, platform.Shared, 12e6, 12e6)
		p.BySize, p.ShareBytes = true, shareBytes
		p.Links[0].Latency, p.Links[1].Latency = time.Millisecond, 2*time.Millisecond
		must.Do(t, p.Complete())
		ends := endsOf(p, []testFlow{{time.Millisecond, 0, 1, 90e6}, {3 * time.Millisecond, 0, 2, 60e6}})
		for i, end := range ends {
			if math.Abs(end.Seconds()-want[i]) > 2e-9 {
				t.Errorf("%d bytes: flow %d ends at %v, want %g s", shareBytes, i, end, want[i])
			}
		}
	}
}

// TestMaxMin verifies the definition on random flows: no link carries more than
// it can, and every flow crosses a link that is full and on which no flow is
// faster, or is held by the bandwidth of a fatpipe.
func TestMaxMin(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := line(t, platform.Shared, 1+9*r.Float64(), 1+9*r.Float64(), 1+9*r.Float64(), 1+9*r.Float64())
		for l := range p.Links {
			p.Links[l].Sharing = platform.Sharing(r.IntN(3))
			for range r.IntN(3) { // named again, somewhere on the line
				route := &p.Routes[r.IntN(len(p.Routes))]
				route.Links = append(route.Links, platform.LinkID(l))
			}
		}
		must.Do(t, p.Complete())
		n := newNetwork(p)
		for i := range 1 + r.IntN(20) {
			from, to := platform.MemoryID(r.IntN(5)), platform.MemoryID(r.IntN(5))
			if from != to {
				n.join(0, numberOf(n, from, to), 1, int32(i), int64(i))
			}
		}
		n.solve()
		checkMaxMin(t, seed, n)
	}
}

// checkMaxMin verifies the definition for the rates of a network.
func checkMaxMin(t *testing.T, seed uint64, n *network) {
	t.Helper()
	load, fastest := make([]float64, len(n.links)), make([]float64, len(n.links))
	flowing := slices.DeleteFunc(slices.Clone(n.classes), func(c *class) bool { return len(c.flows) == 0 })
	for _, c := range flowing {
		for _, x := range c.crosses {
			load[x.resource] += float64(c.rate * x.times * float64(len(c.flows)))
			fastest[x.resource] = max(fastest[x.resource], c.rate)
		}
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(a, b) }
	for res, l := range load {
		if l > n.links[res].capacity && !near(l, n.links[res].capacity) {
			t.Fatalf("seed %d: %g B/s on a link of %g", seed, l, n.links[res].capacity)
		}
	}
	for _, c := range flowing {
		held := near(c.rate, c.cap) || slices.ContainsFunc(c.crosses, func(x crossing) bool {
			return near(load[x.resource], n.links[x.resource].capacity) && near(fastest[x.resource], c.rate)
		})
		if !held {
			t.Fatalf("seed %d: a flow at %g B/s could be faster", seed, c.rate)
		}
	}
}

// TestMaxMinOfComponents verifies the definition after every join and every end, among memories of two stars that some
// routes connect. So flows outside the component of a change keep rates that are still fair. The bytes that a flow is
// served, its rate times the intervals, add up to its own.
func TestMaxMinOfComponents(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := line(t, platform.Duplex, 1, 2, 3, 4, 5, 6, 7)
		p.Routes = nil
		for from := range platform.MemoryID(8) {
			for to := range from {
				if from/4 == to/4 || from+to == 7 { // within a star, or between two opposite leaves
					p.Routes = append(p.Routes, platform.Route{From: from, To: to, Links: []platform.LinkID{platform.LinkID(min(from, 6)), platform.LinkID(to)}})
				}
			}
		}
		must.Do(t, p.Complete())
		n, left, at := newNetwork(p), map[int32]float64{}, time.Duration(0)
		classOf := map[int32]*class{}
		pass := func(to time.Duration) {
			for id := range left {
				left[id] -= classOf[id].rate * (to - at).Seconds()
			}
			at = to
		}
		for id := int32(0); id < 60 || len(left) > 0; {
			end, flowing := n.next()
			checkMaxMin(t, seed, n)
			joins := at + time.Duration(r.Int64N(int64(second)))
			if id < 60 && (!flowing || joins < end) {
				pass(joins)
				from, to := platform.MemoryID(r.IntN(8)), platform.MemoryID(r.IntN(8))
				if links, ok := p.Route(from, to); !ok || len(links) == 0 {
					continue
				}
				bytes := 1 + r.Int64N(20)
				n.join(joins, numberOf(n, from, to), bytes, id, int64(id))
				left[id], classOf[id] = float64(bytes), n.routes[numberOf(n, from, to)].class
				id++
				continue
			}
			pass(end)
			n.ended(end, func(id int32) {
				if math.Abs(left[id]) > 1e-6 { // ends are whole nanoseconds
					t.Fatalf("seed %d: flow %d ends with %g bytes left", seed, id, left[id])
				}
				delete(left, id)
			})
		}
	}
}

// TestDirections: on a star of two duplex links, a transfer from one leaf to the
// other goes up the first link and down the second. It shares the first with
// another that goes up, and not with one that comes down it.
func TestDirections(t *testing.T) {
	p := line(t, platform.Duplex, 1, 1)
	p.Routes = []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}, {From: 0, To: 2, Links: []platform.LinkID{1}}}
	must.Do(t, p.Complete())
	across := testFlow{0, 1, 2, 1}
	for _, c := range []struct {
		other testFlow
		want  time.Duration
	}{
		{testFlow{0, 1, 0, 1}, 2 * second},
		{testFlow{0, 0, 1, 1}, second},
		{testFlow{0, 0, 2, 1}, 2 * second},
		{testFlow{0, 2, 0, 1}, second},
	} {
		if got := endsOf(p, []testFlow{across, c.other}); got[0] != c.want || got[1] != c.want {
			t.Errorf("beside a transfer from %d to %d both end at %v, want %v", c.other.from, c.other.to, got, c.want)
		}
	}
}

// TestLinkCrossedTwice: the route from m0 to m1 names a link of 6 B/s twice, that to m2
// names it once, and nothing else is on the way.
//
// Shared, or twice in one direction: of 12 bytes 24 pass, so a flow alone takes
// 2·12/6 = 4 s. Beside one over the route to m2 both have the rate x with 2x + x = 6, so
// 2 B/s; the other's 4 bytes end at 2 s, and 12 - 2·2 = 8 bytes more at 3 B/s at
// 2 + 8/3 s; with 10 bytes instead of 12, at 4 s. Two of them have 6/4 = 3/2 B/s each.
// Of a duplex link it crosses each direction once: 6 B/s alone, and 3 B/s beside the other
// flow, which shares the first of them. Of a fatpipe each flow has 6 B/s.
func TestLinkCrossedTwice(t *testing.T) {
	for _, c := range []struct {
		words   string
		sharing platform.Sharing
		flows   []testFlow
		want    []time.Duration
	}{
		{"alone", platform.Shared, []testFlow{{0, 0, 1, 12}}, []time.Duration{4 * second}},
		{"back", platform.Shared, []testFlow{{0, 1, 0, 12}}, []time.Duration{4 * second}},
		{"beside one that crosses it once", platform.Shared, []testFlow{{0, 0, 1, 10}, {0, 0, 2, 4}}, []time.Duration{4 * second, 2 * second}},
		{"two", platform.Shared, []testFlow{{0, 0, 1, 9}, {0, 1, 0, 9}}, []time.Duration{6 * second, 6 * second}},
		{"staged from m1 to m2, three times", platform.Shared, []testFlow{{0, 1, 2, 12}}, []time.Duration{6 * second}},
		{"duplex", platform.Duplex, []testFlow{{0, 0, 1, 12}}, []time.Duration{2 * second}},
		{"duplex, beside one that crosses it once", platform.Duplex, []testFlow{{0, 0, 1, 12}, {0, 0, 2, 12}}, []time.Duration{4 * second, 4 * second}},
		{"fatpipe", platform.Fatpipe, []testFlow{{0, 0, 1, 12}, {0, 0, 2, 12}}, []time.Duration{2 * second, 2 * second}},
	} {
		p := line(t, c.sharing, 6, 1)
		p.Routes = []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0, 0}}, {From: 0, To: 2, Links: []platform.LinkID{0}}}
		must.Do(t, p.Complete())
		if got := endsOf(p, c.flows); !slices.Equal(got, c.want) {
			t.Errorf("%s: ends at %v, want %v", c.words, got, c.want)
		}
		if f := c.flows[0]; len(c.flows) == 1 && p.RouteTime(f.from, f.to, f.bytes) != c.want[0] {
			t.Errorf("%s: RouteTime is %v, want %v", c.words, p.RouteTime(f.from, f.to, f.bytes), c.want[0])
		}
	}
}

// numberOf is the number of a route.
func numberOf(n *network, from, to platform.MemoryID) int32 {
	number, _ := n.route(from, to)
	return number
}
