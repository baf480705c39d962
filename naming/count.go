package naming

import "strconv"

// Count tells how many things there are: "1 step", "1,200 steps".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return Thousands(n) + " " + what
}

// Thousands writes a whole number with its digits in groups of three.
func Thousands(n int) string { return Grouped(strconv.Itoa(n)) }

// Grouped sets the digits of a whole number apart in groups of three.
func Grouped(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
