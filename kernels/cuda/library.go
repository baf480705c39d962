package cuda

import "errors"

// ErrRefused is wrapped by the error of a call that its library does not do on the device:
// there another variant has to.
var ErrRefused = errors.New("the library does not do this")

// LibraryCall is what a library does instead of a kernel, complete but for the stream: a
// [Product], a [FusedProduct] or a [Convolution].
type LibraryCall interface {
	// Workspace is the library's own: bytes of device memory, from a multiple of 256 on.
	Workspace() (address uint64, bytes int64)
}

// Product is a product of row-major matrices of float32 or float64: c = a·b, or c += a·b.
type Product struct {
	Float64              bool
	TF32                 bool // factors may be rounded to 11 bits; else every operation is in the type
	Rows, Columns, Depth int32
	A, B, C              Matrix
	Add                  bool // to what c holds

	Work      uint64
	WorkBytes int64
}

func (p Product) Workspace() (address uint64, bytes int64) { return p.Work, p.WorkBytes }

// FusedProduct is a product with what its library does besides, before it is stored: a bias is
// added to each row, and the positive part taken. RowSums are of the first factor, one for each row
// of the product. A product has a bias or row sums, or neither.
type FusedProduct struct {
	Product
	Bias    uint64 // address, as many elements as the product has columns; 0: none
	ReLU    bool
	RowSums uint64 // address, as many elements as the product has rows; 0: none
}

// Matrix is where a factor or the result of a product lies: rows that are Stride elements
// apart. Of one that is transposed, these are the columns of the factor.
type Matrix struct {
	Addr       uint64
	Stride     int32
	Transposed bool
}
