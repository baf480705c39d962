package host

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxCPUs is the number of CPUs a unix.CPUSet can name.
const maxCPUs = 1024

// allowedCPUs lists the CPUs on which the process may run, ascending.
func allowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return countedCPUs()
	}
	var cpus []int
	for c := range maxCPUs {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// Pin binds the calling thread to one CPU.
func Pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}

// WakeInTime lets sleeps of this thread end when their time has passed. Otherwise Linux lets them last up to 50 us longer.
func WakeInTime() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// adviseHugePages asks the system to back memory, which begins on a page, with huge pages when it
// is first touched. If the system refuses, small pages work the same, only slower.
func adviseHugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

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
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // if the process has ended, the measurement will notice
		self += processTime(string(stat))
	}
	return busyTime(string(text), allowedCPUs()), self
}
