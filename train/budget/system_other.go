//go:build !linux

package budget

// Available is unlimited: nothing is known of this system.
func Available() Limit { return unlimited }
