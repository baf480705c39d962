package execute

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"dahl/kernels/simd"
	"dahl/platform"
)

// guessFlopsPerSec is the speed of float32 kernels on one core of a recent machine, on
// the low side, by the vector instructions it has. Calibrate measures it.
var guessFlopsPerSec = [...]float64{simd.AVX512: 100e9, simd.AVX2: 50e9, simd.Go: 4e9}

// Detect cannot read these numbers from the system.
const (
	guessBandwidth  = 10e9
	guessDispatch   = 300 * time.Nanosecond
	guessHostWatts  = 30
	guessIdleWatts  = 1.5
	guessBusyWatts  = 8
	fallbackL2Bytes = 1 << 20
	fallbackL3Bytes = 8 << 20
	sysCPU          = "/sys/devices/system/cpu"
	procCPU         = "/proc/cpuinfo"
	procMemory      = "/proc/meminfo"
)

// Detect describes this machine: its memory, and one cpu device with a unit for each physical
// core that the process may use. It reads caches and sizes from the system where it can. Powers
// and speeds are guesses and marked as such. The name ends in the level of vector instructions.
func Detect() (*platform.Platform, error) {
	cpus := workerCPUs()
	l2, l3 := caches(sysCPU, cpus[0])
	level := simd.Widest()
	speed := guessFlopsPerSec[level]
	p := &platform.Platform{
		Name:      cmp.Or(fieldOf(procCPU, "model name"), runtime.GOARCH) + " " + level.String(),
		HostPower: platform.Quantity{Value: guessHostWatts, Source: platform.Guess},
		Memories:  []platform.Memory{{Name: "ram", CapacityBytes: memoryBytes(), BandwidthBytesPerSec: guessBandwidth}},
		Devices: []platform.Device{{
			Name: platform.CPU, Kind: platform.CPU, Count: coreCount(cpus),
			FlopsPerSec: map[string]float64{"float32": speed, "float64": speed / 2},
			L2Bytes:     l2, L3Bytes: l3,
			Dispatch:  guessDispatch,
			IdleWatts: guessIdleWatts, Busy: platform.BusyPower{UnitWatts: guessBusyWatts}, PowerSource: platform.Guess,
		}},
	}
	if err := p.Complete(); err != nil {
		return nil, fmt.Errorf("detect this machine: %w", err)
	}
	return p, nil
}

// coreCount is the number of physical cores among the CPUs, but at most the number on which Go
// runs at once (a container's quota lowers that).
func coreCount(cpus []int) int {
	cores := 0
	for _, c := range cpus {
		if firstSibling(sysCPU, c, cpus) == c {
			cores++
		}
	}
	return max(1, min(cores, runtime.GOMAXPROCS(0)))
}

// workerCPUs lists the allowed CPUs in the order in which workers take them: first one per
// physical core, then their siblings.
func workerCPUs() []int {
	allowed := allowedCPUs()
	var first, rest []int
	for _, c := range allowed {
		if firstSibling(sysCPU, c, allowed) == c {
			first = append(first, c)
		} else {
			rest = append(rest, c)
		}
	}
	return append(first, rest...)
}

// CPUsOf lists the CPUs of the cores on which the units of a processor run, siblings of a core
// included, ascending.
func CPUsOf(p *platform.Platform, d platform.DeviceID) (all []int) {
	cpus, cores := workerCPUs(), 0
	for _, w := range p.Workers {
		if !p.Devices[w.Device].IsProcessor() {
			continue
		}
		if cpu := cpus[cores%len(cpus)]; w.Device == d {
			all = append(append(all, cpu), siblings(sysCPU, cpu)...)
		}
		cores++
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// siblings lists the CPUs on the same core as cpu; nothing where the system does not say.
func siblings(root string, cpu int) []int {
	return parseCPUList(readWord(filepath.Join(root, fmt.Sprintf("cpu%d", cpu), "topology", "thread_siblings_list")))
}

// countedCPUs lists as many CPUs as Go counts.
func countedCPUs() []int {
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}

// firstSibling is the first allowed CPU on the same core as cpu, or cpu itself where the system
// does not say.
func firstSibling(root string, cpu int, allowed []int) int {
	for _, s := range siblings(root, cpu) {
		if slices.Contains(allowed, s) {
			return s
		}
	}
	return cpu
}

// parseCPUList reads "0-2,8" as 0, 1, 2, 8. It leaves out malformed parts.
func parseCPUList(text string) []int {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(hi)
		}
		if err != nil || first < 0 || last >= first+4096 {
			continue
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// caches reads the sizes of a CPU's second and third level caches.
func caches(root string, cpu int) (l2, l3 int64) {
	l2, l3 = fallbackL2Bytes, fallbackL3Bytes
	dir := filepath.Join(root, fmt.Sprintf("cpu%d", cpu), "cache")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		size, ok := parseCacheSize(readWord(filepath.Join(dir, e.Name(), "size")))
		if !ok {
			continue
		}
		switch readWord(filepath.Join(dir, e.Name(), "level")) {
		case "2":
			l2 = size
		case "3":
			l3 = size
		}
	}
	return l2, l3
}

// parseCacheSize reads "48K" or "32M".
func parseCacheSize(text string) (int64, bool) {
	number, unit := text, int64(1)
	if n, ok := strings.CutSuffix(text, "K"); ok {
		number, unit = n, 1<<10
	} else if n, ok := strings.CutSuffix(text, "M"); ok {
		number, unit = n, 1<<20
	}
	n, err := strconv.ParseInt(number, 10, 32)
	return n * unit, err == nil && n > 0
}

// readWord reads a file of one word; "" where the system has none.
func readWord(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

// fieldOf finds the value of the first line "key : value" of a file; "" where there is none.
func fieldOf(path, key string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// memoryBytes is the size of the memory; 0 (not limited) where it is not known.
func memoryBytes() int64 {
	kib, err := strconv.ParseInt(strings.TrimSuffix(fieldOf(procMemory, "MemTotal"), " kB"), 10, 48)
	if err != nil {
		return 0
	}
	return kib << 10
}
