//go:build cuda

package cuda

import (
	"fmt"

	"gorgonia.org/cu"
)

// PropertiesOf reads the properties of a device by its number.
func PropertiesOf(ordinal int) (Properties, error) {
	if err := Start(); err != nil {
		return Properties{}, err
	}
	d, err := cu.GetDevice(ordinal)
	if err != nil {
		return Properties{}, wrap("cuDeviceGet", err)
	}
	p := Properties{}
	if p.Name, err = d.Name(); err != nil {
		return p, wrap("cuDeviceGetName", err)
	}
	if p.MemoryBytes, err = d.TotalMem(); err != nil {
		return p, wrap("cuDeviceTotalMem", err)
	}
	var values [10]int
	for i, a := range []cu.DeviceAttribute{cu.ComputeCapabilityMajor, cu.ComputeCapabilityMinor, cu.L2CacheSize,
		cu.MultiprocessorCount, cu.ClockRate, cu.MemoryClockRate, cu.GlobalMemoryBusWidth,
		cu.PciDomainID, cu.PciBusID, cu.PciDeviceID} {
		if values[i], err = d.Attribute(a); err != nil {
			return p, wrap("cuDeviceGetAttribute", err)
		}
	}
	p.Capability, p.L2Bytes, p.Processors = 10*values[0]+values[1], int64(values[2]), values[3]
	p.ClockHz, p.MemoryHz = 1e3*float64(values[4]), 1e3*float64(values[5]) // the driver tells kHz
	p.MemoryBits = values[6]
	p.PCIBus = fmt.Sprintf("%04x:%02x:%02x.0", values[7], values[8], values[9])
	return p, nil
}
