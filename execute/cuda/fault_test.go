//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"dahl/execute/driver"
)

// What the test driver must find, and what it must not. A fault ends the device: every
// later call gives the error, until the device has been closed and opened again.

// finds fails the test unless work on the device failed and ended it.
func finds(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !e.Lost() {
		t.Errorf("got %v, want an error that ends the device", err)
	}
}

func TestKernelFaults(t *testing.T) {
	for _, c := range []struct {
		name       string
		mode, grid int
		found      bool
	}{
		{"nothing wrong", 0, 1, false},
		{"no barrier between write and read of shared memory", 1, 1, true},
		{"a barrier that half of the block never reaches", 2, 1, true},
		{"a read beyond the allocation", 3, 1, true},
		{"one block that writes", 0, 2, false},
		{"two blocks that write the same elements", 4, 2, true},
		{"a shuffle that half of the warp never reaches", 5, 1, true},
		{"shared memory read before its copy was waited for", 6, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			emulated(t, b.device)
			if b.device.Capability < 80 && c.mode == 6 {
				t.Skip("copies are not asynchronous before compute capability 8.0")
			}
			const beyond = 3 * operandBytes / 4 // elements from x on are the whole allocation
			must(t, b.stream.Fill(b.operands[0], 0, operandBytes))
			n := 64
			if c.mode == 3 {
				must(t, b.stream.Fill(b.operands[0], 0, 3*operandBytes))
				n = beyond
			}
			must(t, b.stream.Launch(b.prepare("probe_fault", n, c.mode, uint32(c.grid), 64, 0)))
			err := b.stream.Synchronize()
			if !c.found {
				must(t, err)
				return
			}
			finds(t, err)
			finds(t, b.stream.Fill(b.operands[0], 0, 8)) // and says so again
		})
	}
}

// Without the wait between two streams the test driver finds the missing order, whatever
// order the run took; with it, or when the host waits instead, nothing is found.
func TestMissingOrder(t *testing.T) {
	conflicts := []struct {
		name          string
		first, second func(b *bench, s Stream) error
	}{
		{"kernel reads what a copy brings", copyIn, launchAdd},
		{"copy overwrites what a kernel reads", launchAdd, copyIn},
		{"copy takes what a kernel writes", launchAdd, copyOut},
		{"two kernels write the same", launchAdd, launchAdd},
		{"copy to the host over what a copy takes from there", copyIn, copyOutToIn},
	}
	order := map[string]bool{"nothing": true, "an event": false, "the host": false}
	for _, c := range conflicts {
		for between, found := range order {
			for seed := range 3 {
				t.Run(fmt.Sprintf("%s, ordered by %s, %d", c.name, between, seed), func(t *testing.T) {
					t.Setenv("DAHL_TESTDRIVER_SEED", fmt.Sprint(seed))
					b := newBench(t)
					emulated(t, b.device)
					finish := orderBy(b, between, c.first, c.second)
					if found {
						finds(t, finish)
					} else {
						must(t, finish)
					}
				})
			}
		}
	}
}

// orderBy issues first on one stream and second on another, ordered as said, and waits.
func orderBy(b *bench, between string, first, second func(*bench, Stream) error) error {
	other, err := b.device.NewStream()
	must(b.T, err)
	e, err := b.device.NewEvent()
	must(b.T, err)
	must(b.T, b.stream.Fill(b.operands[0], 0, 2*operandBytes), b.stream.Synchronize())
	err = errors.Join(first(b, b.stream), b.stream.Record(e))
	switch between {
	case "an event":
		err = errors.Join(err, other.Wait(e))
	case "the host":
		for done := false; !done && err == nil; {
			done, err = e.Done()
		}
	}
	return errors.Join(err, second(b, other), b.device.Synchronize())
}

func copyIn(b *bench, s Stream) error {
	return s.Copy(driver.Plane{Device: b.operands[0]}, hostPlace(b.at(0), 0), 400, 1)
}

func copyOut(b *bench, s Stream) error {
	return s.Copy(hostPlace(b.at(1), 0), driver.Plane{Device: b.operands[1]}, 400, 1)
}

func copyOutToIn(b *bench, s Stream) error {
	return s.Copy(hostPlace(b.at(0), 0), driver.Plane{Device: b.operands[1]}, 400, 1)
}

func launchAdd(b *bench, s Stream) error {
	return s.Launch(b.prepare("probe_add", 100, 1, 1, 128, 0))
}

// Neighbouring bytes are no conflict: streams may work side by side on tiles of one buffer.
func TestNeighboursAreNoConflict(t *testing.T) {
	b := newBench(t)
	other, err := b.device.NewStream()
	must(t, err)
	const odd = 131
	must(t, b.stream.Fill(b.operands[0], 1, odd), other.Fill(b.operands[0]+odd, 2, odd), b.device.Synchronize())
	b.download(b.stream, 0)
	must(t, b.stream.Synchronize())
	if got := [2]byte(b.at(0)[odd-1:]); got != [2]byte{1, 2} {
		t.Errorf("at the border: %v", got)
	}
}

// Zero has set the memory when it returns, whatever a stream does with it next.
func TestZeroIsDone(t *testing.T) {
	b := newBench(t)
	other, err := b.device.NewStream()
	must(t, err)
	for range 20 { // the device may be done in time by chance
		view[uint32](b.at(1))[0] = 1
		must(t, b.device.Zero(b.operands[0], 3*operandBytes), other.Fill(b.operands[0], 0xff, operandBytes), other.Synchronize())
		b.download(other, 0)
		b.download(other, 1)
		must(t, other.Synchronize())
		if got := [2]uint32{view[uint32](b.at(0))[0], view[uint32](b.at(1))[0]}; got != [2]uint32{math.MaxUint32, 0} {
			t.Fatalf("filled after it was zeroed, and only zeroed: %#x", got)
		}
	}
}

// The device is lost at the launch that was asked for, and works again after it was
// closed and opened.
func TestLostDevice(t *testing.T) {
	t.Setenv("DAHL_TESTDRIVER_LOSE", "0:3")
	t.Run("lost", func(t *testing.T) {
		b := newBench(t)
		emulated(t, b.device)
		for range 2 {
			must(t, launchAdd(b, b.stream))
		}
		must(t, b.stream.Synchronize())
		must(t, launchAdd(b, b.stream))
		finds(t, b.stream.Synchronize())
	})
	must(t, os.Unsetenv("DAHL_TESTDRIVER_LOSE"))
	t.Run("opened again", func(t *testing.T) {
		b := newBench(t)
		must(t, launchAdd(b, b.stream), b.stream.Synchronize())
	})
}

// More streams than the checker can number, of which 1 << 9 numbers one is nobody's, are an error
// of the call, and there are others when some are destroyed.
func TestManyStreams(t *testing.T) {
	d := open(t)
	emulated(t, d)
	var streams []Stream
	s, err := d.NewStream()
	for ; err == nil && len(streams) < 1<<9; s, err = d.NewStream() {
		streams = append(streams, s)
	}
	var e *Error
	if !errors.As(err, &e) || !e.OutOfMemory() {
		t.Errorf("after %d streams: %v", len(streams), err)
	}
	for _, s := range streams {
		must(t, s.Destroy())
	}
	if s, err = d.NewStream(); err != nil {
		t.Fatal(err)
	}
	must(t, s.Destroy())
}

// Capacity is what the device says, counted over everything that is allocated.
func TestCapacity(t *testing.T) {
	t.Setenv("DAHL_TESTDRIVER_MEMORY", fmt.Sprint(1<<20))
	d := open(t)
	emulated(t, d)
	free, total, err := d.Memory()
	if err != nil || free != 1<<20 || total != 1<<20 {
		t.Fatal(free, total, err)
	}
	first, err := d.Alloc(700 << 10)
	must(t, err)
	var e *Error
	if _, err := d.Alloc(400 << 10); !errors.As(err, &e) || !e.OutOfMemory() {
		t.Errorf("1100 KiB of 1 MiB: %v", err)
	}
	must(t, d.Release(first))
	if _, err := d.Alloc(400 << 10); err != nil {
		t.Errorf("after a release: %v", err)
	}
}
