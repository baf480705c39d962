package kernels

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

// windowIndices are rows and columns of an image under windows. slidingParams, slidingOptions and
// groupSizes belong to the statement of any convolution.
const (
	windowIndices  = "oh*stride+i*dilation-top ow*column_stride+j*column_dilation-left"
	slidingOptions = "column_stride=stride dilation=1 column_dilation=dilation groups=1"
	groupSizes     = "g=groups"
)

var (
	slidingParams = []string{"stride", "top", "left"}
	reluParams    = append(slidingParams[:3:3], "relu")
	sliding       = parseOptions(slidingOptions)
)

// withOptions are the parameters of a call of a convolution, in the order of Call.Params.
func withOptions(params ...string) []string {
	var all []string
	for _, o := range sliding {
		all = append(all, o.name)
	}
	return append(all, params...)
}

// windowing is how windows lie over an image, and how many groups channels and filters fall into.
type windowing struct {
	rows, columns axis
	groups        int
}

// axis is how windows lie along one dimension. The first begins before elements ahead of the image,
// each stride elements behind the one before, and their taps are dilation elements apart.
type axis struct{ before, stride, dilation int }

// windowingOf is that of a call of a convolution: its first parameters are slidingOptions, then
// slidingParams. Others begin at ownParam.
func windowingOf(params []float64) windowing {
	return windowing{
		rows:    axis{stride: int(params[4]), before: int(params[5]), dilation: int(params[1])},
		columns: axis{stride: int(params[0]), before: int(params[6]), dilation: int(params[2])},
		groups:  int(params[3]),
	}
}

const ownParam = 7

// rectifies reports whether a call of a convolution has a parameter relu that is set.
func rectifies(params []float64) bool { return len(params) > ownParam && params[ownParam] != 0 }

// image is the element under a tap of a window.
func (a axis) image(window, tap int) int { return window*a.stride + tap*a.dilation - a.before }
