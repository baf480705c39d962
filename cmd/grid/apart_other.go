//go:build !linux

package grid

import "syscall"

// apart is nothing: a process here outlives this one where it is killed, and a terminal's signals
// reach both.
func apart() *syscall.SysProcAttr { return nil }
