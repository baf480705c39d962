//go:build cuda

package cuda

import (
	"errors"
	"testing"
)

// What the driver tells without opening a device is what it tells of an opened one; the
// test driver's numbers are those of its source.
func TestProperties(t *testing.T) {
	d := open(t)
	got, err := gpuAt(0)
	if err != nil {
		t.Fatal(err)
	}
	name, err := d.device.Name()
	if err != nil {
		t.Fatal(err)
	}
	_, total, err := d.Memory()
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != name || got != d.GPU || got.MemoryBytes != total {
		t.Errorf("got %+v; opened it is %+v, %q, %d bytes", got, d.GPU, name, total)
	}
	n, err := Count()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gpuAt(n); !isInvalidDevice(err) {
		t.Errorf("properties of a device that is not there: %v", err)
	}
	emulated(t, d)
	if got.PCIBus != "0000:01:00.0" || got.Float32FlopsPerSec != 2*64*8*1e9 {
		t.Errorf("got %+v; want bus 1, and 64 operations of two on each of 8 multiprocessors at 1 GHz", got)
	}
}

func isInvalidDevice(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Name == "CUDA_ERROR_INVALID_DEVICE"
}
