package cli

import (
	"testing"
	"time"
)

// Numbers have three digits, and those that round up to a thousand no exponent.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ThreeDigits(12.345), "12.3"}, {ThreeDigits(999.4), "999"}, {ThreeDigits(999.6), "1000"}, {ThreeDigits(-41999.7), "-42000"},
		{ShortTime(999_600 * time.Nanosecond), "1000 us"}, {ShortTime(999_600 * time.Microsecond), "1000 ms"}, {ShortTime(1500 * time.Nanosecond), "1.5 us"}, {ShortTime(3599 * time.Second), "3599 s"}, {ShortTime(90 * time.Minute), "1.5 h"},
		{ShortCount(7), "7"}, {ShortCount(999.7), "1000"}, {ShortCount(25_100), "25.1 k"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
