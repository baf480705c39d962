package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/nn/npz"
)

// arraysSuffix is the end of the names of archives of arrays.
const arraysSuffix = ".npz"

// openArrays opens an archive that has the samples of a split as x_train or x_test and their labels as y_train or y_test.
// The names of a training may be x and y. The samples are held in memory.
func openArrays(path string, opt Options) (*Dataset, error) {
	arrays, err := npz.Read(path, ofSplit(opt.Split))
	if err != nil {
		return nil, err
	}
	return fromArrays(path, arrays, opt)
}

// sampleArray and labelArray begin the names of arrays.
const sampleArray, labelArray = "x_", "y_"

// ofSplit is a check of arrays that leaves out all but the two of a split, and gives these their full names.
func ofSplit(split string) func(*npz.Array) error {
	return func(a *npz.Array) error {
		if split == Train && a.Name+"_" == sampleArray || split == Train && a.Name+"_" == labelArray {
			a.Name += "_" + split
		}
		if a.Name != sampleArray+split && a.Name != labelArray+split {
			return npz.ErrSkip
		}
		return nil
	}
}

// fromArrays makes a data set of the arrays of a split.
func fromArrays(path string, arrays []npz.Array, opt Options) (*Dataset, error) {
	var x, y *npz.Array
	for i := range arrays {
		if strings.HasPrefix(arrays[i].Name, sampleArray) {
			x = &arrays[i]
		} else {
			y = &arrays[i]
		}
	}
	xName, yName := sampleArray+opt.Split, labelArray+opt.Split
	switch {
	case x == nil && y == nil && opt.Split == Test:
		return nil, fmt.Errorf("no test split: %w; add %s and %s", ErrNoSplit, xName, yName)
	case x == nil || y == nil:
		return nil, fmt.Errorf("want the samples as array %s and their labels as %s (or x and y of a training alone)", xName, yName)
	case len(x.Shape) == 0 || len(y.Shape) == 0 || x.Shape[0] != y.Shape[0]:
		return nil, fmt.Errorf("%s has shape %v and %s %v; the first extent of both is the number of samples", x.Name, x.Shape, y.Name, y.Shape)
	case len(x.Shape) > maxRank+1:
		return nil, fmt.Errorf("%s has shape %v; a sample has at most %d dimensions", x.Name, x.Shape, maxRank)
	}
	lo, hi, err := opt.window(x.Shape[0])
	if err != nil {
		return nil, err
	}
	d := &Dataset{Name: filepath.Base(path), Shape: x.Shape[1:], Divisor: 255, Source: path}
	if len(d.Shape) == 0 {
		d.Shape = []int{1}
	}
	if err := checkSize(hi-lo, d.Shape); err != nil {
		return nil, err
	}
	if y.Len() == 0 || y.Len() > MaxSamples {
		return nil, fmt.Errorf("%s has %d labels; want 1 to %d", y.Name, y.Len(), MaxSamples)
	}
	if elements(y.Shape[1:]) > 1 {
		d.Positions = y.Shape[1:]
	}
	if err := d.takeSamples(x); err != nil {
		return nil, fmt.Errorf("array %s %w", x.Name, err)
	}
	d.Samples = d.Samples[lo*d.SampleBytes() : hi*d.SampleBytes()]
	labels, err := wholeNumbers(y, -1, maxClasses)
	if err != nil {
		return nil, fmt.Errorf("array %s %w", y.Name, err)
	}
	each := elements(d.Positions)
	d.Classes, d.Labels = int(slices.Max(labels))+1, labels[lo*each:hi*each]
	return d, nil
}

// takeSamples makes an array the samples of the set: bytes are pixels, and whole numbers tokens.
func (d *Dataset) takeSamples(x *npz.Array) error {
	d.Type, d.Samples = x.Type, x.Data
	switch x.Type {
	case dag.Uint8:
		return nil
	case dag.Float32, dag.Float64:
		if !x.IsFinite() {
			return errors.New("has numbers that are not finite")
		}
		return nil
	}
	tokens, err := wholeNumbers(x, 0, math.MaxInt32)
	d.Type, d.Samples = dag.Int32, make([]byte, 0, 4*len(tokens))
	for _, v := range tokens {
		d.Samples = binary.LittleEndian.AppendUint32(d.Samples, uint32(v))
	}
	return err
}

// wholeNumbers are the elements of an array, all of which have to be from the least to below a bound.
func wholeNumbers(a *npz.Array, least, below int) ([]int32, error) {
	if a.Type == dag.Float32 || a.Type == dag.Float64 {
		return nil, fmt.Errorf("has type %v; save it with astype(numpy.int32)", a.Type)
	}
	all := make([]int32, a.Len())
	for i, v := range a.Float64s() {
		if v < float64(least) || v >= float64(below) {
			return nil, fmt.Errorf("has %v; want whole numbers from 0 to %d", v, below-1)
		}
		all[i] = int32(v)
	}
	return all, nil
}

// Tokens is one more than the largest token of the set.
func (d *Dataset) Tokens() int {
	if d.OnlyRead() {
		return d.Classes
	}
	most := int32(0)
	for i := 0; i < len(d.Samples); i += 4 {
		most = max(most, int32(binary.LittleEndian.Uint32(d.Samples[i:])))
	}
	return int(most) + 1
}

// As is the set with its numbers in a type of floating point. Pixels and tokens stay as they are.
func (d *Dataset) As(t dag.DType) *Dataset {
	if d.Type == t || d.Type != dag.Float32 && d.Type != dag.Float64 {
		return d
	}
	from := npz.Array{Type: d.Type, Data: d.Samples}
	to := npz.NewArray("x", t, []int{from.Len()}, from.Float64s())
	as := *d
	as.Type, as.Samples = t, to.Data
	return &as
}
