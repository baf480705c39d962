package host

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Parker lets one thread sleep until another wakes it. A wake-up that comes first
// is kept.
//
// It is a futex rather than a channel. A wake-up of a goroutine with a thread of its own goes through
// two other threads of the Go scheduler. It took 110 µs here, and often 1.2 ms. The kernel wakes the
// thread itself in 31 µs (medians). Waiting is an ordinary system call, so the scheduler may give the
// processor to others meanwhile.
type Parker struct {
	woken atomic.Uint32
	limit unix.Timespec // of ParkFor; a field, since the argument of a system call would be allocated
}

const (
	futexWaitPrivate = 0 | 128 // FUTEX_WAIT | FUTEX_PRIVATE_FLAG of linux/futex.h
	futexWakePrivate = 1 | 128
)

// Park returns after a wake-up, and consumes it.
func (p *Parker) Park() {
	for !p.woken.CompareAndSwap(1, 0) {
		// Every outcome means the same, to look again: the thread was woken or interrupted, or
		// the value was no longer 0.
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.woken)), futexWaitPrivate, 0, 0, 0, 0)
	}
}

// ParkFor is Park for a limited time. It returns after a wake-up and consumes it, or returns
// after about d.
func (p *Parker) ParkFor(d time.Duration) {
	if p.woken.CompareAndSwap(1, 0) {
		return
	}
	p.limit = unix.NsecToTimespec(int64(d))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.woken)), futexWaitPrivate, 0, uintptr(unsafe.Pointer(&p.limit)), 0, 0)
	p.woken.Store(0)
}

// Wake ends the present park, or else the next one.
func (p *Parker) Wake() {
	if p.woken.Swap(1) == 0 {
		_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.woken)), futexWakePrivate, 1, 0, 0, 0)
	}
}
