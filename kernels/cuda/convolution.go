package cuda

// Convolution is a convolution (a cross-correlation) of images with filters, or one of its
// gradients, of float32 or float64. Its operands are packed, but that the samples of images
// whose channels come first may lie apart.
type Convolution struct {
	Kind    ConvolutionKind
	Float64 bool
	TF32    bool // factors may be rounded to 11 bits; else every operation is in the type

	// ChannelsLast: images lie n×h×w×c and filters f×k×k×c; else n×c×h×w and f×c×k×k.
	ChannelsLast bool
	X, Y         Image  // the images and what they are convolved to, or their gradients
	W            uint64 // the address of the filters, or of their gradient
	Window       int32  // k
	Pad, Stride  int32

	Bias uint64 // Forward: is added to Y; 0: nothing is
	ReLU bool   // Forward: of the result the positive part
	Add  bool   // a gradient: to what the result holds

	// Work is the library's workspace: WorkBytes of device memory, from a multiple of 256 on.
	Work      uint64
	WorkBytes int64
}

// ConvolutionKind says which operand of a convolution is the result.
type ConvolutionKind int32

// Forward gives Y, InputGradient X and WeightGradient W.
const (
	Forward ConvolutionKind = iota
	InputGradient
	WeightGradient
)

// Image is where images lie: samples, channels, rows and columns, and the distance in
// elements between neighbours of each.
type Image struct {
	Addr           uint64
	Extent, Stride [4]int32
}

func (c Convolution) Workspace() (address uint64, bytes int64) { return c.Work, c.WorkBytes }
