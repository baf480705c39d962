package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"dahl/naming"
	"dahl/platform/quantity"
)

// ThreeDigits prints a number with three significant digits, or those before the point.
func ThreeDigits(v float64) string {
	if math.Abs(v) >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// ShortTime prints a duration with three significant digits.
func ShortTime(d time.Duration) string {
	switch s := math.Abs(d.Seconds()); {
	case s >= 3600:
		return ThreeDigits(d.Hours()) + " h"
	case s >= 100:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case s >= 1:
		return ThreeDigits(d.Seconds()) + " s"
	case s >= 1e-3:
		return ThreeDigits(d.Seconds()*1e3) + " ms"
	case s >= 1e-6:
		return ThreeDigits(d.Seconds()*1e6) + " us"
	}
	return fmt.Sprintf("%d ns", d.Nanoseconds())
}

// ShortBytes prints a size with at most three significant digits.
func ShortBytes(n int64) string { return quantity.ShortBytes(n) }

// ShortCount prints a number with three significant digits and a decimal prefix.
func ShortCount(v float64) string {
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	for len(prefixes) > 1 && math.Abs(v) >= 1000 {
		v, prefixes = v/1000, prefixes[1:]
	}
	return strings.TrimSpace(ThreeDigits(v) + " " + prefixes[0])
}

// ShowTime prints seconds as ShortTime does.
func ShowTime(s float64) string { return ShortTime(Seconds(s)) }

// Seconds is a number of them as a duration.
func Seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// Ratio is a/b, and 0 where b is.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// WholeNumber prints a rate with commas, or three digits where it is below 100.
func WholeNumber(v float64) string {
	if v < 100 {
		return ThreeDigits(v)
	}
	return naming.Thousands(int(math.Round(v)))
}

// ShowShare prints a share such as an accuracy: "97.50 %".
func ShowShare(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }

// KilowattHours prints joules as electricity is paid for.
func KilowattHours(j float64) string { return ThreeDigits(j/3.6e6) + " kWh" }

// ShortJoules prints an energy with three significant digits.
func ShortJoules(j float64) string {
	for _, unit := range []string{"J", "mJ", "uJ"} {
		if math.Abs(j) >= 0.9995 || unit == "uJ" {
			return ThreeDigits(j) + " " + unit
		}
		j *= 1000
	}
	panic("cli: the smallest unit takes all")
}
