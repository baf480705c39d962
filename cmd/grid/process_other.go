//go:build !linux

package grid

import "syscall"

// separateProcess is nothing: a process here outlives this one where it is killed, and a terminal's signals
// reach both.
func separateProcess() *syscall.SysProcAttr { return nil }
