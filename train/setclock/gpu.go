package setclock

import (
	"fmt"
	"math"

	"dahl/energy"
	"dahl/execute"
	"dahl/platform"
	"dahl/train"
)

// boards are the GPUs of a machine, by UUID, and what sets their clocks.
type boards interface {
	find(d *platform.Device) (uuid string, err error)
	span(uuid string) (leastMHz, mostMHz int, err error)
	lock(uuid string, mhz int) error
	unlock(uuid string) error
}

// nvml are those of the driver.
type nvml struct{}

func (nvml) find(d *platform.Device) (string, error) {
	meters, err := energy.OpenGPUs()
	if err != nil {
		return "", err
	}
	defer energy.CloseGPUs()
	shown, _ := execute.GPUs() // without CUDA's own numbers the order of the buses counts
	g := (&train.GPUMeters{Meters: meters, Shown: shown}).Of(d)
	if g == nil {
		return "", fmt.Errorf("the driver shows no such GPU")
	}
	if g.Err != nil {
		return "", g.Err
	}
	return g.GPU.UUID, nil
}

func (nvml) span(uuid string) (int, int, error) { return energy.GPUClockRange(uuid) }
func (nvml) lock(uuid string, mhz int) error    { return energy.LockGPUClock(uuid, mhz) }
func (nvml) unlock(uuid string) error           { return energy.UnlockGPUClock(uuid) }

// lockable finds a GPU, and the whole MHz that are nearest to a frequency.
func (s *System) lockable(d *platform.Device, hz float64) (uuid string, mhz int, err error) {
	if uuid, err = s.boards.find(d); err != nil {
		return "", 0, err
	}
	least, most, err := s.boards.span(uuid)
	if err != nil {
		return "", 0, err
	}
	mhz = int(math.Round(hz / 1e6))
	if nearest := min(max(mhz, least), most); nearest != mhz {
		return "", 0, fmt.Errorf("GPU %s cannot run at %s; the nearest that it has is %s", uuid, ghz(hz), ghz(1e6*float64(nearest)))
	}
	return uuid, mhz, nil
}
