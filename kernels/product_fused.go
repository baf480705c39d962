package kernels

import "dahl/dag"

// What cuBLASLt does of a product besides its sums, so that no kernel of ours has to read it
// again: biases and ReLU of a forward pass, and beside the weights' gradient the sums over samples
// that are the biases'. What stays: the mask of a ReLU's gradient, for which cuBLASLt would want a
// mask of bits from the forward pass, that nobody keeps here; and the step of descent.
//
// The library's ReLU is max(x, 0), of which NVIDIA's documentation does not say what it makes of
// NaN, and users say 0; kernels of ours keep it.

// fusedParts are what the library does of a product besides its sums.
type fusedParts struct {
	bias    uint64 // added to each row; 0: nothing
	relu    bool
	rowSums uint64         // where it leaves the sums of the rows of the first factor; 0: nowhere
	sums    *productParams // what follows these; nil: nothing
}

// fuse gives the library what it can do of the rest.
func (s *productParts) fuse(call *DeviceCall) {
	p := &s.main
	if p.after == afterStore && p.add == 0 {
		s.fused.bias, s.fused.relu = p.bias, p.relu != 0
		p.bias, p.relu = 0, 0
	}
	if s.sumsRows(call.Type) {
		s.sumRows(call)
	}
}

// sumsRows reports whether the library is to sum the rows of the first factor, as a column of ones
// does, and can: its documentation speaks of a gradient of biases in float64 nowhere, and before
// CUDA 12.3.1 it could be wrong where there is one term.
func (s *productParts) sumsRows(t dag.DType) bool {
	return s.column != nil && s.column.ones == columnOfOnes && t == dag.Float32 && s.main.k > 1
}

// sumRows has the library sum the rows of the first factor, which the column of ones is for. The
// sums are the gradients of the biases unless something follows, which sees them as a row of
// ones.
func (s *productParts) sumRows(call *DeviceCall) {
	column := s.column
	s.column, s.fused.rowSums = nil, column.bias
	if column.after == afterStore && column.addBias == 0 {
		return
	}
	row := *column
	row.m, row.n, row.ones = 1, column.m, rowOfOnes
	s.fused.sums, s.fused.rowSums = &row, call.Work+uint64(indirectBytes(call.Type, &s.main))
}
