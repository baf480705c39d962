//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize is that of a terminal, where one does not know its own that of the oldest; 0: the file is
// none.
func terminalSize(f *os.File) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0, 0
	case size.Col == 0 || size.Row == 0:
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}
