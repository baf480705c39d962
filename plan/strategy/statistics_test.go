package strategy

import (
	"fmt"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

// TestPlaceStatistics: between any two of p GPUs a message takes α and the time of its bytes at 1 GB/s, and a launch takes 4 us, which counts twice. With
// ⌈log₂ p⌉ = 1, 2, 3 for 2, 4 and 8 GPUs, and small messages, sums on each GPU are faster where
//
//	2 GPUs  2α > 8 + (α + 8)       α > 16 us
//	4 GPUs  6α > 8 + 2(α + 8)      α > 6 us
//	8 GPUs  14α > 8 + 3(α + 8)     α > 32/11 us
//
// One channel has 4 bytes in a message of each sample. With 500 channels and 46 samples for each of two GPUs a message takes 92 us, and 6 us on each:
// 184 > 16 + 6. A layer without statistics says nothing.
func TestPlaceStatistics(t *testing.T) {
	for _, c := range []struct {
		gpus, channels, samples int
		latency                 time.Duration
		want                    dag.Statistics
	}{
		{2, 1, 2, 15, dag.OnFirst}, {2, 1, 2, 17, dag.OnEach}, {4, 1, 4, 5, dag.OnFirst}, {4, 1, 4, 7, dag.OnEach}, {8, 1, 8, 2, dag.OnFirst}, {8, 1, 8, 3, dag.OnEach},
		{2, 500, 92, 0, dag.OnEach}, {2, 500, 2, 0, dag.OnFirst}, {4, 0, 4, 9, dag.ByNumber},
	} {
		devices, stage := []platform.Device{testmachine.CPU(1)}, dag.Stage{From: "input", Along: dag.AlongSamples}
		for k := range c.gpus {
			d := testmachine.GPU(fmt.Sprint("gpu", k))
			d.Dispatch = 4 * time.Microsecond
			devices, stage.Devices = append(devices, d), append(stage.Devices, d.Name)
		}
		p := testmachine.Node(t, devices...)
		for k := range c.gpus {
			for j := range k {
				p.Links = append(p.Links, platform.Link{Name: fmt.Sprint("link", k, "-", j), BandwidthBytesPerSec: 1e9, Latency: c.latency * time.Microsecond, Sharing: platform.Duplex, PowerSource: platform.Guess})
				p.Routes = append(p.Routes, platform.Route{From: p.Devices[1+k].Memory, To: p.Devices[1+j].Memory, Links: []platform.LinkID{platform.LinkID(len(p.Links) - 1)}})
			}
		}
		must.Do(t, p.Complete())
		n := &Network{Platform: p, Batch: c.samples, Layers: []Layer{{Name: "input"}, {Name: "fc", Inputs: 7, Weights: 77}, {Name: "bn", Weights: float64(8 * c.channels), Statistics: c.channels > 0}}}
		stages := []dag.Stage{stage}
		if n.placeStatistics(stages, 1); stages[0].Statistics != c.want {
			t.Errorf("%+v: %v", c, stages[0].Statistics)
		}
	}
}
