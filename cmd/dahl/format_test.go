package main

import (
	"testing"
	"time"
)

// Numbers have three digits, and those that round up to a thousand no exponent.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{threeDigits(12.345), "12.3"}, {threeDigits(999.4), "999"}, {threeDigits(999.6), "1000"}, {threeDigits(-41999.7), "-42000"},
		{shortTime(999_600 * time.Nanosecond), "1000 us"}, {shortTime(999_600 * time.Microsecond), "1000 ms"}, {shortTime(1500 * time.Nanosecond), "1.5 us"},
		{shortBytes(999), "999 B"}, {shortBytes(999_600), "1000 kB"}, {shortBytes(1_234_567), "1.23 MB"}, {shortBytes(5e15), "5000 TB"},
		{shortCount(7), "7"}, {shortCount(999.7), "1000"}, {shortCount(25_100), "25.1 k"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
