package host

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

const (
	sysCPU     = "/sys/devices/system/cpu"
	procCPU    = "/proc/cpuinfo"
	procMemory = "/proc/meminfo"

	fallbackL2Bytes = 1 << 20
	fallbackL3Bytes = 8 << 20
)

// Cores is the number of physical cores among the allowed CPUs, but at most GOMAXPROCS. A container's
// quota lowers the latter.
func Cores() int {
	cpus := allowedCPUs()
	cores := 0
	for _, c := range cpus {
		if firstSibling(sysCPU, c, cpus) == c {
			cores++
		}
	}
	return max(1, min(cores, runtime.GOMAXPROCS(0)))
}

// CPUs lists the allowed CPUs in the order in which workers take them: first one per
// physical core, then their siblings.
func CPUs() []int {
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

// Siblings lists the CPUs on the same core as cpu. It is empty if the system does not tell.
func Siblings(cpu int) []int { return siblings(sysCPU, cpu) }

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

// Caches reads the sizes of a CPU's second and third level caches.
func Caches(cpu int) (l2, l3 int64) { return caches(sysCPU, cpu) }

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

// MemoryBytes is the size of the memory. Zero means that the system does not tell.
func MemoryBytes() int64 {
	kib, err := strconv.ParseInt(strings.TrimSuffix(fieldOf(procMemory, "MemTotal"), " kB"), 10, 48)
	if err != nil {
		return 0
	}
	return kib << 10
}

// CPUModel is the name of the processor. It is empty if the system does not tell.
func CPUModel() string { return fieldOf(procCPU, "model name") }

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
