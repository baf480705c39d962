package data

import (
	"cmp"
	"encoding/binary"
	"image"
	"image/color"
	"math"

	"dahl/dag"
)

// Pictures are samples as pictures for people, grey or in colours. Numbers are stretched from the least of the sample, black, to its
// greatest. There are none where samples are no images of one or three channels.
func (d *Dataset) Pictures(samples []int32) ([]image.Image, error) {
	if len(d.Shape) != 3 || d.Shape[0] != 1 && d.Shape[0] != 3 || d.Type == dag.Int32 {
		return nil, nil
	}
	raw := make([]byte, len(samples)*d.SampleBytes())
	if err := d.Read(raw, samples); err != nil {
		return nil, err
	}
	all := make([]image.Image, len(samples))
	for i := range all {
		all[i] = d.picture(raw[i*d.SampleBytes():][:d.SampleBytes()])
	}
	return all, nil
}

// picture is the pixels of a sample.
func (d *Dataset) picture(raw []byte) image.Image {
	channels, high, wide := d.Shape[0], d.Shape[1], d.Shape[2]
	values := make([]float64, channels*high*wide)
	least, most := 0.0, cmp.Or(d.Divisor, 255)
	for i := range values {
		switch d.Type {
		case dag.Float32:
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		case dag.Float64:
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
		default:
			values[i] = float64(raw[i])
		}
	}
	if d.Type != dag.Uint8 {
		least, most = math.Inf(1), math.Inf(-1)
		for _, v := range values {
			least, most = min(least, v), max(most, v)
		}
	}
	m := image.NewRGBA(image.Rect(0, 0, wide, high))
	level := func(channel, y, x int) uint8 {
		return uint8(255 * min(1, (values[(channel%channels*high+y)*wide+x]-least)/max(most-least, math.SmallestNonzeroFloat64)))
	}
	for y := range high {
		for x := range wide {
			m.SetRGBA(x, y, color.RGBA{level(0, y, x), level(1, y, x), level(2, y, x), 255})
		}
	}
	return m
}
