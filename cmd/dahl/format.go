package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// threeDigits prints a number with three significant digits, or those before the point.
func threeDigits(v float64) string {
	if math.Abs(v) >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// shortTime prints a duration with three significant digits.
func shortTime(d time.Duration) string {
	switch s := math.Abs(d.Seconds()); {
	case s >= 100:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case s >= 1:
		return threeDigits(d.Seconds()) + " s"
	case s >= 1e-3:
		return threeDigits(d.Seconds()*1e3) + " ms"
	case s >= 1e-6:
		return threeDigits(d.Seconds()*1e6) + " us"
	}
	return fmt.Sprintf("%d ns", d.Nanoseconds())
}

// shortBytes prints a size with at most three significant digits, in decimal units.
func shortBytes(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if math.Abs(v) < 1000 {
			break
		}
		v, unit = v/1000, next
	}
	return threeDigits(v) + " " + unit
}

// shortCount prints a number with three significant digits and a decimal prefix.
func shortCount(v float64) string {
	unit := ""
	for _, next := range []string{"k", "M", "G", "T", "P", "E"} {
		if math.Abs(v) < 1000 {
			break
		}
		v, unit = v/1000, next
	}
	return strings.TrimSpace(threeDigits(v) + " " + unit)
}

// showTime prints seconds as shortTime does.
func showTime(s float64) string { return shortTime(seconds(s)) }

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
