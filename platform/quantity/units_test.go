package quantity

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// 12.3 us is 12300 ns to the last bit, although 12.3·1000 in float64 is not:
// the exponent is added before the conversion.
func TestParseAddsExponents(t *testing.T) {
	if got, err := Nanoseconds.Parse("12.3 us"); err != nil || got != 12300 {
		t.Errorf("12.3 us = %v ns, %v", got, err)
	}
	if got, err := FlopsPerSec.Parse("60.8 GF/s"); err != nil || got != 60.8e9 {
		t.Errorf("60.8 GF/s = %v, %v", got, err)
	}
	if got, err := BytesPerSec.Parse("2 GiB/s"); err != nil || got != 2*1024*1024*1024 {
		t.Errorf("2 GiB/s = %v, %v", got, err)
	}
	if got, err := Joules.Parse("3 mJ"); err != nil || got != 0.003 {
		t.Errorf("3 mJ = %v, %v", got, err)
	}
}

func TestParseQuantityErrors(t *testing.T) {
	for text, want := range map[string]string{
		"24": `a unit is missing; write "24 W"`, "": "not a power", "W": "not a power", "NaN W": "not a power",
		"Inf W": "not a power", "1 w": `unknown unit "w"`, "-1 W": "cannot be negative", "-0 W": "cannot be negative",
		"1e30 W": "larger than", "1e400 W": "larger than", "1e401 W": "out of range", "1e99999999999 W": "out of range",
		"1.2.3 W": "not a number", "1 GB": `unknown unit "GB" for a power; write one of MW, kW, W`, "--1 W": "not a power",
		"1 " + strings.Repeat("x", 1000): "…",
	} {
		_, err := Watts.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a power of %.20q: %v; want an error with %q", text, err, want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("a power of %.20q: an error of %d bytes", text, len(err.Error()))
		}
	}
}

func TestFormatExamples(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bytes.Format(0), "0 B"}, {Bytes.Format(24e9), "24 GB"}, {Bytes.Format(1 << 20), "1 MiB"}, {Bytes.Format(999), "999 B"},
		{Bytes.Format(1500), "1.5 kB"}, {Bytes.Format(-1500), "-1.5 kB"}, {Nanoseconds.Format(12300), "12.3 us"},
		{Nanoseconds.Format(1e9), "1 s"}, {Watts.Format(0.25), "250 mW"}, {Watts.Format(1e-9), "0.001 uW"},
		{FlopsPerSec.Format(60.8e9), "60.8 GF/s"}, {BytesPerSec.Format(51.2e9), "51.2 GB/s"}, {Joules.Format(0.003), "3 mJ"},
		{Watts.Format(math.Inf(1)), "+Inf W"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// Whatever is written is read back as the same number.
func TestFormatIsLossless(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v := math.Ldexp(r.Float64(), r.IntN(140)-70)
		for _, s := range []*Scale{&BytesPerSec, &FlopsPerSec, &Flops, &Watts, &Joules} {
			text := s.Format(v)
			if back, err := s.Parse(text); err != nil || back != v {
				t.Fatalf("%v is written %q and read as %v, %v", v, text, back, err)
			}
		}
		n := float64(r.Int64N(1<<53+1) >> r.IntN(50))
		for _, s := range []*Scale{&Bytes, &Nanoseconds} {
			if back, err := s.Parse(s.Format(n)); err != nil || back != n {
				t.Fatalf("%v is written %q and read as %v, %v", n, s.Format(n), back, err)
			}
		}
	}
}

func FuzzParseQuantity(f *testing.F) {
	for _, s := range []string{"24 GB", "1e3 B", "-1 W", "1e400 W", ".5 us", "1e-400 ns", "5 µs", "e5 J", "+1 F/s", "1 GiB/s", "0x1p3 B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range []*Scale{&Bytes, &BytesPerSec, &FlopsPerSec, &Flops, &Watts, &Joules, &Nanoseconds} {
			v, err := s.Parse(text)
			if err != nil {
				continue
			}
			if !(v >= 0 && v <= s.max) {
				t.Errorf("%q is read as %g", text, v)
			}
			if back, err := s.Parse(s.Format(v)); err != nil || back != v {
				t.Errorf("%q is read as %g, written %q and read as %g, %v", text, v, s.Format(v), back, err)
			}
		}
	})
}

// A person writes a space before a unit or none, as in platform files, and times also in minutes and hours.
func TestParseTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2784.9 ms": 2784900 * time.Microsecond, "2784.9ms": 2784900 * time.Microsecond, " 12 us ": 12 * time.Microsecond, "5min": 5 * time.Minute,
		"5 min": 5 * time.Minute, "1h30m": 90 * time.Minute, "1 h 30 min": 90 * time.Minute, "-3 s": -3 * time.Second, "0": 0,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "ms", "3 lightyears", "1e300 h", "12 mm"} {
		if got, err := ParseTime(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// 40 GB are 40,000,000,000 bytes, and what has more digits is rounded to three. 5,120 bytes
// are exactly 5 KiB, but one text has one kind of units.
func TestShortBytes(t *testing.T) {
	for n, want := range map[int64]string{40_000_000_000: "40 GB", 41_553_859_200: "41.6 GB", 1_553_859_200: "1.55 GB", 127: "127 B", 0: "0 B", 9_996: "10 kB", 5_120: "5.12 kB", 999_600: "1 MB", 5e15: "5 PB"} {
		if got := ShortBytes(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
