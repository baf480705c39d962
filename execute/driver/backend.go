package driver

import "dahl/platform"

// Backend opens the devices of one driver, and lists them and their libraries.
type Backend struct {
	// On prepares to open devices of a platform. The cores are CPUs that nobody has.
	On func(p *platform.Platform, cores []int) Opener
	// GPUs lists the devices that this machine has. Nil means that they are no part of a machine.
	GPUs func() ([]GPU, error)
	// Library finds the file of a library of kernels. Nil means that there are no libraries.
	Library func(name string) (file string, err error)
}

// Opener opens the driver of a device. A driver that reports finished work calls notify, from any
// goroutine.
type Opener func(dev *platform.Device, notify func()) (Driver, error)

// GPU is a device that a driver shows. A number that the driver does not tell is zero.
type GPU struct {
	Kind        string // of the device, as package platform calls it
	Name        string
	PCIBus      string // domain:bus:device.function
	Capability  int    // in the numbers of the code that it runs; 90 is CUDA's 9.0
	MemoryBytes int64
	L2Bytes     int64
	// The peak speeds, without tensor cores, and the peak bandwidth of the memory.
	Float32FlopsPerSec, Float64FlopsPerSec, BytesPerSec float64
}
