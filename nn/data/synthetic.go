package data

import (
	"fmt"
	"strconv"
	"strings"

	"dahl/nn/random"
)

// Synthetic describes random samples. Each class has its own pattern. A sample is the mean of its
// class's pattern and noise, so that a network can learn it. A sample depends on the seed, the
// split and its index only.
type Synthetic struct {
	Shape   [3]int // C, H, W
	Samples int    // of each split
	Classes int
	Seed    uint64
}

// defaultSynthetic is the data set called "synthetic".
var defaultSynthetic = Synthetic{Shape: [3]int{1, 28, 28}, Samples: 1000, Classes: 10}

// ParseSynthetic reads the text after "synthetic:", CxHxW[:samples[:classes]]. Missing parts are
// those of 1x28x28:1000:10.
func ParseSynthetic(spec string) (Synthetic, error) {
	s := defaultSynthetic
	if spec == "" {
		return s, nil
	}
	usage := fmt.Errorf("%q is no shape; write synthetic:3x32x32:1000:10 for 1000 samples of 3×32×32 of 10 classes", spec)
	parts := strings.Split(spec, ":")
	extents := strings.Split(parts[0], "x")
	if len(parts) > 3 || len(extents) != 3 {
		return s, usage
	}
	targets := []*int{&s.Shape[0], &s.Shape[1], &s.Shape[2], &s.Samples, &s.Classes}
	for i, word := range append(extents, parts[1:]...) {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil || n < 1 {
			return s, usage
		}
		*targets[i] = int(n)
	}
	return s, nil
}

// Open makes the samples that the options select, unless they are for later.
func (s Synthetic) Open(opt Options) (*Dataset, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	d, err := s.open(opt)
	if err == nil && !opt.Later {
		err = d.hold()
	}
	return d, err
}

func (s Synthetic) open(opt Options) (*Dataset, error) {
	if s.Samples < 1 || s.Classes < 1 {
		return nil, fmt.Errorf("%d samples of %d classes; each is at least 1", s.Samples, s.Classes)
	}
	lo, hi, err := opt.window(s.Samples)
	if err != nil {
		return nil, err
	}
	if _, err := imageBytes(hi-lo, s.Shape); err != nil {
		return nil, err
	}
	d := &Dataset{
		Name:    fmt.Sprintf("synthetic %d×%d×%d", s.Shape[0], s.Shape[1], s.Shape[2]),
		Labels:  make([]int32, hi-lo),
		Shape:   s.Shape,
		Classes: s.Classes,
		Divisor: 255,
		Source:  fmt.Sprintf("synthetic, seed %d, samples %d to %d of %d", s.Seed, lo, hi-1, s.Samples),
	}
	labels := random.NewStream(s.Seed, "synthetic.labels."+opt.Split)
	for i := range d.Labels {
		d.Labels[i] = int32(labels.Below(uint64(lo+i), uint64(s.Classes)))
	}
	d.source = &syntheticImages{
		labels: d.Labels, lo: lo, size: d.SampleBytes(),
		pattern: random.NewStream(s.Seed, "synthetic.pattern"), noise: random.NewStream(s.Seed, "synthetic.noise."+opt.Split),
	}
	return d, nil
}

// syntheticImages makes samples when they are read, of which the first is sample lo.
type syntheticImages struct {
	labels         []int32
	lo, size       int
	pattern, noise random.Stream
}

func (s *syntheticImages) open() (imageReader, error) { return s, nil }
func (s *syntheticImages) Close() error               { return nil }

func (s *syntheticImages) readImages(dst []byte, first int) error {
	base := make([]byte, s.size)
	for ; len(dst) > 0; first++ {
		s.pattern.Fill(base, uint64(s.labels[first])*uint64(s.size))
		sample := dst[:s.size]
		s.noise.Fill(sample, uint64(s.lo+first)*uint64(s.size))
		for p := range sample {
			sample[p] = byte((int(base[p]) + int(sample[p])) / 2)
		}
		dst = dst[s.size:]
	}
	return nil
}
