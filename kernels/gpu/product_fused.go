package gpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
)

// cuBLASLt does more for a product than its sums, so that no kernel of ours has to read it again.
// In a forward pass it adds biases and does the ReLU. With the weights' gradient it takes the
// sums over samples, which are the biases' gradient. It does not do the mask of a ReLU's
// gradient, nor the step of descent. For the former it would want a mask of bits from the forward pass, and nobody keeps one
// here.
//
// The library's ReLU is max(x, 0). NVIDIA's documentation does not say what it makes of NaN, and
// users say 0; kernels of ours keep NaN.

// fusedParts are the operations that the library does for a product after its sums.
type fusedParts struct {
	bias    uint64 // added to each row; zero means nothing
	relu    bool
	rowSums uint64         // address for the sums of the rows of the first factor; zero means not summed
	sums    *productParams // the product that follows these sums; nil means that nothing follows
}

// fuse gives the library the further operations that it can do.
func (s *productParts) fuse(call *calls.DeviceCall) {
	p := &s.main
	if p.after == afterStore && p.add == 0 {
		s.fused.bias, s.fused.relu = p.bias, p.relu != 0
		p.bias, p.relu = 0, 0
	}
	if s.sumsRows(call.Type) {
		s.sumRows(call)
	}
}

// sumsRows reports whether the library should sum the rows of the first factor, as a column of
// ones does, and can. Its documentation never mentions a gradient of biases in float64. Before
// CUDA 12.3.1 the sums could be wrong where there is one term.
func (s *productParts) sumsRows(t dag.DType) bool {
	return s.column != nil && s.column.ones == columnOfOnes && t == dag.Float32 && s.main.k > 1
}

// sumRows makes the library sum the rows of the first factor, which replaces the column of ones.
// The sums are the gradients of the biases unless something follows. Then that sees them as a row
// of ones.
func (s *productParts) sumRows(call *calls.DeviceCall) {
	column := s.column
	s.column, s.fused.rowSums = nil, column.bias
	if column.after == afterStore && column.addBias == 0 {
		return
	}
	row := *column
	row.m, row.n, row.ones = 1, column.m, rowOfOnes
	s.fused.sums, s.fused.rowSums = &row, call.Work+uint64(indirectBytes(call.Type, &s.main))
}
