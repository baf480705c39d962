package offload

import "errors"

// ErrRefused is wrapped by the error of a call that its library does not do on the device.
// Another variant has to do it there.
var ErrRefused = errors.New("the library does not do this")

// Names of libraries, in Variant.Library and in names of variants.
const (
	CuBLAS   = "cublas"
	CuBLASLt = "cublaslt"
	CuDNN    = "cudnn"
)

// LibraryCall is a call of a library in place of a kernel, complete except for the stream: a
// [Product], a [FusedProduct] or a [Convolution].
type LibraryCall interface {
	// Workspace is the library's own: bytes of device memory, aligned to 256.
	Workspace() (address uint64, bytes int64)
}

// Product is a product of row-major matrices of float32 or float64: c = a·b, or c += a·b.
type Product struct {
	Float64              bool
	TF32                 bool // factors may be rounded to 11 bits; else every operation is in the type
	Rows, Columns, Depth int32
	A, B, C              Matrix
	Add                  bool // to the old contents of c

	Work      uint64
	WorkBytes int64
}

// Workspace makes a Product a [LibraryCall].
func (p Product) Workspace() (address uint64, bytes int64) { return p.Work, p.WorkBytes }

// FusedProduct is a product with further operations before it is stored: the library adds a bias
// to each row, and takes the positive part. RowSums are the sums of the first factor's rows, one
// for each row of the product. A product has a bias or row sums, or neither.
type FusedProduct struct {
	Product
	Bias    uint64 // address, as many elements as the product has columns; zero means none
	ReLU    bool
	RowSums uint64 // address, as many elements as the product has rows; zero means none
}

// Matrix is the layout of a factor or the result of a product: rows that are Stride elements
// apart. In a transposed factor these rows are its columns.
type Matrix struct {
	Addr       uint64
	Stride     int32
	Transposed bool
}
