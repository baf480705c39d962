package naming

import (
	"strconv"
	"strings"
)

// Count tells how many things there are: "1 step", "1,200 steps".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return Thousands(n) + " " + what
}

// ParseCount reads what [Count] writes, also without the space and the commas: "1,200 steps", "5nodes".
func ParseCount(text, what string) (n int, ok bool) {
	number, ok := strings.CutSuffix(strings.TrimSuffix(text, "s"), what)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(number), ",", ""))
	return n, err == nil
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

// OneLine joins the lines of an error, which errors.Join makes several of.
func OneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}
