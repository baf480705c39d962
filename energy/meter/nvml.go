//go:build cuda

package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// NVML is the management library of NVIDIA's driver.
func NVML() Library {
	return Library{openNVML, closeNVML, nvmlClockRange, lockNVMLClock, unlockNVMLClock}
}

func openNVML() ([]GPUMeters, error) {
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("meters of GPUs are unavailable: %s", initFailure(ret))
	}
	gpus, err := openGPUs()
	if err != nil {
		nvml.Shutdown() // the first error is the one to tell
		return nil, fmt.Errorf("meters of GPUs are unavailable: %w", err)
	}
	opened.Add(1)
	return gpus, nil
}

// opened counts successful calls of openNVML that closeNVML has not undone.
var opened atomic.Int32

// closeNVML closes the meters that openNVML has opened, if any. Calling a library that was never
// loaded would end the process, so it then does nothing.
func closeNVML() error {
	if opened.Add(-1) < 0 {
		opened.Add(1)
		return nil
	}
	return failed("close NVML", nvml.Shutdown())
}

func initFailure(ret nvml.Return) string {
	if ret == nvml.ERROR_LIBRARY_NOT_FOUND {
		return "there is no NVIDIA driver (libnvidia-ml.so.1 cannot be loaded)"
	}
	return nvml.ErrorString(ret)
}

// failed is the error of a call of NVML; nil where it succeeded.
func failed(what string, ret nvml.Return) error {
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("%s: %w", what, fs.ErrPermission)
	}
	return fmt.Errorf("%s: %s", what, nvml.ErrorString(ret))
}

// needed are the functions that this package calls. They are bound when first called, and calling
// one that the library lacks would end the process.
var needed = []string{
	"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlSystemGetDriverVersion",
	"nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo_v3",
	"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetFieldValues",
	"nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo",
	"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetTemperature",
}

// openGPUs opens all meters.
func openGPUs() ([]GPUMeters, error) {
	for _, symbol := range needed {
		if err := nvml.Extensions().LookupSymbol(symbol); err != nil {
			return nil, fmt.Errorf("the driver is too old: its libnvidia-ml.so.1 has no %s", symbol)
		}
	}
	n, ret := nvml.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, failed("count GPUs", ret)
	}
	if n == 0 {
		return nil, errors.New("the driver shows no GPU")
	}
	return openBoards(n, func(i int) (GPUMeters, error) {
		d, ret := nvml.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return GPUMeters{}, failed("open it", ret)
		}
		return openGPU(d)
	}), nil
}

func openGPU(d nvml.Device) (GPUMeters, error) {
	g := GPUMeters{}
	var err error
	if g.GPU, err = describe(d); err != nil {
		return g, err
	}
	tdp, from := g.GPU.designedPower()
	if _, ret := d.GetTotalEnergyConsumption(); ret == nvml.SUCCESS {
		g.Counter = &nvmlCounter{device: d, counter: Counter{Name: nvmlCounterName, TDPWatts: tdp, TDPFrom: from}}
	}
	if _, err := instantWatts(d); err == nil {
		g.Power = &powerMeter{name: "NVML instant power, integrated", update: instantWindow, tdp: tdp, tdpFrom: from, watts: func() (float64, error) { return instantWatts(d) }}
	} else if _, err := averageWatts(d); err == nil {
		g.Power = &powerMeter{name: "NVML average power, integrated", update: averageWindow, tdp: tdp, tdpFrom: from, watts: func() (float64, error) { return averageWatts(d) }}
	}
	if g.GPU.TemperatureCelsius > 0 {
		g.Celsius = func() (float64, error) {
			celsius, ret := d.GetTemperature(nvml.TEMPERATURE_GPU)
			return float64(celsius), failed("read the temperature", ret)
		}
	}
	if g.Counter == nil && g.Power == nil {
		return g, fmt.Errorf("%s tells neither energy nor power", g.GPU.Name)
	}
	return g, nil
}

// describe reads the description of a GPU for reports. A number stays 0 where the board lacks a
// sensor. A board without a name is an error.
func describe(d nvml.Device) (GPU, error) {
	var g GPU
	var ret nvml.Return
	if g.Name, ret = d.GetName(); ret != nvml.SUCCESS {
		return g, failed("read the name", ret)
	}
	if g.UUID, ret = d.GetUUID(); ret != nvml.SUCCESS {
		return g, failed("read the UUID", ret)
	}
	if g.Driver, ret = nvml.SystemGetDriverVersion(); ret != nvml.SUCCESS {
		return g, failed("read the driver's version", ret)
	}
	pci, ret := d.GetPciInfo()
	if ret != nvml.SUCCESS {
		return g, failed("read the PCI address", ret)
	}
	g.PCIBus = fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	number := func(read func() (uint32, nvml.Return)) int {
		if v, ret := read(); ret == nvml.SUCCESS {
			return int(v)
		}
		return 0
	}
	g.SMClockMHz = number(func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_SM) })
	g.MaxSMClockMHz = number(func() (uint32, nvml.Return) { return d.GetMaxClockInfo(nvml.CLOCK_SM) })
	g.MemoryClockMHz = number(func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_MEM) })
	g.TemperatureCelsius = number(func() (uint32, nvml.Return) { return d.GetTemperature(nvml.TEMPERATURE_GPU) })
	g.PowerLimitWatts = float64(number(d.GetEnforcedPowerLimit)) / 1e3
	g.PowerWatts = float64(number(d.GetPowerUsage)) / 1e3
	return g, nil
}

// The lag of the sensors. The counter is updated about every 100 ms. The average power covers a
// second on recent boards. The instant power is sampled for some 25 ms.
const (
	counterUpdate = 100 * time.Millisecond
	averageWindow = time.Second
	instantWindow = 25 * time.Millisecond
)

// nvmlCounter is the counter of millijoules since the driver was loaded.
type nvmlCounter struct {
	device  nvml.Device
	counter Counter
}

const nvmlCounterName = "NVML energy counter"

func (c *nvmlCounter) Name(int) string       { return nvmlCounterName }
func (c *nvmlCounter) Update() time.Duration { return counterUpdate }
func (c *nvmlCounter) Close() error          { return nil }
func (c *nvmlCounter) Counters() []Counter   { return []Counter{c.counter} }

func (c *nvmlCounter) Read(uj []uint64) error {
	mj, ret := c.device.GetTotalEnergyConsumption()
	uj[0] = 1000 * mj
	return failed("read the energy counter", ret)
}

// instantWatts reads the present power, which boards since Ampere have.
func instantWatts(d nvml.Device) (float64, error) {
	v := []nvml.FieldValue{{FieldId: nvml.FI_DEV_POWER_INSTANT}}
	if ret := d.GetFieldValues(v); ret != nvml.SUCCESS {
		return 0, failed("read the instant power", ret)
	}
	if ret := nvml.Return(v[0].NvmlReturn); ret != nvml.SUCCESS {
		return 0, failed("read the instant power", ret)
	}
	return float64(binary.NativeEndian.Uint32(v[0].Value[:])) / 1e3, nil
}

func averageWatts(d nvml.Device) (float64, error) {
	milliwatts, ret := d.GetPowerUsage()
	return float64(milliwatts) / 1e3, failed("read the power", ret)
}
