package simd

// NoMaximum is the index of a window whose maximum a ReLU has cut off.
const NoMaximum = 255

// MaxPool takes the maxima of windows over pixels whose channels are contiguous. Window
// (u, v) has its pixels at rows u·Step + i and columns v·Step + j, i, j < Size:
//
//	Y[u·YRow + v·YPixel + c] = max_{i,j} X[(u·Step+i)·XRow + (v·Step+j)·XPixel + c]
//	Index[u·IndexRow + v·IndexPixel + c] = i·Size + j of the first maximum
//
// for u < Rows, v < Windows, c < Channels. NaN wins, and the first of several. With
// ReLU, Y is 0 and Index is [NoMaximum] where the maximum is at most 0; NaN stays. Y
// and Index must not overlap X.
type MaxPool[T Float] struct {
	Rows, Windows, Channels int // 0 rows are one
	Size, Step              int // of the window, at most 15; distance of windows

	Y     []T
	Index []uint8
	X     []T

	YRow, YPixel         int
	IndexRow, IndexPixel int
	XRow, XPixel         int

	ReLU bool
}

// Run computes the windows at a level.
func (p *MaxPool[T]) Run(l Level) {
	s := p.shape()
	s.check(len(p.X), len(p.Y), len(p.Index))
	if l == Go || !runMaxPool(l, &s, p) {
		p.runGo(s.rows)
	}
}

func (p *MaxPool[T]) shape() poolShape {
	return poolShape{
		max(p.Rows, 1), p.Windows, p.Channels, p.Size, p.Step,
		p.YRow, p.YPixel, p.IndexRow, p.IndexPixel, p.XRow, p.XPixel,
	}
}

// Unpool is the gradient of [MaxPool]. It hands each window's Y to the pixel that Index names,
// and to none if Index is [NoMaximum]:
//
//	X[(u·Step+i)·XRow + (v·Step+j)·XPixel + c] =
//		Y[u·YRow + v·YPixel + c] where Index[u·IndexRow + v·IndexPixel + c] = i·Size + j, else 0
//
// With Accumulate it adds that, as overlapping windows (Step < Size) need. Pixels outside the
// windows are not touched.
type Unpool[T Float] struct {
	Rows, Windows, Channels int // 0 rows are one
	Size, Step              int

	X     []T
	Y     []T
	Index []uint8

	YRow, YPixel         int
	IndexRow, IndexPixel int
	XRow, XPixel         int

	Accumulate bool
}

// Run computes the windows at a level.
func (p *Unpool[T]) Run(l Level) {
	s := p.shape()
	s.check(len(p.X), len(p.Y), len(p.Index))
	if p.Step < p.Size && !p.Accumulate {
		panic("simd: overlapping windows must accumulate")
	}
	if l == Go || !runUnpool(l, &s, p) {
		p.runGo(s.rows)
	}
}

func (p *Unpool[T]) shape() poolShape {
	return poolShape{
		max(p.Rows, 1), p.Windows, p.Channels, p.Size, p.Step,
		p.YRow, p.YPixel, p.IndexRow, p.IndexPixel, p.XRow, p.XPixel,
	}
}

// poolShape is extents and distances of a pooling.
type poolShape struct {
	rows, windows, channels int
	size, step              int
	yRow, yPixel            int
	indexRow, indexPixel    int
	xRow, xPixel            int
}

// check panics if an operand is shorter than the extents and distances say.
func (s *poolShape) check(x, y, index int) {
	if s.windows < 1 || s.channels < 1 || s.size < 1 || s.size > 15 || s.step < 1 {
		panic("simd: pooling without windows, or with windows beyond 15×15")
	}
	if s.yRow|s.yPixel|s.indexRow|s.indexPixel|s.xRow|s.xPixel < 0 {
		panic("simd: pooling with a negative distance")
	}
	u, v := s.rows-1, s.windows-1
	lastX := (u*s.step+s.size-1)*s.xRow + (v*s.step+s.size-1)*s.xPixel
	if lastX+s.channels > x || u*s.yRow+v*s.yPixel+s.channels > y || u*s.indexRow+v*s.indexPixel+s.channels > index {
		panic("simd: pooling reaches beyond an operand")
	}
}

// runGo is MaxPool in plain Go: each window's pixels one after the other, all channels
// of a pixel together.
func (p *MaxPool[T]) runGo(rows int) {
	for u := range rows {
		for v := range p.Windows {
			p.window(p.Y[u*p.YRow+v*p.YPixel:][:p.Channels],
				p.Index[u*p.IndexRow+v*p.IndexPixel:][:p.Channels],
				p.X[u*p.Step*p.XRow+v*p.Step*p.XPixel:])
		}
	}
}

func (p *MaxPool[T]) window(y []T, index []uint8, x []T) {
	copy(y, x)
	clear(index)
	for i := range p.Size {
		for j := range p.Size {
			position := uint8(i*p.Size + j)
			for c, e := range x[i*p.XRow+j*p.XPixel:][:len(y)] {
				if most := y[c]; e > most || e != e && most == most {
					y[c], index[c] = e, position
				}
			}
		}
	}
	if p.ReLU {
		for c, most := range y {
			if most <= 0 {
				y[c], index[c] = 0, NoMaximum
			}
		}
	}
}

// runGo is Unpool in plain Go.
func (p *Unpool[T]) runGo(rows int) {
	for u := range rows {
		for v := range p.Windows {
			p.window(p.Y[u*p.YRow+v*p.YPixel:][:p.Channels],
				p.Index[u*p.IndexRow+v*p.IndexPixel:][:p.Channels],
				p.X[u*p.Step*p.XRow+v*p.Step*p.XPixel:])
		}
	}
}

func (p *Unpool[T]) window(y []T, index []uint8, corner []T) {
	for i := range p.Size {
		for j := range p.Size {
			x := corner[i*p.XRow+j*p.XPixel:][:len(index)]
			position := uint8(i*p.Size + j)
			for c, at := range index {
				if !p.Accumulate {
					x[c] = 0
				}
				if at == position {
					x[c] += y[c]
				}
			}
		}
	}
}
