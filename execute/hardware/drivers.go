package hardware

import (
	"errors"
	"fmt"

	"dahl/execute/cuda"
	"dahl/execute/driver"
	"dahl/execute/emulated"
	"dahl/execute/host"
	"dahl/kernels"
	"dahl/platform"
)

// Backends are the drivers of devices, by platform.Kind.Driver.
var Backends = map[string]driver.Backend{
	platform.CUDADriver:     cuda.Backend,
	platform.EmulatedDriver: emulated.Backend,
}

// eachBackend yields the backends in the order of the kinds that they open.
func eachBackend(yield func(platform.Kind, driver.Backend) bool) {
	for _, k := range platform.Kinds() {
		if b, ok := Backends[k.Driver]; ok && !yield(k, b) {
			return
		}
	}
}

// Drivers opens drivers of a platform's devices. The first cores of this machine belong to the workers;
// drivers may use the others.
func Drivers(p *platform.Platform, workers int) driver.Opener {
	cores := host.CPUs()
	cores = cores[min(workers, len(cores)):]
	openers := map[string]driver.Opener{}
	return func(dev *platform.Device, notify func()) (driver.Driver, error) {
		if k, _ := platform.KindByName(dev.Kind); k.Numbered && dev.Count > 1 {
			return nil, fmt.Errorf("it has %d units at memory %q; each GPU has a memory of its own, write one device for each", dev.Count, p.Memories[dev.Memory].Name)
		}
		name := dev.Driver()
		if openers[name] == nil {
			openers[name] = Backends[name].On(p, cores)
		}
		return openers[name](dev, notify)
	}
}

// LibraryFile is the file of a library of kernels, such as [dahl/kernels/offload.CuBLAS], that a driver has found;
// the error says why there is none.
func LibraryFile(name string) (file string, err error) {
	for _, b := range eachBackend {
		if b.Library == nil {
			continue
		}
		found, none := b.Library(name)
		if none == nil {
			return found, nil
		}
		err = errors.Join(err, none)
	}
	return "", err
}

// CheckVariant reports why no operation can run a variant on this machine: the variant needs a
// library that is not installed. bind finds out whether a device has everything that a variant
// needs.
func CheckVariant(name string) error {
	for _, k := range kernels.Kernels() {
		if v, ok := k.Variant(name); ok && v.Library != "" {
			if _, err := LibraryFile(v.Library); err != nil {
				return fmt.Errorf("variant %s: %w", name, err)
			}
			break
		}
	}
	return nil
}
