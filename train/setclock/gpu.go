package setclock

import (
	"errors"
	"fmt"
	"math"

	"dahl/energy/meter"
	"dahl/platform"
	"dahl/train"
)

// boards finds the GPUs of a machine, by UUID, and sets their clocks.
type boards interface {
	find(d *platform.Device) (uuid string, err error)
	span(uuid string) (leastMHz, mostMHz int, err error)
	lock(uuid string, mhz int) error
	unlock(uuid string) error
}

// managed are the boards of the libraries of meters.
type managed struct{}

func (managed) find(d *platform.Device) (string, error) {
	kind, err := platform.KindByName(d.Kind)
	if err != nil {
		return "", err
	}
	boards, err := train.OpenBoards(kind)
	if err != nil {
		return "", err
	}
	defer train.CloseBoards(kind)
	g := boards.At(d.Ordinal)
	if g == nil {
		return "", fmt.Errorf("the driver shows no such GPU")
	}
	if g.Err != nil {
		return "", g.Err
	}
	return g.GPU.UUID, nil
}

func (managed) span(uuid string) (least, most int, err error) {
	err = byOne(func(l meter.Library) (err error) {
		least, most, err = l.ClockRange(uuid)
		return err
	})
	return least, most, err
}

func (managed) lock(uuid string, mhz int) error {
	return byOne(func(l meter.Library) error { return l.LockClock(uuid, mhz) })
}

func (managed) unlock(uuid string) error {
	return byOne(func(l meter.Library) error { return l.UnlockClock(uuid) })
}

// byOne calls the libraries up to the first that has the board.
func byOne(call func(meter.Library) error) (failed error) {
	for _, l := range train.MeterLibraries() {
		err := call(l)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// lockable finds a GPU, and the whole MHz nearest to a frequency.
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
