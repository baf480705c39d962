package data

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"dahl/must"
)

// cifarRecords makes records first, first+1, …: record i has class i mod 10 and
// pixel p is (7i + p) mod 256.
func cifarRecords(first, n int) []byte {
	var b []byte
	for i := first; i < first+n; i++ {
		b = append(b, byte(i%10))
		for p := range cifarPixels {
			b = append(b, byte(7*i+p))
		}
	}
	return b
}

// writeCIFAR writes training files of so many records.
func writeCIFAR(t testing.TB, dir string, sizes ...int) {
	t.Helper()
	first := 0
	for i, n := range sizes {
		writeFile(t, dir, fmt.Sprintf("data_batch_%d.bin", i+1), cifarRecords(first, n))
		first += n
	}
}

// The files follow each other in the order of their numbers, not of their names:
// with ten files data_batch_10 is the last.
func TestOpenCIFAR(t *testing.T) {
	dir := t.TempDir()
	writeCIFAR(t, dir, 2, 3, 1, 1, 1, 1, 1, 1, 1, 5)
	writeFile(t, dir, "test_batch.bin", cifarRecords(100, 3))
	writeFile(t, dir, "batches.meta.txt", []byte("airplane\n"))
	for _, test := range []struct {
		opt      Options
		first, n int
	}{
		{Options{}, 0, 17}, {Options{Offset: 1, Limit: 3}, 1, 3}, {Options{Offset: 4, Limit: 9}, 4, 9},
		{Options{Offset: 5}, 5, 12}, {Options{Limit: 5}, 0, 5}, {Options{Split: Test}, 100, 3},
	} {
		d := must.Get(loaded(dir, test.opt))(t)
		checkDataset(t, d)
		if d.Len() != test.n || !slices.Equal(d.Shape, []int{3, 32, 32}) || d.Classes != 10 || d.Divisor != 255 {
			t.Fatalf("%+v: %d images %v of %d classes", test.opt, d.Len(), d.Shape, d.Classes)
		}
		for i := range d.Len() {
			record := append([]byte{byte(d.Labels[i])}, d.Samples[i*cifarPixels:(i+1)*cifarPixels]...)
			if !bytes.Equal(record, cifarRecords(test.first+i, 1)) {
				t.Errorf("%+v: image %d is not record %d", test.opt, i, test.first+i)
			}
		}
	}
}

func TestCIFARRefuses(t *testing.T) {
	dir := t.TempDir()
	writeCIFAR(t, dir, 3, 2)
	wantError(t, dir, Options{Split: Test}, "no test split", "add test_batch.bin")
	remove(t, filepath.Join(dir, "data_batch_1.bin"))
	wantError(t, dir, Options{}, "no data_batch_1.bin", "add it")
	path := writeFile(t, dir, "data_batch_1.bin", cifarRecords(0, 2)[:5000])
	wantError(t, dir, Options{}, path, "5000 bytes", "3073")
	writeFile(t, dir, "data_batch_1.bin", nil)
	wantError(t, dir, Options{}, path, "0 bytes")
	bad := cifarRecords(0, 3)
	bad[2*cifarRecord] = 10
	writeFile(t, dir, "data_batch_1.bin", bad)
	wantError(t, dir, Options{Offset: 1}, path, "from record 1: record 1 has class 10")
	remove(t, filepath.Join(dir, "data_batch_1.bin"))
	remove(t, filepath.Join(dir, "data_batch_2.bin"))
	writeFile(t, dir, "test_batch.bin", cifarRecords(0, 1))
	wantError(t, dir, Options{}, "no train split")
}

func FuzzCIFAR(f *testing.F) {
	f.Add(cifarRecords(0, 2))
	f.Add(cifarRecords(7, 1)[:3000])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		labels, err := readRecords(bufio.NewReader(bytes.NewReader(raw)), len(raw)/cifarRecord)
		for i, label := range labels {
			if int(raw[i*cifarRecord]) != int(label) || label >= cifarClasses {
				t.Errorf("label %d is %d", i, label)
			}
		}
		if err == nil && len(labels) != len(raw)/cifarRecord {
			t.Errorf("%d records of %d bytes", len(labels), len(raw))
		}
	})
}
