package recording

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/platform"
)

// machineOf is a host with a GPU of some speed and bandwidth, and a link to it.
func machineOf(t *testing.T, flops, bytesPerSec, linkBytesPerSec float64) *platform.Platform {
	t.Helper()
	p := &platform.Platform{
		Name:     "m",
		Memories: []platform.Memory{{Name: "ram", Host: true, BandwidthBytesPerSec: 100e9}, {Name: "hbm0", BandwidthBytesPerSec: bytesPerSec}},
		Devices: []platform.Device{
			{Name: "cpu", Kind: platform.CPU, Count: 1, FlopsPerSec: map[string]float64{"float32": 50e9}},
			{Name: "gpu0", Kind: platform.CUDA, Count: 1, Memory: 1, FlopsPerSec: map[string]float64{"float32": flops}},
		},
		Links:  []platform.Link{{Name: "l", BandwidthBytesPerSec: linkBytesPerSec}},
		Routes: []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}},
	}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRescale: from a GPU of 10 TF/s and 1 TB/s to one of 30 TF/s and 2 TB/s, work by flop takes a third and work by bytes a half. On the first
// one 10⁹ flop take 100 µs and 10⁶ bytes 1 µs, so the first kernel is one by flop. A copy over a link that is 4 times as fast takes a quarter.
func TestRescale(t *testing.T) {
	b := dag.NewBuilder("g")
	add := func(name, device string, ns, gap int64, flops float64, bytes int64) {
		k := dag.Task{Name: name, Op: name, Type: dag.Float32, Flops: flops, MovedBytes: bytes, Costs: cost(ns), Placement: &dag.Placement{Device: device}}
		if gap > 0 {
			k.Params = dag.Params{{Name: gapParam, Value: float64(gap)}}
		}
		b.Task(k)
	}
	add("flop", "gpu0", 303_000, 3_000, 1e9, 1e6)
	add("bytes", "gpu0", 20_000, 0, 1e3, 1e6)
	add(copyIn, "gpu0", 40_000, 0, 0, 1e6)
	add("unknown", "gpu0", 7_000, 0, 0, 0)
	add(hostWork, "cpu", 5_000, 0, 0, 0)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	from := machineOf(t, 10e12, 1e12, 1e9)
	scaled, done, err := Rescale(g, from, machineOf(t, 30e12, 2e12, 4e9))
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for i := range scaled.Tasks {
		got = append(got, scaled.Tasks[i].Costs[0].Ns)
	}
	if want := []int64{103_000, 10_000, 10_000, 7_000, 5_000}; !slices.Equal(got, want) {
		t.Errorf("%d ns, want %d", got, want)
	}
	if done.Scaled != 3 || done.Kept != 1 || done.Hosts != 1 || done.KeptNs != 7_000 {
		t.Errorf("%+v", done)
	}
	if same, done, err := Rescale(g, from, from); err != nil || same != g || done.Changed {
		t.Errorf("on its own machine: %+v, %v", done, err)
	}
}
