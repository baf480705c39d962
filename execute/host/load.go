package host

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Load is the work of other processes on our CPUs during a measurement.
type Load struct {
	Others time.Duration // CPU time
	Own    time.Duration // CPU time of what was measured
	Window time.Duration
}

// Cores is how many of the CPUs others kept busy on average.
func (l Load) Cores() float64 {
	if l.Window <= 0 {
		return 0
	}
	return float64(l.Others) / float64(l.Window)
}

// Disturbed reports whether the load exceeds its usual sources: the clock's ticks, the
// housekeeping of a machine at rest, and the CPUs that the measurement leaves idle.
func (l Load) Disturbed(idle int) bool {
	return l.Others > loadTicks+time.Duration(float64(l.Window)*(restingCores+float64(idle)))
}

const (
	// loadTick is the unit of the system's counts of CPU time.
	loadTick = 10 * time.Millisecond
	// loadTicks is the error of a difference of counts: one tick each for user, system and stolen
	// time.
	loadTicks    = 3 * loadTick
	restingCores = 0.1
)

// LoadMeter measures the load from its start on. It reads zero where the system does not count
// CPU time.
type LoadMeter struct {
	begin      time.Time
	busy, self time.Duration
	pids       []int
}

// StartLoad begins to count. The processes pids belong to the measurement, as this one does, and
// live until the meter is read.
func StartLoad(pids ...int) *LoadMeter {
	busy, self := cpuTimes(pids)
	return &LoadMeter{time.Now(), busy, self, pids}
}

// Load is the load since the start: CPU time of others, and time that a hypervisor kept from this
// machine.
func (m *LoadMeter) Load() Load {
	busy, self := cpuTimes(m.pids)
	return Load{Others: max(0, busy-m.busy-(self-m.self)), Own: self - m.self, Window: time.Since(m.begin)}
}

// processTime is the CPU time of a process from /proc/PID/stat. User and system time are the 12th
// and 13th field after the name, which is in parentheses and may hold anything.
func processTime(stat string) time.Duration {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	return ticks(fields[11]) + ticks(fields[12])
}

// ticks reads a count of CPU time.
func ticks(field string) time.Duration {
	n, err := strconv.ParseInt(field, 10, 48)
	if err != nil {
		return 0
	}
	return time.Duration(n) * loadTick
}

// busyTime adds up, from /proc/stat, the time during which some CPUs were not idle: user, nice,
// system, interrupts and stolen.
func busyTime(stat string, cpus []int) (busy time.Duration) {
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		cpu, err := strconv.Atoi(fields[0][len("cpu"):])
		if err != nil || !slices.Contains(cpus, cpu) {
			continue // the line of all CPUs has no number
		}
		for _, k := range []int{1, 2, 3, 6, 7, 8} {
			busy += ticks(fields[k])
		}
	}
	return busy
}
