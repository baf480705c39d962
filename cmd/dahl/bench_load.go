package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSec is the unit of the times in /proc, the same on every Linux that Go
// runs on.
const ticksPerSec = 100

// loadMeter tells how busy other processes kept the machine for a while.
type loadMeter struct {
	pids []int // of the processes that belong to the measurement
}

// start begins an interval. What it returns gives the number of cores that
// processes beside those of the measurement kept busy on average since then, what a
// hypervisor withheld included; NaN where the system does not say.
func (l *loadMeter) start() (others func() float64) {
	busy, ours, since := machineBusy(), processesBusy(l.pids), time.Now()
	return func() float64 {
		foreign := machineBusy() - busy - (processesBusy(l.pids) - ours)
		return max(0, foreign) / time.Since(since).Seconds()
	}
}

// machineBusy is the seconds of all cores that were not idle.
func machineBusy() float64 {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return math.NaN()
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal ...
	if len(fields) < 9 {
		return math.NaN()
	}
	sum := 0.0
	for i, f := range fields[1:9] {
		if i == 3 || i == 4 {
			continue
		}
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return math.NaN()
		}
		sum += v
	}
	return sum / ticksPerSec
}

// processesBusy is the seconds of CPU time that processes have used; one that has
// ended counts nothing.
func processesBusy(pids []int) float64 {
	sum := 0.0
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// The name is in parentheses and may hold anything; utime and stime are the
		// 12th and 13th field after it.
		_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		if f := strings.Fields(rest); len(f) > 12 {
			user, _ := strconv.ParseFloat(f[11], 64)
			system, _ := strconv.ParseFloat(f[12], 64)
			sum += user + system
		}
	}
	return sum / ticksPerSec
}
