package sqlite

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// TestRows reads a file that SQLite wrote (testdata/make.py), with tables of several pages and a text that goes on over further pages.
func TestRows(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/nsight.sqlite"))(t)
	d := must.Get(Open(bytes.NewReader(data), int64(len(data))))(t)
	want := []string{"StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS", "TARGET_INFO_GPU"}
	if got := d.Tables(); !slices.Equal(got, want) {
		t.Errorf("tables %v", got)
	}
	texts := map[int64]string{}
	must.Do(t, d.Rows("StringIds", []string{"VALUE", "id", "other"}, func(row []Value) error {
		texts[row[1].Int] = row[0].Text
		return nil
	}))
	if len(texts) != 5 || texts[1] != "cudaLaunchKernel_v7000" || texts[4] != "gemm<float, "+strings.Repeat("x", 700)+">" {
		t.Errorf("texts %v", texts)
	}
	// Kernels of step s begin at 1 s + 100 us s + 13 us + 9 us k and last 8 us.
	at := 0
	must.Do(t, d.Rows("CUPTI_ACTIVITY_KIND_KERNEL", []string{"start", "end", "streamId"}, func(row []Value) error {
		start := int64(1e9 + at/8*100_000 + 13_000 + at%8*9_000)
		if row[0].Int != start || row[1].Int != start+8_000 || row[2].Int != 7 {
			t.Errorf("kernel %d: %v", at, row)
		}
		at++
		return nil
	}))
	if at != 24 || !d.Has("TARGET_INFO_GPU", "totalMemory") || d.Has("TARGET_INFO_GPU", "color") || d.Has("color") {
		t.Errorf("%d kernels", at)
	}
	if err := d.Rows("color", nil, nil); err == nil {
		t.Error("a table that is not there has rows")
	}
}

// FuzzOpen: whatever comes, nothing is read beyond the file, and no circle of pages is followed.
func FuzzOpen(f *testing.F) {
	f.Add(must.Get(os.ReadFile("testdata/nsight.sqlite"))(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, name := range d.Tables() {
			d.Rows(name, []string{"start"}, func([]Value) error { return nil }) // an error is as good as rows
		}
	})
}
