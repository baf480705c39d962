package calls

// Convolution of images of c channels with filters of i×j elements, as in PyTorch's conv2d (a
// cross-correlation). Channels and filters fall into groups g of equal size, and the filters f of a
// group see its channels c alone: one group is the usual convolution, and one channel per group a
// depthwise one. With s the stride, d the dilation, t rows of padding above the image, l columns to
// its left, and i, j running over the window:
//
//	y[n,gf,u,v]   = b[gf] + Σ_{c,i,j} w[gf,c,i,j] · x[n,gc,u·s+i·d-t,v·s+j·d-l]
//	dx[n,gc,a,b]  = Σ_{f,i,j: u·s+i·d-t=a, v·s+j·d-l=b} w[gf,c,i,j] · dy[n,gf,u,v]
//	dw[gf,c,i,j]  = Σ_{n,u,v} dy[n,gf,u,v] · x[n,gc,u·s+i·d-t,v·s+j·d-l]
//	db[gf]        = Σ_{n,u,v} dy[n,gf,u,v]
//
// Columns may have a stride and a dilation of their own. Elements of x outside the image are zero.
// How many there are below it and to its right follows from the extents. Parts of a convolution may
// begin inside the image that they know: there t and l are negative. A part that has filters of one
// group is a convolution with one group.

// WindowIndices are rows and columns of an image under windows. SlidingParams, SlidingOptions and
// GroupSizes belong to the statement of any convolution.
const (
	WindowIndices  = "oh*stride+i*dilation-top ow*column_stride+j*column_dilation-left"
	SlidingOptions = "column_stride=stride dilation=1 column_dilation=dilation groups=1"
	GroupSizes     = "g=groups"
)

// The names of the parameters of a convolution.
var (
	SlidingParams = []string{"stride", "top", "left"}   // of every convolution, behind SlidingOptions
	ReLUParams    = append(SlidingParams[:3:3], "relu") // of a convolution with its positive part
	Sliding       = ParseOptions(SlidingOptions)        // the options with their defaults
)

// WithOptions are the parameters of a call of a convolution, in the order of Call.Params.
func WithOptions(params ...string) []string {
	var all []string
	for _, o := range Sliding {
		all = append(all, o.Name)
	}
	return append(all, params...)
}

// Windowing is how windows lie over an image, and how many groups channels and filters fall into.
type Windowing struct {
	Rows, Columns Axis
	Groups        int
}

// Axis is how windows lie along one dimension. The first begins before elements ahead of the image,
// each stride elements behind the one before, and their taps are dilation elements apart.
type Axis struct{ Before, Stride, Dilation int }

// WindowingOf returns the windowing of a call of a convolution: its first parameters are SlidingOptions, then
// SlidingParams. Others begin at OwnParam.
func WindowingOf(params []float64) Windowing {
	return Windowing{
		Rows:    Axis{Stride: int(params[4]), Before: int(params[5]), Dilation: int(params[1])},
		Columns: Axis{Stride: int(params[0]), Before: int(params[6]), Dilation: int(params[2])},
		Groups:  int(params[3]),
	}
}

// OwnParam is the index in Call.Params of the first parameter behind the parameters that all convolutions have.
const OwnParam = 7

// Rectifies reports whether a call of a convolution has a parameter relu that is set.
func Rectifies(params []float64) bool { return len(params) > OwnParam && params[OwnParam] != 0 }

// Image is the element under a tap of a window.
func (a Axis) Image(window, tap int) int { return window*a.Stride + tap*a.Dilation - a.Before }

// Lattice relates, along rows or along columns, pixels of the result with the pixels under their
// windows. Pixel u is at first + u·step of the result, and its window begins at from + u·stride
// of the source, which has extent pixels. Its taps are dilation pixels apart.
type Lattice struct {
	Pixels, First, Step            int
	Taps                           int
	From, Stride, Dilation, Extent int
}

// ForwardLattice is the lattice of conv2d.nhwc.
func ForwardLattice(out, in, k int, a Axis) Lattice {
	return Lattice{Pixels: out, Step: 1, Taps: k, From: -a.Before, Stride: a.Stride, Dilation: a.Dilation, Extent: in}
}

// BackwardLattice is the lattice of the pixels of dx at phase, phase+stride, …, and the taps of the
// turned filters that they meet. Before turning, tap t meets pixel a in window u where
//
//	u·stride + t·dilation = a + before
//
// Let e be the greatest common divisor of stride and dilation. Then every stride/e-th tap meets the phase, in windows
// dilation/e apart. A phase may meet none.
func BackwardLattice(in, out, k int, a Axis, phase int) (Lattice, SomeTaps) {
	every := a.Every()
	first := 0 // before turning
	for first < every && floorMod(phase+a.Before-first*a.Dilation, a.Stride) != 0 {
		first++
	}
	l := Lattice{Pixels: (in - phase + a.Stride - 1) / a.Stride, First: phase, Step: a.Stride, Stride: 1, Dilation: a.Dilation * every / a.Stride, Extent: out}
	if first == every {
		return l, SomeTaps{Every: every}
	}
	l.Taps = max(0, (k-first+every-1)/every)
	l.From = FloorDiv(phase+a.Before-first*a.Dilation, a.Stride) - (l.Taps-1)*l.Dilation
	return l, SomeTaps{First: k - 1 - first - (l.Taps-1)*every, Count: l.Taps, Every: every}
}

// Every is the distance of taps that meet pixels of one phase of the stride.
func (a Axis) Every() int {
	divisor, rest := a.Stride, a.Dilation
	for rest > 0 {
		divisor, rest = rest, divisor%rest
	}
	return a.Stride / divisor
}

// Touching is the same without gaps between windows or taps.
func (a Axis) Touching() Axis { return Axis{Before: a.Before, Stride: 1, Dilation: 1} }

// Zone returns the end of the pixels from u whose windows have the same taps, lo to hi, within
// the source. Outside the source it is empty, with lo = hi.
func (l *Lattice) Zone(u int) (end, lo, hi int) {
	at := l.From + u*l.Stride
	lo, hi = max(0, -FloorDiv(at, l.Dilation)), min(l.Taps, -FloorDiv(at-l.Extent, l.Dilation))
	if hi <= lo {
		return u + 1, 0, 0
	}
	if lo == 0 && hi == l.Taps {
		return min(l.Pixels, (l.Extent-1-(l.Taps-1)*l.Dilation-l.From)/l.Stride+1), lo, hi
	}
	return u + 1, lo, hi
}

// Inside returns the pixels from u to end under whose windows a tap lies within the source.
func (l *Lattice) Inside(tap, u, end int) (first, after int) {
	at := l.From + tap*l.Dilation
	return max(u, -FloorDiv(at, l.Stride)), min(end, FloorDiv(l.Extent-1-at, l.Stride)+1)
}

// Pace is how many more pixels of the source each pixel reads.
func (l *Lattice) Pace() int { return min(l.Stride, l.Taps) }

// SomeTaps is taps of the filters at equal distances.
type SomeTaps struct{ First, Count, Every int }

// PooledParams are the parameters of a convolution with max-pooling: the size of the square windows of the pooling, and the
// distance between them.
var PooledParams = append(SlidingParams[:3:3], "size", "step")

// FusedPooling is the size and the distance of the pooling's windows in a call with PooledParams.
func FusedPooling(params []float64) (size, step int) {
	return int(params[OwnParam]), int(params[OwnParam+1])
}

// Covered is the number of pixels from the first to the last of count windows.
func Covered(count, size, step int) int { return (count-1)*step + size }

// FloorDiv is a/b rounded down, also for a below 0; b is above 0.
func FloorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int) int { return a - b*FloorDiv(a, b) }
