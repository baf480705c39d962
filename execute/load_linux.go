package execute

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTimes is how long the allowed CPUs have been busy since the system started, and
// how much of it was this process.
func cpuTimes() (busy, self time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return busyTime(string(text), allowedCPUs()), time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
