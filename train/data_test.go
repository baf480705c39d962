package train

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/files"
	"dahl/nn/layers"
)

// writeIDX writes the two files of a split of grey samples that are all black.
func writeIDX(t *testing.T, dir, split string, height, width int, labels ...byte) {
	t.Helper()
	file := func(name string, rank byte, extents []int, elements []byte) {
		data := []byte{0, 0, 8, rank}
		for _, e := range extents {
			data = binary.BigEndian.AppendUint32(data, uint32(e))
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, split+name), append(data, elements...), 0o666))
	}
	n := len(labels)
	file("-labels-idx1-ubyte", 1, []int{n}, labels)
	file("-images-idx3-ubyte", 3, []int{n, height, width}, make([]byte, n*height*width))
}

// TestOpenDataComparesSplits: a test of other samples, or of labels from 3 on where the training
// has 0 to 2, is refused before anything is trained. A test of fewer classes is none such.
func TestOpenDataComparesSplits(t *testing.T) {
	for _, c := range []struct {
		height, width int
		labels        []byte
		want          string // "": it is taken
	}{
		{7, 5, []byte{1, 0}, ""},
		{5, 7, []byte{1, 0}, "1×5×7 (channels×height×width) and the training samples 1×7×5"},
		{7, 5, []byte{2, 3}, "test sample 1 has the label 3, and the training samples have 3 classes"},
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

// TestFitONNX: what an ONNX file says of its input and its output is compared with the data, in the words of the file. The network of
// tied.onnx has an input x of N×1×2×2 and an output o of 4 numbers.
func TestFitONNX(t *testing.T) {
	m := must.Get(files.LoadModel("../nn/testdata/tied.onnx"))(t)
	for _, c := range []struct {
		shape   []int
		classes int
		err     string
	}{
		{[]int{1, 2, 2}, 4, ""},
		{[]int{1, 2, 2}, 3, ""},
		{[]int{1, 8, 24}, 4, `tied.onnx: the input "x" of the file is N×1×2×2, and the samples of the data d are 1×8×24 (channels×height×width); take other data or export the network for these`},
		{[]int{1, 1, 4}, 4, `the input "x" of the file is N×1×2×2, and the samples of the data d are 1×1×4`},
		{[]int{1, 2, 2}, 10, `tied.onnx: the output "o" of the file is N×4, and the data d have 10 classes; take other data or export the network for these`},
	} {
		_, err := Fit(m, &data.Dataset{Name: "d", Labels: []int32{0}, Shape: c.shape, Classes: c.classes})
		bad := InputError{}
		if c.err == "" && err != nil || c.err != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%v, %d classes: error %v, want %q", c.shape, c.classes, err, c.err)
		}
	}
}

// TestFitOutputs: a network fits its last layer to the classes of the data, of which there are at
// least two. One that a file describes keeps its outputs, which may not be fewer.
func TestFitOutputs(t *testing.T) {
	const file = "name = \"m\"\ninput = [1, 8, 8]\n[[layer]]\nkind = \"flatten\"\n[[layer]]\nkind = \"dense\"\noutputs = 7\n"
	written := must.Get(files.ParseModel([]byte(file), "m.toml"))(t)
	built := must.Get(nn.New("m", []int{1, 8, 8}, layers.Flatten{}, layers.Dense{Outputs: 7}))(t)
	for _, c := range []struct {
		m       *nn.Model
		classes int
		want    int
		err     string
	}{
		{built, 10, 10, ""}, {built, 5, 7, ""}, {written, 7, 7, ""}, {written, 5, 7, ""},
		{written, 10, 0, "m.toml:7: the last layer has 7 outputs and the data d have 10 classes; write outputs = 10"},
		{built, 1, 0, "data d: all samples have the label 0, one class: nothing to learn"},
	} {
		m, err := Fit(c.m, &data.Dataset{Name: "d", Labels: []int32{0}, Shape: []int{1, 8, 8}, Classes: c.classes})
		bad := InputError{}
		switch {
		case c.err == "" && (err != nil || m.Classes() != c.want):
			t.Errorf("%d classes: %v, want %d outputs", c.classes, err, c.want)
		case c.err != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%d classes: error %v, want one of the input with %q", c.classes, err, c.err)
		}
	}
	if got := DefaultData(written); got != "synthetic:1x8x8:2000:7" {
		t.Errorf("by default it is trained on %s", got)
	}
}

// TestOneClass: samples of one class teach nothing, whatever its number. With a limit they may be
// the first of several classes.
func TestOneClass(t *testing.T) {
	dir := t.TempDir()
	writeIDX(t, dir, "train", 7, 5, 3, 3, 3)
	if _, err := OpenData(dir, 0, 0); err == nil || !strings.Contains(err.Error(), "the label 3, one class: nothing to learn") {
		t.Errorf("images of one class: %v", err)
	}
	if _, err := OpenData(dir, 1, 0); err != nil {
		t.Errorf("the first sample: %v", err)
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
