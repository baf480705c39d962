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

// Kind tells code that distinguishes devices what the devices of a kind are.
type Kind struct {
	Name string
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
	{Name: CPU, Processor: true},
	{Name: CUDA, Numbered: true},
	{Name: Emulated, Emulated: true},
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

// IsNumbered reports whether a driver of the system numbers the device by its Ordinal.
func (d *Device) IsNumbered() bool { return d.kind().Numbered }

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
