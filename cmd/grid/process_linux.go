package grid

import "syscall"

// separateProcess makes a child process that the signals of a terminal do not reach: this process
// passes them on. The system kills the child when this process is gone.
func separateProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
