//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"dahl/execute/driver"
)

// gpus lists the GPUs that the CUDA driver shows. Without a GPU the error gives the reason.
func gpus() ([]driver.GPU, error) {
	n, err := Count()
	if err != nil {
		return nil, fmt.Errorf("no GPU can be found: %w", err)
	}
	if n == 0 {
		return nil, errors.New("no GPU can be found: the CUDA driver shows none")
	}
	all := make([]driver.GPU, n)
	for i := range all {
		if all[i], err = gpuAt(i); err != nil {
			return nil, fmt.Errorf("properties of GPU %d: %w", i, err)
		}
	}
	return all, nil
}

// gpuAt reads the facts that the driver tells of a device, by its number, without opening it.
func gpuAt(ordinal int) (g driver.GPU, err error) {
	if err := Start(); err != nil {
		return g, err
	}
	d, err := cu.GetDevice(ordinal)
	if err != nil {
		return g, wrap("cuDeviceGet", err)
	}
	if g.Name, err = d.Name(); err != nil {
		return g, wrap("cuDeviceGetName", err)
	}
	if g.MemoryBytes, err = d.TotalMem(); err != nil {
		return g, wrap("cuDeviceTotalMem", err)
	}
	var values [10]int
	for i, a := range []cu.DeviceAttribute{cu.ComputeCapabilityMajor, cu.ComputeCapabilityMinor, cu.L2CacheSize,
		cu.MultiprocessorCount, cu.ClockRate, cu.MemoryClockRate, cu.GlobalMemoryBusWidth,
		cu.PciDomainID, cu.PciBusID, cu.PciDeviceID} {
		if values[i], err = d.Attribute(a); err != nil {
			return g, wrap("cuDeviceGetAttribute", err)
		}
	}
	g.Capability, g.L2Bytes = 10*values[0]+values[1], int64(values[2])
	g.PCIBus = fmt.Sprintf("%04x:%02x:%02x.0", values[7], values[8], values[9])
	p := peak{processors: values[3], clockHz: 1e3 * float64(values[4]), memoryHz: 1e3 * float64(values[5]), memoryBits: values[6]} // the driver tells kHz
	p.put(&g)
	return g, nil
}

// peak is the hardware behind the peak speeds of a GPU. A clock that the driver does not tell is zero.
type peak struct {
	processors        int // streaming multiprocessors
	clockHz, memoryHz float64
	memoryBits        int // width of the memory's bus
}

// unitsPerProcessor is how many fused multiply-adds one multiprocessor ends in a cycle, in
// float32 and float64, by compute capability (NVIDIA, CUDA C++ programming guide, arithmetic
// instructions). A capability that is not listed counts as the nearest one below.
var unitsPerProcessor = []struct{ capability, float32, float64 int }{
	{70, 64, 32}, {75, 64, 2}, {80, 64, 32}, {86, 128, 2}, {89, 128, 2},
	{90, 128, 64}, {100, 128, 64}, {103, 128, 2}, {120, 128, 2},
}

// put sets the peak speeds of a GPU, by its capability. Without tensor cores it does multiprocessors times
// clock times fused multiply-adds, each of two operations. Its memory moves data at both edges of
// the clock.
func (p peak) put(g *driver.GPU) {
	units := unitsPerProcessor[0]
	for _, u := range unitsPerProcessor {
		if u.capability <= g.Capability {
			units = u
		}
	}
	cycles := float64(p.processors) * p.clockHz
	g.Float32FlopsPerSec, g.Float64FlopsPerSec = 2*float64(units.float32)*cycles, 2*float64(units.float64)*cycles
	g.BytesPerSec = 2 * p.memoryHz * float64(p.memoryBits) / 8
}
