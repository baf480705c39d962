//go:build cuda

package meter

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func nvmlClockRange(uuid string) (leastMHz, mostMHz int, err error) {
	err = onGPU(uuid, "nvmlDeviceGetMinMaxClockOfPState", func(d nvml.Device) error {
		least, most, ret := d.GetMinMaxClockOfPState(nvml.CLOCK_GRAPHICS, nvml.PSTATE_0)
		leastMHz, mostMHz = int(least), int(most)
		return failed("read the range of its clock", ret)
	})
	return leastMHz, mostMHz, err
}

func lockNVMLClock(uuid string, mhz int) error {
	return onGPU(uuid, "nvmlDeviceSetGpuLockedClocks", func(d nvml.Device) error {
		return mayFail("lock its clock", d.SetGpuLockedClocks(uint32(mhz), uint32(mhz)))
	})
}

func unlockNVMLClock(uuid string) error {
	return onGPU(uuid, "nvmlDeviceResetGpuLockedClocks", func(d nvml.Device) error {
		return mayFail("unlock its clock", d.ResetGpuLockedClocks())
	})
}

// mayFail is failed, with what to do where the rights are missing.
func mayFail(what string, ret nvml.Return) error {
	if err := failed(what, ret); ret != nvml.ERROR_NO_PERMISSION {
		return err
	}
	return fmt.Errorf("%s: only root may; run as root", what)
}

// onGPU opens the library for one call that needs a symbol of it.
func onGPU(uuid, symbol string, call func(nvml.Device) error) error {
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		return fmt.Errorf("clocks of GPUs are unavailable: %s", initFailure(ret))
	}
	defer nvml.Shutdown() // nothing depends on its success
	for _, s := range []string{"nvmlDeviceGetHandleByUUID", symbol} {
		if err := nvml.Extensions().LookupSymbol(s); err != nil {
			return fmt.Errorf("the driver is too old: its libnvidia-ml.so.1 has no %s", s)
		}
	}
	d, ret := nvml.DeviceGetHandleByUUID(uuid)
	if ret != nvml.SUCCESS {
		return failed("find GPU "+uuid, ret)
	}
	if err := call(d); err != nil {
		return fmt.Errorf("GPU %s: %w", uuid, err)
	}
	return nil
}
