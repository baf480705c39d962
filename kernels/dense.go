package kernels

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
	l, rectifies := linear{factors: []int{1, 2}, bias: 3}, k.With.Has(ReLU)
	k.Doc = "y = x·wᵀ + b"
	k.Operands = []Operand{
		sums("y", "n f"),
		reads("x", Real, "n c"),
		reads("w", Real, "f c"),
		optional(reads("b", Real, "f")),
	}
	k.PerPoint, k.Flops = 2, func(s *Spec) float64 { return biasFlops(s, 3, 0) }
	if rectifies {
		k.Doc, k.Operands[0] = "y = max(0, x·wᵀ + b)", writes("y", Real, "n f")
		k.Flops = func(s *Spec) float64 { return s.volume(0) + biasFlops(s, 3, 0) }
		l.relu = func([]float64) bool { return true }
	}
	return l.of(k,
		atLevels("four dot products at a time, in blocks of the inputs", denseAt[float32](rectifies), denseAt[float64](rectifies), denseWorkspace),
		denseTiles.variants(denseForward(rectifies)), denseTiles.libraryVariants(0, denseForward(rectifies)))
}

func denseDxWith(k Kernel) Kernel {
	l := linear{factors: []int{1, 2}}
	k.Doc = "dx = dy·w"
	k.Operands = []Operand{
		sums("dx", "n c"),
		reads("dy", Real, "n f"),
		reads("w", Real, "f c"),
	}
	k.PerPoint = 2
	if k.With.Has(ReLU) {
		k.Doc, k.Operands[0] = "dx = dy·w where x > 0, else 0", writes("dx", Real, "n c")
		k.Operands = append(k.Operands, reads("x", Real, "n c"))
		k.Flops, l.gate = perElement(1, 0), 3
	}
	return l.of(k,
		atLevels("rank-1 updates of several rows, added in place or masked before they are stored", denseDxAt[float32], denseDxAt[float64], nil),
		denseDxTiles.variants(denseDxProducts), denseDxTiles.libraryVariants(0, denseDxProducts))
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
	if k.With.Has(SGD) {
		return denseDescent(l, k)
	}
	l.totals(&k, "f")
	return l.of(k,
		atLevels("rank-1 updates of several rows, added in place", denseDwAt[float32], denseDwAt[float64], nil),
		denseDwTiles.variants(denseDwProducts), denseDwTiles.libraryVariants(0, denseDwProducts))
}

// map2 is a strided operand of two dimensions. The last stride is 1.
type map2[T Element] struct {
	elems         []T
	rows, columns int
	stride        int
}

func map2Of[T Element](a *Arg) map2[T] {
	return map2[T]{Data[T](a), a.Shape[0], a.Shape[1], a.Stride[0]}
}

// row returns row i.
func (m *map2[T]) row(i int) []T {
	return m.elems[i*m.stride : i*m.stride+m.columns]
}
