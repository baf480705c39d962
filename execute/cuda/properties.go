package cuda

// Properties is what the driver tells of a device without opening it. The type has no build tag,
// so that programs without CUDA can say what they would do with a device.
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
