package platform

import (
	"testing"
	"time"

	"dahl/platform/tomlfile"
)

// quoted reads a table with one key, x.
func quoted(text string) *form {
	return &form{in: &tomlfile.Table{File: &tomlfile.File{}, Keys: map[string]any{"x": text}}}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0 B": 0, "24 GB": 24_000_000_000, "1.5kB": 1500, " 32 MiB ": 32 << 20, "0.5 KiB": 512,
		"1e3 B": 1000, "1e-3 MB": 1000, "9007199254740992 B": 1 << 53, "2.5E1 kB": 25_000,
	} {
		f, got := quoted(text), int64(0)
		if f.size("x", &got); got != want || f.in.File.Err != nil {
			t.Errorf("%q = %d, %v; want %d", text, got, f.in.File.Err, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"1.5 µs": 1500, "0.3 us": 300, "0.4 ns": 0, "0.5 ns": 1, "2 s": 2e9} {
		f, got := quoted(text), time.Duration(0)
		if f.duration("x", &got); got != want || f.in.File.Err != nil {
			t.Errorf("%q = %d ns, %v; want %d", text, got, f.in.File.Err, want)
		}
	}
}

func TestParseWholeBytes(t *testing.T) {
	for _, text := range []string{"1.5 B", "0.1 KiB", "1e-9 kB", "9.1 PB"} {
		f, got := quoted(text), int64(0)
		if f.size("x", &got); f.in.File.Err == nil {
			t.Errorf("%q is a number of bytes; want an error", text)
		}
	}
}
