package simd

import (
	"math"
	"unsafe"
)

// Winograd is tiles of a channels-last map of float32, and the same in the domain in which a
// convolution by 3×3 filters is a product at each of 36 positions: F(4×4,3×3) of Winograd (1980), as
// Lavin and Gray use it (arXiv:1509.09308). With data d of 6×6 pixels, filters g and results y of
// 4×4 pixels,
//
//	y = A' ((G g G') ∘ (B' d B)) A
//
// and the gradient of the filters, of data d and gradients z of results, is
//
//	dg = G' ((B' d B) ∘ (A z A')) G
//
// each summed over channels, or over tiles, in the domain. Polynomials are evaluated at the points
// 0, ±5/8, ±3/2 and ∞. The usual ±1 and ±2 in their place are twice as inaccurate, see
// kernels/kerneltest/winograd.go.
//
// Channel c of tile t has its pixel (i, j) at
//
//	X[t·XTile + i·XRow + j·XPixel + c]
//
// and its position (i, j) of the domain at
//
//	Domain[t·DomainTile + (6i+j)·Position + c]
//
// All transforms except Result take whole tiles.
type Winograd struct {
	Tiles, Channels int

	X                   []float32
	XTile, XRow, XPixel int

	Domain               []float32
	DomainTile, Position int

	// Accumulate adds results, or gradients of filters, to X.
	Accumulate bool

	// Results are stored in Rows rows and Columns columns, from 1 to 4. Bias, if not nil, has an element per
	// channel. ReLU replaces negative results by zero; NaN stays. A result is set to zero where the
	// element of Where, if not nil, is not positive. Where has distances like X.
	Rows, Columns                   int
	Bias                            []float32
	ReLU                            bool
	Where                           []float32
	WhereTile, WhereRow, WherePixel int
}

// WinogradSide is the rows and columns of a tile's results, WinogradData the rows and columns of its data and of the
// domain, and WinogradPositions the positions of the domain.
const (
	WinogradSide      = 4
	WinogradData      = 6
	WinogradPositions = WinogradData * WinogradData
)

// The points are 0, ±winogradP, ±winogradQ and ∞. The transforms need further constants.
const (
	winogradP = 0.625
	winogradQ = 1.5
	winogradA = winogradP * winogradP
	winogradB = winogradQ * winogradQ
	winogradU = 1 / (2 * winogradA * (winogradA - winogradB))
	winogradV = 1 / (2 * winogradB * (winogradB - winogradA))
)

// winogradLine is a transform of lines and the constants that the assembly wants for it.
type winogradLine struct {
	side      int // of a tile outside of the domain
	out       bool
	line      func(d winogradValues) winogradValues
	constants [7]float32
	vectors   *forms[winogradArgs]
}

// Data takes 6×6 pixels of X to the domain.
func (w *Winograd) Data(l Level) { w.run(l, &dataLine) }

// Gradient takes 4×4 pixels of the gradient of results, X, to the domain.
func (w *Winograd) Gradient(l Level) { w.run(l, &gradientLine) }

// Filter takes 3×3 filters X to the domain.
func (w *Winograd) Filter(l Level) { w.run(l, &filterLine) }

// Result takes results out of the domain to 4×4 pixels of X.
func (w *Winograd) Result(l Level) { w.run(l, &resultLine) }

// FilterGradient takes gradients of filters out of the domain to X.
func (w *Winograd) FilterGradient(l Level) { w.run(l, &filterGradientLine) }

var (
	dataLine = winogradLine{
		side: WinogradData, line: winogradDataLine, vectors: &winogradData,
		constants: [7]float32{winogradA * winogradB, winogradA + winogradB, winogradA, winogradB, winogradP, winogradQ},
	}
	gradientLine = winogradLine{
		side: WinogradSide, line: winogradGradientLine, vectors: &winogradGradient,
		constants: [7]float32{winogradA, winogradB, winogradP, winogradQ},
	}
	filterLine = winogradLine{side: 3, line: winogradFilterLine, vectors: &winogradFilter, constants: filterConstants}
	resultLine = winogradLine{
		side: WinogradSide, out: true, line: winogradResultLine, vectors: &winogradResult,
		constants: [7]float32{winogradA, winogradB, winogradP, winogradQ, winogradA * winogradP, winogradB * winogradQ},
	}
	filterGradientLine = winogradLine{
		side: 3, out: true, line: winogradFilterGradientLine, vectors: &winogradFilterGradient, constants: filterConstants,
	}
)

var filterConstants = [7]float32{
	1 / (winogradA * winogradB),
	winogradU, winogradU * winogradA, winogradU * winogradP,
	winogradV, winogradV * winogradB, winogradV * winogradQ,
}

func (w *Winograd) run(l Level, t *winogradLine) {
	w.check(t, t == &resultLine)
	if l == Go {
		w.runGo(t, t == &resultLine)
		return
	}
	w.runVectors(l, t)
}

// check panics if an operand is shorter than the extents and distances say.
func (w *Winograd) check(t *winogradLine, results bool) {
	if w.Tiles < 1 || w.Channels < 1 {
		panic("simd: transform of no tiles, or of tiles without channels")
	}
	if w.XTile|w.XRow|w.XPixel|w.DomainTile|w.Position|w.WhereTile|w.WhereRow|w.WherePixel < 0 {
		panic("simd: transform with a negative distance")
	}
	rows, columns := t.side, t.side
	if results {
		if rows, columns = w.Rows, w.Columns; rows < 1 || rows > t.side || columns < 1 || columns > t.side {
			panic("simd: transform to tiles without pixels, or of more than 4×4")
		}
		lastWhere := (w.Tiles-1)*w.WhereTile + (rows-1)*w.WhereRow + (columns-1)*w.WherePixel + w.Channels
		if w.Where != nil && lastWhere > len(w.Where) || w.Bias != nil && w.Channels > len(w.Bias) {
			panic("simd: transform reaches beyond an operand")
		}
	}
	lastX := (w.Tiles-1)*w.XTile + (rows-1)*w.XRow + (columns-1)*w.XPixel + w.Channels
	if lastX > len(w.X) || (w.Tiles-1)*w.DomainTile+(WinogradPositions-1)*w.Position+w.Channels > len(w.Domain) {
		panic("simd: transform reaches beyond an operand")
	}
}

// floor is the value below which no result is.
func (w *Winograd) floor() float32 {
	if w.ReLU {
		return 0
	}
	return float32(math.Inf(-1))
}

// winogradValues is a line of a tile of one channel, of which there may be fewer values.
type winogradValues [WinogradData]float32

// runGo transforms one channel of one tile after the other.
func (w *Winograd) runGo(t *winogradLine, results bool) {
	var tile [WinogradData]winogradValues // by columns
	read, written := t.side, WinogradData
	if t.out {
		read, written = WinogradData, t.side
	}
	for n := range w.Tiles {
		for c := range w.Channels {
			x, domain := w.X[n*w.XTile+c:], w.Domain[n*w.DomainTile+c:]
			from, row, pixel := x, w.XRow, w.XPixel
			if t.out {
				from, row, pixel = domain, WinogradData*w.Position, w.Position
			}
			for j := range read {
				for i := range read {
					tile[j][i] = from[i*row+j*pixel]
				}
				tile[j] = t.line(tile[j])
			}
			for i := range written {
				var line winogradValues
				for j := range read {
					line[j] = tile[j][i]
				}
				line = t.line(line)
				switch {
				case results:
					w.putResults(n, c, i, &line)
				case t.out:
					w.putGradients(x[i*w.XRow:], line[:written])
				default:
					for j, v := range line {
						domain[(i*WinogradData+j)*w.Position] = v
					}
				}
			}
		}
	}
}

func (w *Winograd) putGradients(x, line []float32) {
	for j, v := range line {
		if w.Accumulate {
			v += x[j*w.XPixel]
		}
		x[j*w.XPixel] = v
	}
}

// putResults stores row i of channel c of tile n.
func (w *Winograd) putResults(n, c, i int, line *winogradValues) {
	if i >= w.Rows {
		return
	}
	for j, v := range line[:w.Columns] {
		to := &w.X[n*w.XTile+i*w.XRow+j*w.XPixel+c]
		if w.Accumulate {
			v += *to
		}
		if w.Bias != nil {
			v += w.Bias[c]
		}
		if v < w.floor() || w.Where != nil && !(w.Where[n*w.WhereTile+i*w.WhereRow+j*w.WherePixel+c] > 0) {
			v = 0
		}
		*to = v
	}
}

// The lines compute the same as gen/winograd_lines.go, which has the equations.

func winogradDataLine(d winogradValues) winogradValues {
	const a, b, p, q = winogradA, winogradB, winogradP, winogradQ
	e, f, g, h := d[4]-b*d[2], p*(d[3]-b*d[1]), d[4]-a*d[2], q*(d[3]-a*d[1])
	return winogradValues{
		a*b*d[0] - (a+b)*d[2] + d[4], e + f, e - f, g + h, g - h, a*b*d[1] - (a+b)*d[3] + d[5],
	}
}

func winogradGradientLine(d winogradValues) winogradValues {
	const a, b, p, q = winogradA, winogradB, winogradP, winogradQ
	e, f, g, h := d[0]+a*d[2], p*(d[1]+a*d[3]), d[0]+b*d[2], q*(d[1]+b*d[3])
	return winogradValues{d[0], e + f, e - f, g + h, g - h, d[3]}
}

func winogradFilterLine(d winogradValues) winogradValues {
	const a, b, p, q, u, v = winogradA, winogradB, winogradP, winogradQ, winogradU, winogradV
	e, f, g, h := u*d[0]+u*a*d[2], u*p*d[1], v*d[0]+v*b*d[2], v*q*d[1]
	return winogradValues{1 / (a * b) * d[0], e + f, e - f, g + h, g - h, d[2]}
}

func winogradResultLine(d winogradValues) winogradValues {
	const a, b, p, q = winogradA, winogradB, winogradP, winogradQ
	e, f, g, h := d[1]+d[2], d[1]-d[2], d[3]+d[4], d[3]-d[4]
	return winogradValues{d[0] + e + g, p*f + q*h, a*e + b*g, a*p*f + b*q*h + d[5]}
}

func winogradFilterGradientLine(d winogradValues) winogradValues {
	const a, b, p, q, u, v = winogradA, winogradB, winogradP, winogradQ, winogradU, winogradV
	e, f, g, h := d[1]+d[2], d[1]-d[2], d[3]+d[4], d[3]-d[4]
	return winogradValues{1/(a*b)*d[0] + u*e + v*g, u*p*f + v*q*h, u*a*e + v*b*g + d[5]}
}

// winogradArgs is the argument of one call of the assembly. Distances are in bytes. gen/winograd.go knows
// the order of the fields.
type winogradArgs struct {
	x, domain            unsafe.Pointer
	_                    [2]int // xAt, domainAt: the assembly notes where the present tile begins
	tiles                int
	vectors, tail        int // whole vectors of channels, and channels beyond them
	mask                 uintptr
	constants            unsafe.Pointer
	xRow, xPixel, xTile  int
	position, domainTile int
	rows, columns        int
	bias                 unsafe.Pointer // nil means none
	floor                uint64         // bits of the value below which no result is
	add                  int
	where                unsafe.Pointer // nil means keep all
	whereRow, wherePixel int
	whereTile            int
	_                    int // whereAt
}

func (w *Winograd) runVectors(l Level, t *winogradLine) {
	const size = 4
	lanes := l.bytes() / size
	tail := w.Channels % lanes
	a := winogradArgs{
		x: pointer(w.X), domain: pointer(w.Domain), tiles: w.Tiles,
		vectors: w.Channels / lanes, tail: tail, mask: l.mask(tail, size), constants: pointer(t.constants[:]),
		xRow: w.XRow * size, xPixel: w.XPixel * size, xTile: w.XTile * size,
		position: w.Position * size, domainTile: w.DomainTile * size,
		rows: w.Rows, columns: w.Columns, bias: pointer(w.Bias), floor: uint64(math.Float32bits(w.floor())),
		where: pointer(w.Where), whereRow: w.WhereRow * size, wherePixel: w.WherePixel * size, whereTile: w.WhereTile * size,
	}
	if w.Accumulate {
		a.add = 1
	}
	t.vectors.call(l, size, &a)
}
