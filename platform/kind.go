package platform

import (
	"slices"

	"dahl/naming"
)

// The kinds of devices.
const (
	CPU      = "cpu"
	CUDA     = "cuda"
	Emulated = "emulated"
)

// Drivers and meters of kinds, and the codes that they run.
const (
	CUDADriver     = "cuda"
	EmulatedDriver = "emulated"

	NVML = "nvml"

	GoCode   = "go"
	CUDACode = "cuda"
)

// Kind describes the devices of a kind, and names their driver, their meter and their
// code. Package execute has drivers by their names, package energy the libraries of meters, and a
// variant of package kernels names its code.
type Kind struct {
	Name string
	// Driver opens the devices. Empty means none: the threads of the program are the units.
	Driver string
	// Meter is the library that meters single devices and sets their clocks. Empty means none.
	Meter string
	// Code is the code that the devices run.
	Code string

	// Processor: the units are cores of the host, and the program itself drives them. They learn
	// of each other's ends through memory, and timing costs them nothing.
	Processor bool
	// Numbered: a driver of the system gives the devices numbers from 0.
	Numbered bool
	// Emulated: the program makes the device from a core. The platform file says how fast it is,
	// whatever is measured, and can make it fail.
	Emulated bool
}

var kinds = [...]Kind{
	{Name: CPU, Code: GoCode, Processor: true},
	{Name: CUDA, Driver: CUDADriver, Meter: NVML, Code: CUDACode, Numbered: true},
	{Name: Emulated, Driver: EmulatedDriver, Code: GoCode, Emulated: true},
}

// Kinds lists the kinds of devices.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// KindByName finds a kind.
func KindByName(name string) (Kind, error) {
	for i := range kinds {
		if kinds[i].Name == name {
			return kinds[i], nil
		}
	}
	return Kind{}, naming.Unknown("kind", name, kindList("", func(Kind) bool { return true }))
}

// kind is the device's kind, or an empty one where the platform fails its check.
func (d *Device) kind() Kind {
	k, _ := KindByName(d.Kind)
	return k
}

// IsProcessor reports whether the units are cores of the host.
func (d *Device) IsProcessor() bool { return d.kind().Processor }

// Driver is the driver that opens the device. Empty means that it is a processor.
func (d *Device) Driver() string { return d.kind().Driver }

// Meter is the library that meters the device. Empty means none.
func (d *Device) Meter() string { return d.kind().Meter }

// Code is the code that the device runs.
func (d *Device) Code() string { return d.kind().Code }

// IsEmulated reports whether the program makes the device from a core.
func (d *Device) IsEmulated() bool { return d.kind().Emulated }

// kindNames lists the kinds for which a fact holds: a, b or c.
func kindNames(quote string, holds func(Kind) bool) string {
	return naming.OneOf(kindList(quote, holds))
}

func kindList(quote string, holds func(Kind) bool) (list []string) {
	for _, k := range kinds {
		if holds(k) {
			list = append(list, quote+k.Name+quote)
		}
	}
	return list
}
