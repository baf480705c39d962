//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize returns the size of a terminal, and 80 by 24 where a terminal does not know its own. Zero
// means that the file is no terminal.
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
