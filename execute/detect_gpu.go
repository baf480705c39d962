package execute

import (
	"fmt"
	"time"

	"dahl/execute/cuda"
	"dahl/platform"
)

// GPU is a device that the CUDA driver shows.
type GPU = cuda.Properties

// unitsPerProcessor is how many fused multiply-adds one multiprocessor ends in a cycle, in
// float32 and float64, by compute capability (NVIDIA, CUDA C++ programming guide, arithmetic
// instructions). A capability that is not listed counts as the nearest one below.
var unitsPerProcessor = []struct{ capability, float32, float64 int }{
	{70, 64, 32}, {75, 64, 2}, {80, 64, 32}, {86, 128, 2}, {89, 128, 2},
	{90, 128, 64}, {100, 128, 64}, {103, 128, 2}, {120, 128, 2},
}

// flopsPerSec is the peak speed without tensor cores: multiprocessors times clock times fused
// multiply-adds, each of two operations.
func flopsPerSec(g *GPU) (float32s, float64s float64) {
	units := unitsPerProcessor[0]
	for _, u := range unitsPerProcessor {
		if u.capability <= g.Capability {
			units = u
		}
	}
	cycles := float64(g.Processors) * g.ClockHz
	if cycles == 0 {
		return guessGPUFlopsPerSec, guessGPUFlopsPerSec / 32
	}
	return 2 * float64(units.float32) * cycles, 2 * float64(units.float64) * cycles
}

// bytesPerSec is the peak bandwidth of the memory, which moves data at both edges of
// its clock.
func bytesPerSec(g *GPU) float64 {
	if g.MemoryHz == 0 || g.MemoryBits == 0 {
		return guessGPUBytesPerSec
	}
	return 2 * g.MemoryHz * float64(g.MemoryBits) / 8
}

// The driver does not tell these numbers of a GPU and its link. Calibration measures them.
const (
	guessLinkBytesPerSec = 12e9
	guessLinkLatency     = 10 * time.Microsecond
	guessLaunch          = 5 * time.Microsecond
	guessGPUFlopsPerSec  = 5e12 // float32, where the driver tells no clock; a 32nd of it in float64
	guessGPUBytesPerSec  = 300e9
	guessGPUIdleWatts    = 40
	guessGPUBusyWatts    = 250
)

// AddGPUs adds the GPUs that the CUDA driver shows to a platform: gpu0 … with memories hbm0 … and
// links pcie0 … to the host memory. Sizes and names come from the driver. Speeds and bandwidths
// are peaks, computed from clocks and widths. Links and powers are guesses. AddGPUs fails where
// there is no GPU, and says why.
func AddGPUs(p *platform.Platform) error {
	gpus, err := GPUs()
	if err != nil {
		return err
	}
	return addGPUs(p, gpus)
}

func addGPUs(p *platform.Platform, gpus []GPU) error {
	host := p.HostMemory()
	for i := range gpus {
		g := &gpus[i]
		memory, link := platform.MemoryID(len(p.Memories)), platform.LinkID(len(p.Links))
		p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprintf("hbm%d", i), CapacityBytes: g.MemoryBytes, BandwidthBytesPerSec: bytesPerSec(g)})
		float32s, float64s := flopsPerSec(g)
		p.Devices = append(p.Devices, platform.Device{
			Name: fmt.Sprintf("gpu%d", i), Kind: platform.CUDA, Count: 1, Memory: memory, Ordinal: i,
			FlopsPerSec: map[string]float64{"float32": float32s, "float64": float64s}, L2Bytes: g.L2Bytes, Dispatch: guessLaunch,
			CopyEnginesIn: 1, CopyEnginesOut: 1,
			IdleWatts: guessGPUIdleWatts, Busy: platform.BusyPower{UnitWatts: guessGPUBusyWatts}, PowerSource: platform.Guess,
		})
		p.Links = append(p.Links, platform.Link{Name: fmt.Sprintf("pcie%d", i), BandwidthBytesPerSec: guessLinkBytesPerSec,
			Latency: guessLinkLatency, Sharing: platform.Duplex})
		p.Routes = append(p.Routes, platform.Route{From: host, To: memory, Links: []platform.LinkID{link}})
	}
	return p.Complete()
}
