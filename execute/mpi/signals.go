//go:build mpi && linux

package mpi

import (
	"syscall"
	"unsafe"
)

// signalHandlers are the kernel's struct sigaction of signals 1 to 31.
type signalHandlers [32]struct{ handler, flags, restorer, mask uintptr }

func sigaction(signal int, set, old unsafe.Pointer) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), uintptr(set), uintptr(old), 8, 0, 0)
}

func saveHandlers() (h signalHandlers) {
	for i := 1; i < len(h); i++ {
		sigaction(i, nil, unsafe.Pointer(&h[i]))
	}
	return h
}

// toDefault gives a signal the default handler: MPICH's of SIGUSR1 would call Go's as a C function.
func (h *signalHandlers) toDefault(s syscall.Signal) {
	none := h[0]
	sigaction(int(s), unsafe.Pointer(&none), nil)
}

// restore gives Go back the signals that are panics. Some libraries take them. Other new handlers run on Go's
// signal stacks from now on, without which the runtime ends the process.
func (h *signalHandlers) restore() {
	const onStack = 0x08000000
	for i, now := range saveHandlers() {
		if now == h[i] || i == 0 {
			continue
		}
		now.flags |= onStack
		s := syscall.Signal(i)
		if now.handler == 0 || s == syscall.SIGSEGV || s == syscall.SIGBUS || s == syscall.SIGFPE || s == syscall.SIGILL {
			now = h[i]
		}
		sigaction(i, unsafe.Pointer(&now), nil)
	}
}
