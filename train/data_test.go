package train

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeIDX writes the two files of a split of grey images that are all black.
func writeIDX(t *testing.T, dir, split string, height, width int, labels ...byte) {
	t.Helper()
	file := func(name string, rank byte, extents []int, elements []byte) {
		data := []byte{0, 0, 8, rank}
		for _, e := range extents {
			data = binary.BigEndian.AppendUint32(data, uint32(e))
		}
		if err := os.WriteFile(filepath.Join(dir, split+name), append(data, elements...), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	n := len(labels)
	file("-labels-idx1-ubyte", 1, []int{n}, labels)
	file("-images-idx3-ubyte", 3, []int{n, height, width}, make([]byte, n*height*width))
}

// TestOpenDataComparesSplits: a test of other images, or of labels from 3 on where the training
// has 0 to 2, is refused before anything is trained. A test of fewer classes is none such.
func TestOpenDataComparesSplits(t *testing.T) {
	for _, c := range []struct {
		height, width int
		labels        []byte
		want          string // "": it is taken
	}{
		{7, 5, []byte{1, 0}, ""},
		{5, 7, []byte{1, 0}, "1×5×7 (channels×height×width) and the training images 1×7×5"},
		{7, 5, []byte{2, 3}, "test image 1 has the label 3, and the training images have 3 classes"},
	} {
		dir := t.TempDir()
		writeIDX(t, dir, "train", 7, 5, 0, 2, 1)
		writeIDX(t, dir, "t10k", c.height, c.width, c.labels...)
		_, err := OpenData(dir, 1, 0)
		if c.want == "" && err != nil {
			t.Error(err)
		}
		if bad := (InputError{}); c.want != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %v, want one of the input with %q", err, c.want)
		}
	}
}

// TestShuffledGoesRound: 7 indices of 3 hold every one twice before any a third time.
func TestShuffledGoesRound(t *testing.T) {
	got := shuffled(3, 7, 1)
	if len(got) != 7 {
		t.Fatalf("%d indices", len(got))
	}
	for _, pass := range [][]int32{got[:3], got[3:6]} {
		if sorted := slices.Sorted(slices.Values(pass)); !slices.Equal(sorted, []int32{0, 1, 2}) {
			t.Errorf("a pass is %v", pass)
		}
	}
}
