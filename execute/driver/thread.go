package driver

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"dahl/execute/host"
	"dahl/platform"
)

// ReportPeriod is how often a device that reports is asked all the same, only to be safe.
const ReportPeriod = 10 * time.Millisecond

// Thread is a goroutine, locked to its thread, that opens a driver, makes all of its calls and
// closes it.
type Thread struct {
	Driver     Driver // nil until it is open
	Properties Properties
	Woken      host.Parker // by a driver that reports
	Mark       EventID     // of the last Finish
	work       chan func()
}

// NewThread makes a thread that waits for work. start starts its goroutine.
func NewThread(start func(main func())) *Thread {
	t := &Thread{work: make(chan func())}
	start(t.main)
	return t
}

func (t *Thread) main() {
	runtime.LockOSThread() // not unlocked: the thread ends with the device's context
	for f := range t.work {
		f()
	}
}

// Begin hands f to the thread.
func (t *Thread) Begin(f func()) { t.work <- f }

// Do calls f on the thread, and makes an error of a panic.
func (t *Thread) Do(f func() error) (err error) {
	done := make(chan struct{})
	t.work <- func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				err = Recovered(cause)
			}
		}()
		err = f()
	}
	<-done
	return err
}

// Recovered turns the value of a panic into a cause.
func Recovered(v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic: %v", v)
}

// Open opens the driver of a device. It is called on the thread, as are the methods below but
// Close.
func (t *Thread) Open(dev *platform.Device, open Opener) (err error) {
	if t.Driver, err = open(dev, t.Woken.Wake); err != nil {
		return err
	}
	t.Properties = t.Driver.Properties()
	t.Mark, err = t.Driver.NewEvent()
	return err
}

// Close closes the driver and ends the thread.
func (t *Thread) Close() (err error) {
	if t.Driver != nil {
		err = t.Do(t.Driver.Close)
	}
	close(t.work)
	return err
}

// NewEvents makes events.
func (t *Thread) NewEvents(events []EventID) (err error) {
	for i := range events {
		if events[i], err = t.Driver.NewEvent(); err != nil {
			return err
		}
	}
	return nil
}

// Await blocks until an event is done.
func (t *Thread) Await(e EventID) error {
	for {
		done, err := t.Driver.Done(e)
		if done || err != nil {
			return err
		}
		if t.Properties.Reports {
			t.Woken.ParkFor(ReportPeriod)
		} else {
			runtime.Gosched()
		}
	}
}

// Finish waits until all work on a stream is done.
func (t *Thread) Finish(s StreamID) error {
	return cmp.Or(t.Driver.Record(s, t.Mark), t.Await(t.Mark))
}
