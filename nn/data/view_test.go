package data

import (
	"image/color"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/npz"
)

// TestPictures: pixels keep their levels, channels their colours, and numbers from 2 to 6 are stretched, so that 3 is a quarter of white.
func TestPictures(t *testing.T) {
	colours := &Dataset{Type: dag.Uint8, Shape: []int{3, 1, 2}, Labels: []int32{0, 0}, Samples: []byte{0, 0, 0, 0, 0, 0, 10, 20, 30, 40, 50, 60}}
	m := must.Get(colours.Pictures([]int32{1}))(t)[0]
	if got, want := [2]color.Color{m.At(0, 0), m.At(1, 0)}, [2]color.Color{color.RGBA{10, 30, 50, 255}, color.RGBA{20, 40, 60, 255}}; got != want {
		t.Errorf("pixels %v, want %v", got, want)
	}
	colours.Divisor = 100 // of which 10 is a tenth
	if got := must.Get(colours.Pictures([]int32{1}))(t)[0].At(0, 0); got != (color.RGBA{25, 76, 127, 255}) {
		t.Errorf("10, 30 and 50 of 100 are %v", got)
	}
	numbers := &Dataset{Type: dag.Float32, Shape: []int{1, 3, 1}, Labels: []int32{0}, Samples: npz.NewArray("x", dag.Float32, []int{3}, []float64{2, 3, 6}).Data}
	m = must.Get(numbers.Pictures([]int32{0}))(t)[0]
	for y, want := range []uint8{0, 63, 255} {
		if got := m.At(0, y); got != (color.RGBA{want, want, want, 255}) {
			t.Errorf("row %d is %v, want %d", y, got, want)
		}
	}
	for _, d := range []*Dataset{{Type: dag.Uint8, Shape: []int{2, 1, 1}}, {Type: dag.Uint8, Shape: []int{7}}, {Type: dag.Int32, Shape: []int{1, 1, 7}}} {
		if got := must.Get(d.Pictures([]int32{0}))(t); got != nil {
			t.Errorf("samples of shape %v and type %v are pictures", d.Shape, d.Type)
		}
	}
}
