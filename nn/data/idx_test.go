package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// idx is a file of bytes of those extents that counts 0, 1, 2, … modulo m.
func idx(m int, extents ...int) []byte {
	b := []byte{0, 0, 8, byte(len(extents))}
	n := 1
	for _, e := range extents {
		b = binary.BigEndian.AppendUint32(b, uint32(e))
		n *= e
	}
	for i := range n {
		b = append(b, byte(i%m))
	}
	return b
}

func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(w.Write(data))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

// writeIDX writes n images and labels of 7 classes; one channel has rank 3.
func writeIDX(t testing.TB, dir, prefix string, shape [3]int, n int, zipped bool) {
	t.Helper()
	extents, rank := []int{n, shape[1], shape[2]}, "3"
	if shape[0] > 1 {
		extents, rank = []int{n, shape[0], shape[1], shape[2]}, "4"
	}
	images, labels, ext := idx(251, extents...), idx(7, n), ""
	if zipped {
		images, labels, ext = gz(t, images), gz(t, labels), ".gz"
	}
	writeFile(t, dir, prefix+"-images-idx"+rank+"-ubyte"+ext, images)
	writeFile(t, dir, prefix+"-labels-idx1-ubyte"+ext, labels)
}

// Byte p of image i is (i·C·H·W + p) mod 251, label i is i mod 7.
func TestOpenIDX(t *testing.T) {
	for _, test := range []struct {
		prefix, split string
		shape         [3]int
		zipped        bool
	}{
		{"train", Train, [3]int{1, 5, 3}, false}, {"train", "", [3]int{1, 5, 3}, true},
		{"train10k", Train, [3]int{1, 3, 2}, true}, {"t10k", Test, [3]int{1, 5, 3}, true},
		{"test", Test, [3]int{3, 5, 2}, false},
	} {
		dir := t.TempDir()
		writeFile(t, dir, "scheduling/notes.csv", nil)
		writeIDX(t, dir, test.prefix, test.shape, 13, test.zipped)
		d := must.Get(loaded(dir, Options{Split: test.split, Limit: 11, Offset: 1}))(t)
		checkDataset(t, d)
		if !slices.Equal(d.Shape, test.shape[:]) || d.Classes != 7 || d.Divisor != 255 || d.Len() != 11 || !strings.Contains(d.Source, test.prefix) {
			t.Errorf("%+v: %d images %v of %d classes from %s", test, d.Len(), d.Shape, d.Classes, d.Source)
		}
		size := test.shape[0] * test.shape[1] * test.shape[2]
		for i, label := range d.Labels {
			if int(label) != (i+1)%7 {
				t.Errorf("%+v: label %d is %d", test, i, label)
			}
			for p, b := range d.Samples[i*size : (i+1)*size] {
				if int(b) != ((i+1)*size+p)%251 {
					t.Fatalf("%+v: byte %d of image %d is %d", test, p, i, b)
				}
			}
		}
	}
}

func TestIDXFilesOfASplit(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, "train-images-idx3-ubyte")
	writeIDX(t, dir, "train", [3]int{1, 5, 3}, 13, false)
	wantError(t, dir, Options{Split: Test}, "no test split", "t10k-images-idx3-ubyte")
	writeIDX(t, dir, "train10k", [3]int{1, 5, 3}, 13, true)
	wantError(t, dir, Options{}, images, "train10k-images-idx3-ubyte.gz", "keep one")
	remove(t, filepath.Join(dir, "train10k-labels-idx1-ubyte.gz"))
	wantError(t, dir, Options{}, "train10k-images", "not the labels", "train10k-labels-idx1-ubyte")
	remove(t, filepath.Join(dir, "train10k-images-idx3-ubyte.gz"))
	writeFile(t, dir, "train.labels", nil) // not one of the names
	if _, err := loaded(dir, Options{}); err != nil {
		t.Error(err)
	}
	remove(t, images)
	wantError(t, dir, Options{}, "train-labels", "not the images", "train-images-idx3-ubyte")
	writeFile(t, dir, "train-images.idx3-ubyte", idx(251, 13, 5, 3)) // another usual spelling
	if _, err := loaded(dir, Options{}); err != nil {
		t.Error(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	must.Do(t, os.Remove(path))
}

// oneHugeImage: extents 65536×65539 are 4295163904 pixels, the file has 13·5·3.
// All 13 images would be refused by their size.
const oneHugeImage = "truncated: 195 bytes where 4295163904"

func TestIDXRefuses(t *testing.T) {
	good := idx(251, 13, 5, 3)
	change := func(at int, b ...byte) []byte {
		file := bytes.Clone(good)
		copy(file[at:], b)
		return file
	}
	zipped := gz(t, good)
	tests := []struct {
		images []byte
		want   string
	}{
		{nil, "truncated: 0 bytes where 4 should be"},
		{good[:2], "truncated: 2 bytes where 4"},
		{good[:9], "truncated: 5 bytes where 12"},
		{good[:len(good)-1], "truncated: 194 bytes where 195"}, // 13·5·3 = 195
		{append(bytes.Clone(good), 0), "more bytes than its header says"},
		{[]byte("P5 28 28 255"), "no IDX file"},
		{change(2, 0x0d), "element type 0x0d"},
		{change(3, 1), "rank 1; images have rank 3 or 4"},
		{change(4, 0, 0, 0, 12), "holds 12 images, but there are 13 labels"},
		{change(8, 0, 0, 0, 0), "extent 1 of the header is 0"},
		{change(8, 0xff), "extent 1 of the header is 4278190085"}, // 0xff000005
		{change(8, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff), "more than 16 GiB"},
		{change(8, 0, 1, 0, 0, 0, 1), oneHugeImage},
		{zipped[:len(zipped)/2], "train-images"},
		{[]byte{0x1f, 0x8b, 0, 0}, "train-images"},
	}
	for _, test := range tests {
		dir := t.TempDir()
		writeFile(t, dir, "train-labels-idx1-ubyte", idx(7, 13))
		path := writeFile(t, dir, "train-images-idx3-ubyte", test.images)
		opt := Options{}
		if test.want == oneHugeImage {
			opt.Limit = 1
		}
		wantError(t, dir, opt, path, test.want)
	}
}

func TestIDXLabelsRefuse(t *testing.T) {
	good := idx(7, 13)
	for want, labels := range map[string][]byte{
		"truncated: 12 bytes where 13":            good[:len(good)-1],
		"more bytes than its header says":         append(bytes.Clone(good), 1),
		"rank 3; labels have rank 1":              idx(251, 13, 5, 3),
		"truncated: 13 bytes where 65549":         append([]byte{0, 0, 8, 1, 0, 1, 0, 13}, good[8:]...), // 2^16 + 13
		"67108865 labels; at most 67108864":       append([]byte{0, 0, 8, 1, 4, 0, 0, 1}, good[8:]...),  // 2^26 + 1
		"holds 13 images, but there are 5 labels": idx(7, 5),
	} {
		dir := t.TempDir()
		writeIDX(t, dir, "train", [3]int{1, 5, 3}, 13, false)
		writeFile(t, dir, "train-labels-idx1-ubyte", labels)
		wantError(t, dir, Options{}, dir, want)
	}
	dir := t.TempDir()
	writeIDX(t, dir, "train", [3]int{1, 5, 3}, 13, false)
	writeFile(t, dir, "train-images-idx3-ubyte", idx(251, 13, 5, 3)[:100])
	wantError(t, dir, Options{Offset: 12}, "truncated: ends 96 bytes before") // 12·15 − (100 − 16)
}

func FuzzIDX(f *testing.F) {
	good := idx(251, 5, 3, 2)
	f.Add(good, 5, 0, 5)
	f.Add(good, 5, 2, 3)
	f.Add(good[:20], 5, 4, 5)
	f.Add(gz(f, good), 5, 0, 5)
	f.Add(idx(7, 13), 13, 0, 13)
	f.Add([]byte{0, 0, 8, 1, 0x7f, 0xff, 0xff, 0xff}, 13, 0, 13)
	f.Add([]byte{0, 0, 8, 3, 0, 0, 0, 5, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff}, 5, 0, 5)
	f.Fuzz(func(t *testing.T, file []byte, n, lo, hi int) {
		r, _, err := gunzip(bytes.NewReader(file))
		if err != nil {
			return
		}
		raw, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil {
			return
		}
		if labels, err := readIDXLabels(bytes.NewReader(raw)); err == nil && len(labels) != len(raw)-8 {
			t.Errorf("%d labels in a file of %d bytes", len(labels), len(raw))
		}
		if lo < 0 || lo >= hi || hi > n {
			return // window makes no such range
		}
		path := writeFile(t, t.TempDir(), "images", raw)
		x := &idxImages{path: path, n: n, lo: lo, hi: hi}
		shape, err := x.readShape()
		if err != nil {
			return
		}
		images := make([]byte, (hi-lo)*shape[0]*shape[1]*shape[2]) // the file holds as many
		if err := x.fill(images); err != nil || !bytes.Contains(raw, images) {
			t.Errorf("%d to %d of %d images of %v: %v", lo, hi, n, shape, err)
		}
	})
}
