package hardware

import (
	"testing"

	"dahl/execute/driver"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

func TestAddGPUs(t *testing.T) {
	p := testmachine.Shared(t, testmachine.CPU(3, 2, 5))
	gpus := []driver.GPU{{Kind: platform.CUDA, MemoryBytes: 40e9, L2Bytes: 40 << 20, Float32FlopsPerSec: 9e12, Float64FlopsPerSec: 2e12, BytesPerSec: 20e9}, {Kind: platform.CUDA, MemoryBytes: 11e9}}
	must.Do(t, addGPUs(p, gpus))
	if len(p.Workers) != 5 || len(p.Devices) != 3 || p.HostMemory() != 0 {
		t.Fatalf("platform %+v, want the cores and two GPUs", p)
	}
	for i, want := range []struct {
		speed, bandwidth float64
		capacity         int64
	}{{9e12, 20e9, 40e9}, {guessGPUFlopsPerSec, guessGPUBytesPerSec, 11e9}} {
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
