package data

import (
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// Counts per class: of the test file as UCI's description (optdigits.names) lists
// them; of the training file as counted in the text by awk.
func TestDigits(t *testing.T) {
	for split, want := range map[string][]int{
		Train: {288, 307, 295, 300, 308, 307, 298, 307, 285, 304},
		Test:  {178, 182, 177, 183, 181, 182, 181, 179, 174, 180},
	} {
		d := must.Get(loaded("digits", Options{Split: split}))(t)
		checkDataset(t, d)
		count := make([]int, d.Classes)
		for _, label := range d.Labels {
			count[label]++
		}
		if !slices.Equal(count, want) {
			t.Errorf("%s: %d images per class, want %d", split, count, want)
		}
		if !slices.Equal(d.Shape, []int{1, 8, 8}) || d.Divisor != 16 || slices.Max(d.Samples) != 16 {
			t.Errorf("%s: shape %v, divisor %v, largest pixel %d", split, d.Shape, d.Divisor, slices.Max(d.Samples))
		}
	}
}

// The first test image is a nought; scikit-learn's documentation of load_digits,
// which holds the same images, prints its first rows.
func TestDigitsFirstTestImage(t *testing.T) {
	d := must.Get(loaded("digits", Options{Split: Test, Limit: 1}))(t)
	want := []byte{
		0, 0, 5, 13, 9, 1, 0, 0,
		0, 0, 13, 15, 10, 15, 5, 0,
		0, 3, 15, 2, 0, 11, 8, 0,
	}
	if d.Labels[0] != 0 || !slices.Equal(d.Samples[:24], want) {
		t.Errorf("class %d, rows %v; want class 0, %v", d.Labels[0], d.Samples[:24], want)
	}
}

func TestParseDigitsRefuses(t *testing.T) {
	row := func(pixel, class string) string { return strings.Repeat("3,", 63) + pixel + "," + class }
	for text, want := range map[string]string{
		"# comment\n1,2,3\n":        "line 2: 3 numbers",
		row("17", "4"):              "line 1: pixel 63 is 17",
		row("-1", "4"):              `line 1: "-1" is not`,
		row("300", "4"):             `line 1: "300" is not`,
		row("4", "10"):              "line 1: class 10",
		row("4", ""):                `line 1: "" is not`,
		row("4", "4") + "\n\nx":     "line 3: 1 numbers",
		strings.Repeat("1", 70_000): "too long",
	} {
		if _, _, err := parseDigits(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want one that says %q", text, err, want)
		}
	}
	images, labels, err := parseDigits(strings.NewReader("# comment\n" + row("16", "9") + "\n\n" + row("0", "0")))
	if err != nil || !slices.Equal(labels, []int32{9, 0}) || images[63] != 16 || images[127] != 0 {
		t.Errorf("labels %v, error %v", labels, err)
	}
}
