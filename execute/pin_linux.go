package execute

import "golang.org/x/sys/unix"

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

// pinThread binds the calling thread to one CPU.
func pinThread(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}
