package grid

import "syscall"

// apart is a process that a terminal's signals do not reach, since this one passes on that it is to
// end, and that the system kills when this one is gone.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
