package budget

import "syscall"

// Available is the least that the machine, control groups and resource limits leave.
func Available() Limit {
	least := lesser(machine("/"), groups("/"))
	for _, l := range []struct {
		resource int
		key, of  string
	}{{syscall.RLIMIT_AS, "VmSize:", "ulimit -v, beside the program itself,"}, {syscall.RLIMIT_DATA, "VmData:", "ulimit -d, beside the program itself,"}} {
		var limit syscall.Rlimit
		if syscall.Getrlimit(l.resource, &limit) == nil {
			least = lesser(least, process("/", l.key, l.of, limit.Cur))
		}
	}
	return least
}
