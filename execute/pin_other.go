//go:build !linux

package execute

import "runtime"

// allowedCPUs counts the CPUs: this system has no affinity mask to read.
func allowedCPUs() []int { return countedCPUs(runtime.NumCPU()) }

// pinThread does nothing: this system does not bind threads to CPUs.
func pinThread(int) error { return nil }
