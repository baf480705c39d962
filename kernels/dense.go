package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
)

// Fully connected layer of i inputs and o outputs, weights as PyTorch stores them:
//
//	y[n,o]  = b[o] + Σ_i x[n,i]·w[o,i]
//	dx[n,i] = Σ_o dy[n,o]·w[o,i]
//	dw[o,i] = Σ_n dy[n,o]·x[n,i]
//	db[o]   = Σ_n dy[n,o]
//
// With ReLU, y is max(0, …), and dx[n,i] is 0 where x[n,i], which came out of a rectifier, is not above 0.
// NaN passes through y, and the gradient is 0 where x is NaN, as in relu.

func denseWith(k Kernel) Kernel {
	if k.With.Has(calls.Function) {
		return denseThenFunction(k)
	}
	l, rectifies := linear{factors: []int{1, 2}, bias: 3}, k.With.Has(calls.ReLU)
	k.Doc = "y = x·wᵀ + b"
	k.Operands = []Operand{
		sums("y", "n f"),
		reads("x", Real, "n c"),
		reads("w", Real, "f c"),
		optional(reads("b", Real, "f")),
	}
	k.PerPoint, k.Flops = 2, func(s *calls.Spec) float64 { return biasFlops(s, 3, 0) }
	if rectifies {
		k.Doc, k.Operands[0] = "y = max(0, x·wᵀ + b)", writes("y", Real, "n f")
		k.Flops = func(s *calls.Spec) float64 { return s.Volume(0) + biasFlops(s, 3, 0) }
		l.relu = func([]float64) bool { return true }
	}
	return l.kernelOf(k,
		atLevelsInBlocks("four dot products at a time, in blocks of the inputs, or with AVX2 rank-1 updates of copied blocks", cpu.DenseAt[float32](rectifies), cpu.DenseAt[float64](rectifies), cpu.DenseWorkspace(0)),
		gpu.DenseTiles.Variants(gpu.DenseForward(rectifies)), gpu.DenseTiles.LibraryVariants(0, gpu.DenseForward(rectifies)))
}

func denseDxWith(k Kernel) Kernel {
	if k.With.Has(calls.Function) {
		return denseDxThenSlope(k)
	}
	l := linear{factors: []int{1, 2}}
	k.Doc = "dx = dy·w"
	k.Operands = []Operand{
		sums("dx", "n c"),
		reads("dy", Real, "n f"),
		reads("w", Real, "f c"),
	}
	k.PerPoint = 2
	if k.With.Has(calls.ReLU) {
		k.Doc, k.Operands[0] = "dx = dy·w where x > 0, else 0", writes("dx", Real, "n c")
		k.Operands = append(k.Operands, reads("x", Real, "n c"))
		k.Flops, l.gate = perElement(1, 0), 3
	}
	return l.kernelOf(k,
		atLevelsInBlocks("rank-1 updates of several rows, added in place or masked before they are stored; with AVX2 from copied blocks", cpu.DenseDxAt[float32], cpu.DenseDxAt[float64], cpu.DenseDxWorkspace),
		gpu.DenseDxTiles.Variants(gpu.DenseDxProducts), gpu.DenseDxTiles.LibraryVariants(0, gpu.DenseDxProducts))
}

func denseDwWith(k Kernel) Kernel {
	l := linear{factors: []int{1, 2}}
	k.Doc = "dw = dyᵀ·x, db = column sums of dy"
	k.Operands = []Operand{
		sums("dw", "f c"),
		reads("dy", Real, "n f"),
		reads("x", Real, "n c"),
	}
	k.PerPoint = 2
	if k.With.Has(calls.SGD) {
		return denseDescent(l, k)
	}
	l.totals(&k, "f")
	return l.kernelOf(k,
		atLevelsInBlocks("rank-1 updates of several rows, added in place; with AVX2 from copied blocks", cpu.DenseDwAt[float32], cpu.DenseDwAt[float64], cpu.DenseDwWorkspace),
		gpu.DenseDwTiles.Variants(gpu.DenseDwProducts), gpu.DenseDwTiles.LibraryVariants(0, gpu.DenseDwProducts))
}

// Weight gradient of a fully connected layer with its step of gradient descent, without a
// gradient in memory:
//
//	dw[o,i] = Σ_n dy[n,o]·x[n,i]     w, vw ← as sgd does with g = dw
//	db[o]   = Σ_n dy[n,o]            b, vb ← as sgd does with g = db
//
// A variant gives the bits of its dense.dw followed by sgd. The variants at levels compute some
// columns of dw at a time in the workspace, so that these are still in a cache when they are
// used.
//
// A layer that is Mapped reads a map with channels last. The weights are PyTorch's, for a map with
// channels first, w[o,c,i,j] with g = Σ_n dy[n,o]·x[n,i,j,c]. If the map has no gaps, a variant for CPUs gives the bits of its
// dense.dw, nchw and sgd one after the other. On a GPU it is the gradient of a convolution whose window is the map. For a
// library it is a product of matrices with a row for each sample.

func denseDescent(l linear, k Kernel) Kernel {
	if k.With.Has(calls.Mapped) {
		k.Operands[2].Dims = "n h w c"
		l.descend(&k, "f c h w", "f")
		k.Doc += "; x is a map with channels last"
		return l.kernelOf(k,
			atLevels("dense.dw in the workspace, then sgd by one output at a time", cpu.MappedDescentAt[float32](k.With), cpu.MappedDescentAt[float64](k.With), cpu.MappedDescentWorkspace),
			gpu.ConvolutionLast.Weights.Variants(gpu.MappedDescent(k.With), calls.SgdParamNames...),
			gpu.ConvolutionLast.Weights.LibraryVariants(2, gpu.MappedDescent(k.With), calls.SgdParamNames...))
	}
	l.descend(&k, "f c", "f")
	return l.kernelOf(k,
		atLevels("dense.dw and sgd by some columns at a time", cpu.DenseDescentAt[float32](k.With), cpu.DenseDescentAt[float64](k.With), cpu.DenseDescentWorkspace),
		gpu.DenseDwTiles.Variants(gpu.DenseDescentProducts(k.With), calls.SgdParamNames...),
		gpu.DenseDwTiles.LibraryVariants(0, gpu.DenseDescentProducts(k.With), calls.SgdParamNames...))
}
