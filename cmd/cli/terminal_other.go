//go:build !unix

package cli

import "os"

// terminalSize is 0, so that nothing is drawn: these systems have other calls.
func terminalSize(*os.File) (columns, rows int) { return 0, 0 }
