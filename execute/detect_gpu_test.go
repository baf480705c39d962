package execute

import (
	"math"
	"testing"

	"dahl/platform"
)

// Peaks as the data sheets have them, in TFLOP/s and GB/s; they round to two or three
// digits. The clocks are the boost clocks that the same sheets name.
func TestPeaksOfDataSheets(t *testing.T) {
	for _, c := range []struct {
		gpu                          GPU
		float32s, float64s, gbPerSec float64
	}{
		{GPU{Name: "V100 SXM2", Capability: 70, Processors: 80, ClockHz: 1530e6, MemoryHz: 877e6, MemoryBits: 4096}, 15.7, 7.8, 900},
		{GPU{Name: "T4", Capability: 75, Processors: 40, ClockHz: 1590e6, MemoryHz: 5001e6, MemoryBits: 256}, 8.1, 0.2544, 320},
		{GPU{Name: "A100 PCIe 40 GB", Capability: 80, Processors: 108, ClockHz: 1410e6, MemoryHz: 1215e6, MemoryBits: 5120}, 19.5, 9.7, 1555},
		{GPU{Name: "RTX 3090", Capability: 86, Processors: 82, ClockHz: 1695e6, MemoryHz: 9751e6, MemoryBits: 384}, 35.6, 0.556, 936},
		{GPU{Name: "H100 SXM", Capability: 90, Processors: 132, ClockHz: 1980e6, MemoryHz: 2619e6, MemoryBits: 5120}, 67, 34, 3350},
	} {
		float32s, float64s := flopsPerSec(&c.gpu)
		for what, pair := range map[string][2]float64{"float32": {float32s / 1e12, c.float32s}, "float64": {float64s / 1e12, c.float64s}, "GB/s": {bytesPerSec(&c.gpu) / 1e9, c.gbPerSec}} {
			if math.Abs(pair[0]/pair[1]-1) > 0.02 {
				t.Errorf("%s, %s: %.4g, the data sheet says %g", c.gpu.Name, what, pair[0], pair[1])
			}
		}
	}
}

func TestAddGPUs(t *testing.T) {
	p := machine(t, 3)
	gpus := []GPU{{Capability: 80, MemoryBytes: 40e9, L2Bytes: 40 << 20, Processors: 7, ClockHz: 1e9, MemoryHz: 1e9, MemoryBits: 80}, {MemoryBytes: 11e9}}
	if err := addGPUs(p, gpus); err != nil {
		t.Fatal(err)
	}
	if len(p.Workers) != 5 || len(p.Devices) != 3 || p.HostMemory() != 0 {
		t.Fatalf("platform %+v, want the cores and two GPUs", p)
	}
	for i, want := range []struct {
		speed, bandwidth float64
		capacity         int64
	}{{7 * 64 * 2 * 1e9, 20e9, 40e9}, {guessGPUFlopsPerSec, guessGPUBytesPerSec, 11e9}} {
		d := p.Devices[i+1]
		m := p.Memories[d.Memory]
		if d.Kind != "cuda" || d.Ordinal != i || d.FlopsPerSec["float32"] != want.speed || d.PowerSource != platform.Guess ||
			m.BandwidthBytesPerSec != want.bandwidth || m.CapacityBytes != want.capacity || d.L2Bytes != gpus[i].L2Bytes {
			t.Errorf("GPU %d: %+v at %+v, want %+v", i, d, m, want)
		}
		for _, back := range [][2]platform.MemoryID{{0, d.Memory}, {d.Memory, 0}} {
			if links, ok := p.Route(back[0], back[1]); !ok || len(links) != 1 || int(links[0]) != i {
				t.Errorf("GPU %d is reached by links %v, want its own", i, links)
			}
		}
	}
}
