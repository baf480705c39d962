//go:build unix

package cli

import (
	"errors"

	"golang.org/x/sys/unix"
)

// leastFiles is how many files a command opens at once at least, beside those that it begins with. Two of them are Go's
// own, without which it ends with a trace.
const leastFiles = 8

// mayOpenFiles reports whether the process may open so many. It opens none by package os, for which Go opens its own.
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
