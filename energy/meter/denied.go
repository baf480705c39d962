package meter

import "fmt"

// DeniedError says that this user lacks a right on the machine, and has the command to get it. It
// wraps the error of the system.
type DeniedError struct {
	Err   error
	What  string // "the counters are"
	Allow string // the command
}

func (e *DeniedError) Unwrap() error { return e.Err }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%v: %s for root only; run as root, or allow it until the next start with: %s", e.Err, e.What, e.Allow)
}
