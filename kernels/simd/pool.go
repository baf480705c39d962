package simd

// NoMaximum is the index of a window whose maximum a ReLU has cut off.
const NoMaximum = 255

// MaxPool takes the maxima of one row of windows over pixels whose channels are
// contiguous. Window v has its pixels at rows i and columns v·Step + j, i, j < Size:
//
//	Y[v·YPixel + c] = max_{i,j} X[i·XRow + (v·Step+j)·XPixel + c]     v < Windows, c < Channels
//	Index[v·IndexPixel + c] = i·Size + j of the first maximum
//
// NaN wins, and the first of several. With ReLU, Y is 0 and Index is [NoMaximum]
// where the maximum is at most 0; NaN stays. Y and Index must not overlap X.
type MaxPool[T Float] struct {
	Windows, Channels int
	Size, Step        int // of the window, at most 15; distance of windows

	Y                  []T
	Index              []uint8
	X                  []T
	XRow, XPixel       int
	YPixel, IndexPixel int

	ReLU bool
}

// Run computes the row at a level.
func (p *MaxPool[T]) Run(l Level) {
	checkPool(p.Windows, p.Channels, p.Size, p.Step, len(p.X), p.XRow, p.XPixel, len(p.Y), p.YPixel, len(p.Index), p.IndexPixel)
	p.runGo()
}

// Unpool is the gradient of [MaxPool]: it hands each window's Y to the pixel that
// Index names, and to none where it is [NoMaximum]:
//
//	X[i·XRow + (v·Step+j)·XPixel + c] = Y[v·YPixel+c] where Index[v·IndexPixel+c] = i·Size + j, else 0
//
// or adds that with Accumulate, which windows that overlap (Step < Size) need.
// Pixels outside the windows are not touched.
type Unpool[T Float] struct {
	Windows, Channels int
	Size, Step        int

	X                  []T
	Y                  []T
	Index              []uint8
	XRow, XPixel       int
	YPixel, IndexPixel int

	Accumulate bool
}

// Run computes the row at a level.
func (p *Unpool[T]) Run(l Level) {
	checkPool(p.Windows, p.Channels, p.Size, p.Step, len(p.X), p.XRow, p.XPixel, len(p.Y), p.YPixel, len(p.Index), p.IndexPixel)
	if p.Step < p.Size && !p.Accumulate {
		panic("simd: overlapping windows must accumulate")
	}
	p.runGo()
}

// checkPool panics if an operand is shorter than the extents and distances say.
func checkPool(windows, channels, size, step, x, xRow, xPixel, y, yPixel, index, indexPixel int) {
	if windows < 1 || channels < 1 || size < 1 || size > 15 || step < 1 {
		panic("simd: pooling without windows, or with windows beyond 15×15")
	}
	if xRow|xPixel|yPixel|indexPixel < 0 {
		panic("simd: pooling with a negative distance")
	}
	lastX := (size-1)*xRow + ((windows-1)*step+size-1)*xPixel + channels - 1
	if lastX >= x || (windows-1)*yPixel+channels > y || (windows-1)*indexPixel+channels > index {
		panic("simd: pooling reaches beyond an operand")
	}
}

// runGo is the row in plain Go: each window's pixels one after the other, all channels
// of a pixel together.
func (p *MaxPool[T]) runGo() {
	for v := range p.Windows {
		y, index := p.Y[v*p.YPixel:][:p.Channels], p.Index[v*p.IndexPixel:][:p.Channels]
		corner := v * p.Step * p.XPixel
		copy(y, p.X[corner:])
		clear(index)
		for i := range p.Size {
			for j := range p.Size {
				position := uint8(i*p.Size + j)
				for c, e := range p.X[corner+i*p.XRow+j*p.XPixel:][:len(y)] {
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
}

// runGo is the row in plain Go.
func (p *Unpool[T]) runGo() {
	for v := range p.Windows {
		y, index := p.Y[v*p.YPixel:][:p.Channels], p.Index[v*p.IndexPixel:][:p.Channels]
		for i := range p.Size {
			for j := range p.Size {
				x := p.X[i*p.XRow+(v*p.Step+j)*p.XPixel:][:p.Channels]
				position := uint8(i*p.Size + j)
				for c, at := range index {
					var passed T
					if at == position {
						passed = y[c]
					}
					if p.Accumulate {
						passed += x[c]
					}
					x[c] = passed
				}
			}
		}
	}
}
