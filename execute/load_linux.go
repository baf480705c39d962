package execute

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTimes is how long the allowed CPUs have been busy since the system started, and how much of
// that this process and pids used.
func cpuTimes(pids []int) (busy, self time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	self = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil { // otherwise the process has ended, and the measurement will notice
			self += processTime(string(stat))
		}
	}
	return busyTime(string(text), allowedCPUs()), self
}
