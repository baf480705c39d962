//go:build cuda

package cuda

import (
	"errors"
	"testing"

	"gorgonia.org/cu"
)

// Name is the product's name.
func (d *Device) Name() (string, error) {
	name, err := d.device.Name()
	return name, wrap("cuDeviceGetName", err)
}

// Capability is 10·major + minor of the compute capability.
func (d *Device) Capability() (int, error) {
	major, err := d.device.Attribute(cu.ComputeCapabilityMajor)
	if err != nil {
		return 0, wrap("cuDeviceGetAttribute", err)
	}
	minor, err := d.device.Attribute(cu.ComputeCapabilityMinor)
	return 10*major + minor, wrap("cuDeviceGetAttribute", err)
}

// What the driver tells without opening a device is what it tells of an opened one; the
// test driver's numbers are those of its source.
func TestProperties(t *testing.T) {
	d := open(t)
	got, err := PropertiesOf(0)
	if err != nil {
		t.Fatal(err)
	}
	name, err := d.Name()
	if err != nil {
		t.Fatal(err)
	}
	capability, err := d.Capability()
	if err != nil {
		t.Fatal(err)
	}
	_, total, err := d.Memory()
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != name || got.Capability != capability || got.MemoryBytes != total {
		t.Errorf("got %+v; opened it is %q, %d, %d bytes", got, name, capability, total)
	}
	n, err := Count()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := PropertiesOf(n); !isInvalidDevice(err) {
		t.Errorf("properties of a device that is not there: %v", err)
	}
	emulated(t, d)
	if got.PCIBus != "0000:01:00.0" || got.Processors != 8 || got.ClockHz != 1e9 {
		t.Errorf("got %+v; want bus 1, 8 multiprocessors at 1 GHz", got)
	}
}

func isInvalidDevice(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Name == "CUDA_ERROR_INVALID_DEVICE"
}
