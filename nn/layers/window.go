package layers

import (
	"cmp"
	"fmt"

	"dahl/dag"
)

// Columns are the numbers of windows along columns, where they are others than along rows. 0 means as
// along rows.
type Columns struct{ Size, Stride, Dilation int }

// Pads are rows and columns of padding on single sides of an image, in addition to the padding of all sides.
type Pads struct{ Top, Left, Bottom, Right int }

// Window is how windows lie along one dimension: their taps and how far these are apart, how far the windows are, and
// what lies before and behind the image.
type Window struct{ Size, Dilation, Stride, Before, After int }

// windowsOf are the windows of a layer along rows and along columns. A stride or a dilation of 0 is 1.
func windowsOf(rows Columns, pad int, columns Columns, pads Pads) [2]Window {
	return [2]Window{
		{rows.Size, max(rows.Dilation, 1), max(rows.Stride, 1), pad + pads.Top, pad + pads.Bottom},
		{cmp.Or(columns.Size, rows.Size), max(cmp.Or(columns.Dilation, rows.Dilation), 1), max(cmp.Or(columns.Stride, rows.Stride), 1), pad + pads.Left, pad + pads.Right},
	}
}

// count is the number of positions of the window in an extent.
func (w Window) count(extent int) (int, error) {
	padded := extent + w.Before + w.After
	switch span := (w.Size-1)*w.Dilation + 1; {
	case min(w.Before, w.After) < 0 || max(w.Before, w.After) > MaxExtent:
		return 0, fmt.Errorf("pad %d; want 0 to %d", min(w.Before, w.After), MaxExtent)
	case w.Size < 1:
		return 0, fmt.Errorf("window %d, stride %d; want at least 1", w.Size, w.Stride)
	case w.Size > MaxExtent || w.Dilation > MaxExtent || span > padded:
		return 0, fmt.Errorf("window %d is larger than the input, %d with padding", span, padded)
	default:
		return (padded-span)/w.Stride + 1, nil
	}
}

// slid is the shape of an image of some channels that has one pixel for each window.
func slid(in []int, channels int, windows [2]Window) ([]int, error) {
	h, err := windows[0].count(in[1])
	if err != nil {
		return nil, err
	}
	w, err := windows[1].count(in[2])
	return []int{channels, h, w}, err
}

// windowParams are the parameters of an operation with these windows. What an operation knows by itself is
// left out, since the keys of measured times have all parameters.
func windowParams(windows [2]Window) dag.Params {
	rows, columns := windows[0], windows[1]
	number := func(name string, v int) dag.Param { return dag.Param{Name: name, Value: float64(v)} }
	p := dag.Params{number("stride", rows.Stride), number("top", rows.Before), number("left", columns.Before)}
	for _, o := range []struct {
		name         string
		value, known int
	}{{"column_stride", columns.Stride, rows.Stride}, {"dilation", rows.Dilation, 1}, {"column_dilation", columns.Dilation, rows.Dilation}} {
		if o.value != o.known {
			p = append(p, number(o.name, o.value))
		}
	}
	return p
}

// pair is a setting of rows and of columns.
func (s Settings) pair(key string) (rows, columns int) {
	all := s.list(key)
	if len(all) == 1 {
		return all[0], 0
	}
	return all[0], all[1]
}

// pads is a setting of all sides, of rows and columns, or of each side.
func (s Settings) pads(key string) (all int, more Pads) {
	switch p := s.list(key); len(p) {
	case 1:
		return p[0], Pads{}
	case 2:
		return 0, Pads{p[0], p[1], p[0], p[1]}
	default:
		return 0, Pads{p[0], p[1], p[2], p[3]}
	}
}
