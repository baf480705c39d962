//go:build unix

package cli

import (
	"errors"

	"golang.org/x/sys/unix"
)

// leastFiles is the least number of files that a command opens at once, not counting standard input, output and error.
// Without two of them, which the Go runtime opens, it ends with a trace.
const leastFiles = 8

// mayOpenFiles reports whether the process may open leastFiles files. It opens none by package os, for which Go opens
// its own.
func mayOpenFiles() bool {
	for range leastFiles {
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EMFILE) {
			return false
		}
		if err == nil {
			defer unix.Close(fd)
		}
	}
	return true
}
