package budget

import (
	"math"
	"runtime"
	"syscall"
)

// Available is the least that the machine, control groups and resource limits leave. Unused address space
// of the heap counts as left, since the heap never gives it back.
func Available() Limit {
	least := lesser(machine("/"), groups("/"))
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	for _, l := range []struct {
		resource int
		key, of  string
	}{{syscall.RLIMIT_AS, "VmSize:", "ulimit -v, beside the program itself,"}, {syscall.RLIMIT_DATA, "VmData:", "ulimit -d, beside the program itself,"}} {
		var limit syscall.Rlimit
		if syscall.Getrlimit(l.resource, &limit) == nil {
			left := process("/", l.key, l.of, limit.Cur)
			if left.Bytes < math.MaxInt64 {
				left.Bytes += int64(heap.HeapIdle)
			}
			least = lesser(least, left)
		}
	}
	return least
}
