//go:build cuda

package cuda

import "errors"

// ErrNoDevice is wrapped by the errors of a machine without a GPU.
var ErrNoDevice = errors.New("no CUDA device")

// Error is a failed call of the driver.
type Error struct {
	Call string // as CUDA names it
	Code int
	Name string // CUDA's name of the code
}

func (e *Error) Error() string { return e.Call + ": " + e.Name }

// Codes that callers tell apart.
const (
	codeOutOfMemory       = 2
	codeNotReady          = 600
	codeAlreadyRegistered = 712
)

// OutOfMemory reports that the device's memory did not suffice.
func (e *Error) OutOfMemory() bool { return e.Code == codeOutOfMemory }

// outOfMemory is the driver's error for a library's call, since libraries name it differently.
func outOfMemory(call, name string) *Error {
	return &Error{Call: call, Code: codeOutOfMemory, Name: name}
}

// Lost reports that the context cannot be used any more. CUDA's documentation says so of these
// codes, and every later call repeats them.
func (e *Error) Lost() bool {
	switch e.Code {
	case 46, // DEVICE_UNAVAILABLE
		214, 220, // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE
		226,      // CONTAINED: a fault of a peer's memory or of the hardware, since CUDA 12.8
		700, 702, // ILLEGAL_ADDRESS, LAUNCH_TIMEOUT
		709, 710, // CONTEXT_IS_DESTROYED, ASSERT
		714, 715, 716, 717, 718, 719, // HARDWARE_STACK_ERROR … LAUNCH_FAILED
		999: // UNKNOWN
		return true
	}
	return false
}
