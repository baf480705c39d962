package data

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// kindsOfData writes 13 images or so of every format and returns the names of the data.
func kindsOfData(t *testing.T) map[string]string {
	t.Helper()
	plain, zipped, cifar, pictures := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	writeIDX(t, plain, "train", [3]int{3, 5, 2}, 13, false)
	writeIDX(t, zipped, "train", [3]int{1, 5, 3}, 13, true)
	writeCIFAR(t, cifar, 7, 3, 5)
	for i := range 13 {
		writePNG(t, pictures, filepath.Join([]string{"a", "b", "c"}[i%3], string(rune('k'+i))+".png"), 5, 7, byte(i))
	}
	return map[string]string{"plain": plain, "zipped": zipped, "cifar": cifar, "pictures": pictures, "synthetic": "synthetic:2x3x5:13:7", "digits": "digits"}
}

// TestReadLater: whatever the format, images that are read later are those that are loaded, in any
// order, with neighbours and repetitions, and all of them in one stream.
func TestReadLater(t *testing.T) {
	for kind, name := range kindsOfData(t) {
		opt := Options{Offset: 2, Limit: 7}
		all := must.Get(loaded(name, opt))(t)
		d := must.Get(Open(name, opt))(t)
		if (d.Samples == nil) != (kind != "digits") || !slices.Equal(d.Labels, all.Labels) || d.Bytes() != int64(len(all.Samples)) {
			t.Errorf("%s: %d bytes are loaded, labels %v, %d bytes in all; want labels %v, %d bytes", kind, len(d.Samples), d.Labels, d.Bytes(), all.Labels, len(all.Samples))
		}
		size := d.SampleBytes()
		samples := []int32{5, 6, 0, 1, 2, 2, 4}
		got := make([]byte, len(samples)*size)
		if err := d.Read(got, samples); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for i, s := range samples {
			if !bytes.Equal(got[i*size:][:size], all.Samples[int(s)*size:][:size]) {
				t.Errorf("%s: image %d of %v is another", kind, i, samples)
			}
		}
		var stream bytes.Buffer
		if n, err := d.WriteTo(&stream); err != nil || n != d.Bytes() || !bytes.Equal(stream.Bytes(), all.Samples) {
			t.Errorf("%s: %d bytes in one stream, error %v; want the %d that are loaded", kind, n, err, len(all.Samples))
		}
		if kind == "zipped" {
			if left, err := filepath.Glob(filepath.Join(name, ".*")); err != nil || len(left) > 0 {
				t.Errorf("%s: %v are left, error %v", kind, left, err)
			}
		}
	}
}

// TestDataChangeWhileRead: what happens to the files while they are read is one line with the file.
func TestDataChangeWhileRead(t *testing.T) {
	for _, c := range []struct {
		kind, file string
		change     func(path string) error
		want       string
	}{
		{"plain", "train-images-idx4-ubyte", os.Remove, "no such file"},
		{"plain", "train-images-idx4-ubyte", func(path string) error { return os.Truncate(path, 100) }, "100 bytes, and 410 when"}, // 4·5 + 13·3·5·2
		{"plain", "train-images-idx4-ubyte", func(path string) error { return os.Truncate(path, 1000) }, "1000 bytes, and 410 when"},
		{"zipped", "train-images-idx3-ubyte.gz", os.Remove, "no such file"},
		{"zipped", "train-images-idx3-ubyte.gz", func(path string) error { return os.Truncate(path, 40) }, "decompress it with gunzip"},
		{"cifar", "data_batch_2.bin", func(path string) error { return os.Truncate(path, 3073) }, "3073 bytes, and 9219 when"}, // 3·3073
		{"pictures", "b/l.png", func(path string) error { return os.Truncate(path, 60) }, "replace the file"},
		{"pictures", "b/l.png", os.Remove, "no such file"},
	} {
		dir := kindsOfData(t)[c.kind]
		d, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, c.file)
		must.Do(t, c.change(path))
		if _, err = d.WriteTo(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want a line with %s and %q", c.kind, err, path, c.want)
		}
	}
}

// TestZippedPromisesTooMuch: a compressed file of some bytes holds no more than 1,032 times as many.
func TestZippedPromisesTooMuch(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "train-labels-idx1-ubyte", idx(7, 13))
	header := idx(251, 13, 5, 3)[:16]
	header[9], header[13] = 0xff, 0xff // 16,711,685 rows of 16,711,683 columns
	writeFile(t, dir, "train-images-idx3-ubyte", gz(t, header))
	wantError(t, dir, Options{Limit: 1}, "train-images-idx3-ubyte", fmt.Sprintf("its %d bytes cannot hold the %d", len(gz(t, header)), 16711685*16711683))
}
