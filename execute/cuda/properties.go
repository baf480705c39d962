package cuda

// Properties are the facts that the driver tells of a device without opening it. The type has no build
// tag, so that programs without CUDA can say what they would do with a device.
type Properties struct {
	Name        string
	PCIBus      string // domain:bus:device.function
	Capability  int    // 10·major + minor
	MemoryBytes int64
	L2Bytes     int64
	Processors  int     // streaming multiprocessors
	ClockHz     float64 // peak
	MemoryHz    float64 // peak clock of the memory
	MemoryBits  int     // width of its bus
}

// unitsPerProcessor is how many fused multiply-adds one multiprocessor ends in a cycle, in
// float32 and float64, by compute capability (NVIDIA, CUDA C++ programming guide, arithmetic
// instructions). A capability that is not listed counts as the nearest one below.
var unitsPerProcessor = []struct{ capability, float32, float64 int }{
	{70, 64, 32}, {75, 64, 2}, {80, 64, 32}, {86, 128, 2}, {89, 128, 2},
	{90, 128, 64}, {100, 128, 64}, {103, 128, 2}, {120, 128, 2},
}

// FlopsPerSec is the peak speed without tensor cores: multiprocessors times clock times fused
// multiply-adds, each of two operations. It is zero where the driver tells no clock.
func (p *Properties) FlopsPerSec() (float32s, float64s float64) {
	units := unitsPerProcessor[0]
	for _, u := range unitsPerProcessor {
		if u.capability <= p.Capability {
			units = u
		}
	}
	cycles := float64(p.Processors) * p.ClockHz
	return 2 * float64(units.float32) * cycles, 2 * float64(units.float64) * cycles
}

// BytesPerSec is the peak bandwidth of the memory, which moves data at both edges of its clock. It
// is zero where the driver does not tell it.
func (p *Properties) BytesPerSec() float64 { return 2 * p.MemoryHz * float64(p.MemoryBits) / 8 }
