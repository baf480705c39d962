package npz

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// A header may promise anything; memory follows what is there. One chunk is 1 MiB.
func TestReadBytesAllocatesWhatIsThere(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadBytes(bytes.NewReader(make([]byte, 100)), 1<<40); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("error %v, want one that says truncated", err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d bytes were allocated for 100", got)
	}
	want := make([]byte, 5<<20+7) // grown several times
	r := rand.NewChaCha8([32]byte{})
	if _, err := r.Read(want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadBytes(bytes.NewReader(want), int64(len(want)))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back of %d, error %v", len(got), len(want), err)
	}
}
