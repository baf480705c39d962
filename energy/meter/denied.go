package meter

import "fmt"

// DeniedError says that this user may not use something of the machine, and which command allows it. It wraps
// the error of the system.
type DeniedError struct {
	Err   error
	What  string // "the counters are"
	Allow string // the command
}

func (e *DeniedError) Unwrap() error { return e.Err }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%v: %s for root only; run as root, or allow it until the next start with: %s", e.Err, e.What, e.Allow)
}
