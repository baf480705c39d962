package budget

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// machine is the memory left for programs without swapping, from /proc/meminfo.
func machine(root string) Limit {
	kB, ok := field(filepath.Join(root, "proc/meminfo"), "MemAvailable:")
	if !ok {
		return unlimited
	}
	return Limit{kB << 10, "the machine"}
}

// PeakBytes is the largest part of the memory that this process has held at once. Zero means that
// the system does not say.
func PeakBytes() int64 {
	kB, _ := field("/proc/self/status", "VmHWM:")
	return kB << 10
}

// groups is the least that the control group of this process and those above it have left. What
// they hold of files is given back when it is needed, and counts as left.
func groups(root string) Limit {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return unlimited
	}
	least := unlimited
	for line := range strings.Lines(string(text)) {
		// hierarchy, controllers, path; version 2 has the hierarchy 0 and names no controllers
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		v := &version2
		if parts[0] != "0" || parts[1] != "" {
			v = &version1
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
		}
		// A container sees its own group as the first one, whatever the path says.
		for dir := path.Join("/", parts[2]); ; dir = path.Dir(dir) {
			least = lesser(least, v.left(filepath.Join(root, v.mount, dir)))
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// A version of control groups has files of its own.
type version struct {
	mount, limit, usage string
	cached              []string // of memory.stat
}

var (
	version1 = version{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}}
	version2 = version{"sys/fs/cgroup", "memory.max", "memory.current", []string{"inactive_file", "active_file"}}
)

// left is the memory that one group may still take.
func (v *version) left(dir string) Limit {
	limit, limited := number(filepath.Join(dir, v.limit)) // "max" is no number
	usage, ok := number(filepath.Join(dir, v.usage))
	if !limited || !ok {
		return unlimited
	}
	for _, key := range v.cached {
		bytes, _ := field(filepath.Join(dir, "memory.stat"), key)
		usage -= bytes
	}
	return Limit{limit - max(0, usage), "the control group"}
}

func number(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field is the number behind a key in a file of lines.
func field(path, key string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == key {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// runtimeShare bounds the memory that the Go runtime maps beyond all requests: whole heap arenas of 64 MiB
// and its own tables.
const runtimeShare = 160 << 20

// process is the memory that a resource limit leaves. /proc/self/status has the use under the key.
func process(root, key, of string, limit uint64) Limit {
	kB, ok := field(filepath.Join(root, "proc/self/status"), key)
	if !ok || limit > math.MaxInt64 {
		return unlimited
	}
	return Limit{int64(limit) - kB<<10 - runtimeShare, of}
}

// Resident is the part of the machine's memory that this process holds now. Zero means unknown.
func Resident() int64 {
	kB, _ := field("/proc/self/status", "VmRSS:")
	return kB << 10
}

func lesser(a, b Limit) Limit {
	if b.Bytes < a.Bytes {
		return b
	}
	return a
}
