package data

import (
	"bytes"
	"dahl/must"
	"reflect"
	"slices"
	"testing"
)

func TestParseSynthetic(t *testing.T) {
	for spec, want := range map[string]Synthetic{
		"":                  {Shape: []int{1, 28, 28}, Samples: 1000, Classes: 10},
		"3x32x31":           {Shape: []int{3, 32, 31}, Samples: 1000, Classes: 10},
		"3x32x31:17":        {Shape: []int{3, 32, 31}, Samples: 17, Classes: 10},
		"3x360x270:17:7":    {Shape: []int{3, 360, 270}, Samples: 17, Classes: 7},
		"1x1x1:1:1":         {Shape: []int{1, 1, 1}, Samples: 1, Classes: 1},
		"17:5:3":            {Shape: []int{17}, Samples: 5, Classes: 3},
		"17x4:5:3:17":       {Shape: []int{17, 4}, Samples: 5, Classes: 3, Positions: []int{17}},
		"3x512x512:1000000": {Shape: []int{3, 512, 512}, Samples: 1_000_000, Classes: 10},
	} {
		if got, err := ParseSynthetic(spec); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", spec, got, err, want)
		}
	}
	for _, spec := range []string{"3x32x32x2x2", "3:2:3:4:5", "0x3x5", "-1x3x5", "3x3x99999999999", "axbxc", "3x3x5:", "3x3x5:0", "3x3x5:2:0", "3x3x5:2:3:4x0", "3X3X5", "3x3x5.5"} {
		wantError(t, "synthetic:"+spec, Options{}, spec, "write synthetic:3x32x32:1000:10")
	}
	// 2·10^9 samples are more than are taken; ten of them are few.
	wantError(t, "synthetic:3x5x7:2000000000", Options{}, "2000000000 samples; at most 67108864")
	if _, err := loaded("synthetic:3x5x7:2000000000", Options{Limit: 10, Offset: 1_999_999_000}); err != nil {
		t.Error(err)
	}
	// 65536^4 is 2^64, which is 0 in 64 bits.
	wantError(t, "synthetic:1x28x28:1000:10:65536x65536x65536x65536", Options{}, "labels: 1000 samples of 65536×65536×65536×65536 are more than")
	wantError(t, "digits:8x8", Options{}, "write digits")
}

// A class's images share a pattern, so the mean distance to an image of the same
// class, |noise−noise'|/2, is near 255/6 = 42.5; another class's pattern adds as
// much noise again: |x−x'|/2 with x the sum of two uniform numbers, 255·(7/15)/2
// = 59.5. The nearest-neighbour rule must therefore know the class.
func TestSyntheticCanBeLearned(t *testing.T) {
	train := must.Get(loaded("synthetic:3x11x13:101:7", Options{}))(t)
	test := must.Get(loaded("synthetic:3x11x13:101:7", Options{Split: Test}))(t)
	if digits := must.Get(Open("digits", Options{Limit: 1}))(t); !train.MadeUp() || digits.MadeUp() {
		t.Errorf("made up: %q, %v, and %q, %v", train.Source, train.MadeUp(), digits.Source, digits.MadeUp())
	}
	checkDataset(t, train)
	checkDataset(t, test)
	if bytes.Equal(train.Samples, test.Samples) || slices.Equal(train.Labels, test.Labels) {
		t.Error("the splits are equal")
	}
	const size = 3 * 11 * 13
	for i, label := range test.Labels {
		nearest, least := int32(-1), 1<<30
		for k, other := range train.Labels {
			if d := distance(test.Samples[i*size:(i+1)*size], train.Samples[k*size:(k+1)*size]); d < least {
				nearest, least = other, d
			}
		}
		if nearest != label {
			t.Errorf("test sample %d of class %d is nearest to class %d", i, label, nearest)
		}
	}
}

func distance(a, b []byte) int {
	sum := 0
	for i := range a {
		d := int(a[i]) - int(b[i])
		sum += max(d, -d)
	}
	return sum
}
