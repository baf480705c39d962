package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that this thread has taken, in which other programs have no part.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("dahl-bench: " + err.Error()) // Linux has this clock
	}
	return time.Duration(t.Nano())
}
