package data

import (
	"fmt"
	"strconv"
	"strings"

	"dahl/naming"
	"dahl/nn/random"
)

// synthetic is the name of such data, and syntheticSource begins the text of their source.
const (
	synthetic       = "synthetic"
	syntheticSource = synthetic + ", seed"
)

// Synthetic describes random pixels. Each class has its own pattern. A sample is the mean of its
// class's pattern and noise, so that a network can learn it. A sample depends on the split and its index only.
type Synthetic struct {
	Shape   []int
	Samples int // of each split
	Classes int

	// Positions is the shape of the labels of one sample. Equal parts of the pixels have the patterns of its classes, one for
	// each position. Empty means one label.
	Positions []int
}

// maxRank is the most dimensions of a sample that a text may give.
const maxRank = 4

// ParseSynthetic reads the text after "synthetic:", SHAPE[:samples[:classes[:positions]]]. Missing parts are
// as in 1x28x28:1000:10, with one label for each sample.
func ParseSynthetic(spec string) (Synthetic, error) {
	s := Synthetic{Shape: []int{1, 28, 28}, Samples: 1000, Classes: 10}
	if spec == "" {
		return s, nil
	}
	usage := fmt.Errorf("%q is no shape; write synthetic:3x32x32:1000:10 for 1000 samples of 3×32×32 of 10 classes", spec)
	parts := strings.Split(spec, ":")
	if len(parts) > 4 {
		return s, usage
	}
	numbers := [][]int{s.Shape, {s.Samples}, {s.Classes}, nil}
	for i, part := range parts {
		numbers[i] = nil
		for word := range strings.SplitSeq(part, "x") {
			n, err := strconv.ParseInt(word, 10, 32)
			if err != nil || n < 1 {
				return s, usage
			}
			numbers[i] = append(numbers[i], int(n))
		}
		if most := []int{maxRank, 1, 1, maxRank}[i]; len(numbers[i]) > most {
			return s, usage
		}
	}
	s.Shape, s.Samples, s.Classes, s.Positions = numbers[0], numbers[1][0], numbers[2][0], numbers[3]
	return s, nil
}

func (s Synthetic) open(opt Options) (*Dataset, error) {
	lo, hi, err := opt.window(s.Samples)
	if err != nil {
		return nil, err
	}
	if err := checkSize(hi-lo, s.Shape); err != nil {
		return nil, err
	}
	if err := checkSize(hi-lo, s.Positions); err != nil { // before their product, which may overflow
		return nil, fmt.Errorf("labels: %w", err)
	}
	positions := elements(s.Positions)
	if hi-lo > MaxSamples/positions {
		return nil, fmt.Errorf("%d samples with labels of %s; at most %d labels are taken", hi-lo, naming.ShapeText(s.Positions), MaxSamples)
	}
	d := &Dataset{
		Name:      synthetic + " " + naming.ShapeText(s.Shape),
		Labels:    make([]int32, (hi-lo)*positions),
		Positions: s.Positions,
		Shape:     s.Shape,
		Classes:   s.Classes,
		Divisor:   255,
		Source:    fmt.Sprintf("%s 0, samples %d to %d of %d", syntheticSource, lo, hi-1, s.Samples),
	}
	labels := random.NewStream(0, "synthetic.labels."+opt.Split)
	for i := range d.Labels {
		d.Labels[i] = int32(labels.Below(uint64(lo*positions+i), uint64(s.Classes)))
	}
	d.source = &syntheticSamples{
		Dataset: d, lo: lo,
		pattern: random.NewStream(0, "synthetic.pattern"), noise: random.NewStream(0, "synthetic.noise."+opt.Split),
	}
	return d, nil
}

// MadeUp reports whether the samples are synthetic.
func (d *Dataset) MadeUp() bool { return strings.HasPrefix(d.Source, syntheticSource) }

// syntheticSamples makes samples when they are read, of which the first is sample lo.
type syntheticSamples struct {
	*Dataset
	lo             int
	pattern, noise random.Stream
}

// labelsOf are the labels of a sample, one for each position.
func (s *syntheticSamples) labelsOf(sample int) []int32 {
	n := elements(s.Positions)
	return s.Labels[sample*n : (sample+1)*n]
}

func (s *syntheticSamples) open() (reader, error) { return s, nil }
func (s *syntheticSamples) Close() error          { return nil }

func (s *syntheticSamples) readFrom(first int, dst []byte) error {
	size := s.SampleBytes()
	base := make([]byte, size)
	for ; len(dst) > 0; first++ {
		labels := s.labelsOf(first)
		for p, label := range labels {
			from, to := size*p/len(labels), size*(p+1)/len(labels)
			s.pattern.Fill(base[from:to], uint64(label)*uint64(size)+uint64(from))
		}
		sample := dst[:size]
		s.noise.Fill(sample, uint64(s.lo+first)*uint64(size))
		for p := range sample {
			sample[p] = byte((int(base[p]) + int(sample[p])) / 2)
		}
		dst = dst[size:]
	}
	return nil
}
