package calibrate

import (
	"math"
	"reflect"
	"testing"
	"time"

	"dahl/dag"
	"dahl/kernels"
	"dahl/must"
	"dahl/platform"
	"dahl/platform/fit"
	"dahl/stats"
)

// within reports whether two numbers are equal but for a relative difference.
func nearly(got, want, relative float64) bool { return math.Abs(got/want-1) <= relative }

// TestFirstUse: opening takes 3 ms. Of 16 MB free, three quarters in whole pages are
// 11,997,184 bytes; the pinned memory is twice half of that. Its first writing takes half a
// nanosecond per byte longer than others, after two calls of 10 ns; that something else
// keeps the second one even longer does not matter. The first bind
// takes 400 µs and a call, the first launch 70,001 ns more than the second; the same kernel
// with other operands is not loaded again.
func TestFirstUse(t *testing.T) {
	s := scriptedStation(t, exampleScript)
	if s.firstUse.Context != 3*time.Millisecond {
		t.Errorf("opening: %v", s.firstUse.Context)
	}
	const arena = 11_997_184
	if want := 2 * arena / ((arena/2 + 20) * 1e-9); s.arenaBytes != arena || !nearly(s.firstUse.MemoryBytesPerSec, want, 1e-9) {
		t.Errorf("%d bytes at %g B/s, want %g", s.arenaBytes, s.firstUse.MemoryBytesPerSec, want)
	}
	k, _ := kernels.KernelByName("dense")
	pt, other := newPoint(k, &k.Variants[0], squareProduct(dag.Float32, 7)), newPoint(k, &k.Variants[0], squareProduct(dag.Float32, 11))
	must.Do(t, s.Do(func() error {
		calls, err := s.newBench(&pt, 1)
		if err != nil {
			return err
		}
		times, err := s.measureCalls(calls, time.Millisecond, drawnSets)
		// A mark and the kernel; the first launch of other operands is not a first one in
		// what matters, and the median does not see it.
		if got := stats.Median(times[0]); got != 5703 {
			t.Errorf("a call takes %v, want 700 ns for the mark and 5003 for the kernel", got)
		}
		if err != nil {
			return err
		}
		_, err = s.newBench(&other, 1)
		return err
	}))
	if want := time.Duration(400_000 + 10 + 70_001); s.firstUse.Kernels != want {
		t.Errorf("kernels: %v, want %v", s.firstUse.Kernels, want)
	}
}

// TestBenchTooLarge: three operands of 1024² floats are 12.6 MB, more than the 12.0 of the
// arena.
func TestBenchTooLarge(t *testing.T) {
	s := scriptedStation(t, exampleScript)
	k, _ := kernels.KernelByName("dense")
	pt := newPoint(k, &k.Variants[0], squareProduct(dag.Float32, 1024))
	err := s.Do(func() error {
		_, err := s.newBench(&pt, 1)
		return err
	})
	if err != errTooLarge {
		t.Errorf("error %v", err)
	}
}

// TestMeasureLaunches derives everything from the script, in nanoseconds. A tiny kernel is
// timed from the mark before it: 700 + 5003. The mark behind it is the gap. 500 in a row
// with one mark take 500·5003 + 700, so each 5004. A kernel and a copy of four bytes that
// wait for each other take 5003 + 9002 and twice 2000, and the mark at the beginning is a
// hundredth of 700 for each of the hundred; of these 18,012, what each takes alone (5703
// and 9702) is not the hop, and there are two: 1303. A round trip is a call, the kernel, and
// what the host needs to see its end.
func TestMeasureLaunches(t *testing.T) {
	s := scriptedStation(t, exampleScript)
	var c Launches
	err := s.Do(func() (err error) {
		c, err = s.measureLaunches()
		return err
	})
	want := Launches{Tiny: 5703, Gap: 700, Chain: 5004, Hop: 1303, RoundTrip: 10 + 5003 + 3000}
	if err != nil || c != want {
		t.Errorf("%+v, error %v, want %+v", c, err, want)
	}
}

// TestMeasureCopies: copies of 4 to 4,194,304 bytes lie on the lines 9701 + n/4 and
// 9701 + n/2 ns (a mark and the latency). 732 rows of 4096 bytes, 8192 apart, fill half of the
// arena; the 731 beyond the first take 100 ns each.
func TestMeasureCopies(t *testing.T) {
	for _, shared := range []bool{false, true} {
		script := exampleScript
		script.shared = shared
		s := scriptedStation(t, script)
		var c Copies
		must.Do(t, s.Do(func() (err error) {
			c, err = s.measureCopies()
			return err
		}))
		if last := len(c.Sizes) - 1; last != 10 || c.Sizes[last] != 1<<22 || c.In[last] != 9701+1<<20 || c.Out[last] != 9701+1<<21 {
			t.Errorf("%d bytes take %v in and %v out", c.Sizes[last], c.In[last], c.Out[last])
		}
		for _, f := range []struct {
			fit.Copies
			want float64
		}{{c.InFit, 4e9}, {c.OutFit, 2e9}} {
			if !nearly(float64(f.Latency), 9701, 1e-3) || !nearly(f.BytesPerSec, f.want, 1e-3) || f.MaxError > 1e-3 {
				t.Errorf("%+v, want 9701 ns and %g B/s", f.Copies, f.want)
			}
		}
		const bytes = 732 * 4096
		if want := (9701 + bytes/4 + 731*100) / (9701.0 + bytes/4); !nearly(c.Strided, want, 1e-6) {
			t.Errorf("rows take %g times as long, want %g", c.Strided, want)
		}
		// Alone 1.06 ms in and 2.11 out. Side by side as before; else one after the other,
		// 3.17 ms for each pair.
		want, sharing := 1.0, platform.Duplex
		if shared {
			want, sharing = 3.0, platform.Shared
		}
		if !nearly(c.BothWays, want, 0.02) || c.Sharing() != sharing {
			t.Errorf("shared %v: both directions take %g times as long, want %g; %v", shared, c.BothWays, want, c.Sharing())
		}
	}
}

// TestMeasureSpeed: every product takes a mark and a kernel, 5703 ns, so the largest that
// fits the arena of 12.0 MB is the fastest: 512³ in float32 (3.1 MB) and in float64 (6.3).
// The sum of two arrays that fill the arena moves three halves of it.
func TestMeasureSpeed(t *testing.T) {
	s := scriptedStation(t, exampleScript)
	var speeds map[string]float64
	var bandwidth float64
	must.Do(t, s.Do(func() (err error) {
		if speeds, err = s.measureSpeed(); err != nil {
			return err
		}
		bandwidth, err = s.measureMemory()
		return err
	}))
	k, _ := kernels.KernelByName("dense")
	flops, _ := k.Work(squareProduct(dag.Float32, 512))
	for _, elem := range []string{"float32", "float64"} {
		if want := flops / 5703e-9; !nearly(speeds[elem], want, 1e-9) {
			t.Errorf("%s: %g F/s, want %g", elem, speeds[elem], want)
		}
	}
	if want := 1.5 * 11_997_184 / 5703e-9; !nearly(bandwidth, want, 1e-6) || s.speedExtent != 512 {
		t.Errorf("%g B/s, want %g; extent %d", bandwidth, want, s.speedExtent)
	}
}

// TestPutDevice: a GPU gets what was measured of it, its memory and its one link; its
// capacity stays where it was made smaller. Of an emulated device only what lies between
// tasks is taken, and the numbers of two links in a row stay.
func TestPutDevice(t *testing.T) {
	d := &Device{CapacityBytes: 40e9, BytesPerSec: 1.3e12, FlopsPerSec: map[string]float64{"float32": 1.7e13},
		Launches: Launches{Gap: 2000, ToDevice: 7000, ToHost: 6000},
		Copies:   Copies{BothWays: 1.9, Fit: fit.Copies{Latency: 11_000, BytesPerSec: 2.3e10}}}
	for _, c := range []struct {
		kind     string
		capacity int64
		links    int
		replaced bool
	}{{"cuda", 0, 1, true}, {"cuda", 10e9, 1, true}, {"cuda", 80e9, 2, false}, {"emulated", 80e9, 1, false}} {
		p := node(t, 1, 1)
		p.Devices[1].Kind, p.Memories[1].CapacityBytes = c.kind, c.capacity
		if c.links == 2 {
			p.Links = append(p.Links, p.Links[0])
			p.Links[1].Name = "second"
			p.Routes[0].Links = []platform.LinkID{0, 1}
		}
		must.Do(t, p.Complete())
		// The hand-off to the processor is 6000 less the 100 of its dispatch. That among its
		// cores stays as it is.
		p.Devices[0].Dispatch, p.Devices[0].Handoff = 100, 300
		was, wasMemory := p.Links[0], p.Memories[1]
		if got := putDevice(p, 1, d); got != c.replaced {
			t.Errorf("%+v: the link is replaced: %v", c, got)
		}
		link := platform.Link{Name: was.Name, Latency: 11_000, BandwidthBytesPerSec: 2.3e10, Sharing: platform.Shared}
		memory := platform.Memory{Name: wasMemory.Name, BandwidthBytesPerSec: 1.3e12, CapacityBytes: min(40e9, max(c.capacity, 1))}
		if c.capacity == 0 {
			memory.CapacityBytes = 40e9
		}
		speed := 1.7e13
		if !c.replaced {
			link = was
		}
		if c.kind == "emulated" {
			memory, speed = wasMemory, 1e10
		}
		if !reflect.DeepEqual(p.Links[0], link) || p.Memories[1] != memory || p.Devices[1].FlopsPerSec["float32"] != speed {
			t.Errorf("%+v: link %+v, memory %+v, speed %v", c, p.Links[0], p.Memories[1], p.Devices[1].FlopsPerSec)
		}
		if got := p.Devices[0].Handoff; got != 300 {
			t.Errorf("%+v: the hand-off of cores is %v, want 300 ns", c, got)
		}
		if dev := p.Devices[1]; dev.Dispatch != 2000 || dev.Handoff != 5000 || dev.HandoffToCPU != 5900 {
			t.Errorf("%+v: dispatch %v, hand-offs %v and %v", c, dev.Dispatch, dev.Handoff, dev.HandoffToCPU)
		}
	}
}
