package offload

// Convolution is a convolution (a cross-correlation) of images with filters, or one of its
// gradients, of float32. Images lie n×h×w×c and filters f×k×k×c. Its operands are packed.
type Convolution struct {
	Kind        ConvolutionKind
	TF32        bool   // factors may be rounded to 11 bits; else every operation is in float32
	X, Y        Image  // the images and their convolution, or the gradients of both
	W           uint64 // the address of the filters, or of their gradient
	Window      int32  // k
	Pad, Stride int32

	Bias uint64 // Forward: address of biases to add to Y; zero means none
	ReLU bool   // Forward: take the positive part of the result
	Add  bool   // of a gradient: add to the old contents of the result

	// Work is the library's workspace: WorkBytes of device memory, aligned to 256.
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

// Image is the layout of images: samples, channels, rows and columns, and for each the distance
// in elements between neighbours.
type Image struct {
	Addr           uint64
	Extent, Stride [4]int32
}

// Workspace makes a Convolution a [LibraryCall].
func (c Convolution) Workspace() (address uint64, bytes int64) { return c.Work, c.WorkBytes }
