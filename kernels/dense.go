package kernels

// Fully connected layer of i inputs and o outputs, weights as PyTorch stores them:
//
//	y[n,o]  = b[o] + Σ_i x[n,i]·w[o,i]
//	dx[n,i] = Σ_o dy[n,o]·w[o,i]
//	dw[o,i] = Σ_n dy[n,o]·x[n,i]
//	db[o]   = Σ_n dy[n,o]

var dense = linear{factors: []int{1, 2}, bias: 3}.of(Kernel{
	Op: "dense", Doc: "y = x·wᵀ + b",
	Operands: []Operand{
		sums("y", "n f"),
		reads("x", Real, "n c"),
		reads("w", Real, "f c"),
		optional(reads("b", Real, "f")),
	},
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return biasFlops(s, 3, 0) },
},
	atLevels("four dot products at a time, in blocks of the inputs", denseAt[float32], denseAt[float64], denseWorkspace),
	denseTiles.variants(denseForward(false)), denseTiles.libraryVariants(0, denseForward(false)))

var denseDx = linear{factors: []int{1, 2}}.of(Kernel{
	Op: "dense.dx", Doc: "dx = dy·w",
	Operands: []Operand{
		sums("dx", "n c"),
		reads("dy", Real, "n f"),
		reads("w", Real, "f c"),
	},
	PerPoint: 2,
},
	atLevels("rank-1 updates of several rows, added in place", denseDxAt[float32], denseDxAt[float64], nil),
	denseDxTiles.variants(denseDxProducts), denseDxTiles.libraryVariants(0, denseDxProducts))

var denseDw = linear{factors: []int{1, 2}, total: 3}.of(Kernel{
	Op: "dense.dw", Doc: "dw = dyᵀ·x, db = column sums of dy",
	Operands: []Operand{
		sums("dw", "f c"),
		reads("dy", Real, "n f"),
		reads("x", Real, "n c"),
		optional(sums("db", "f")),
	},
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return biasFlops(s, 3, 1) },
},
	atLevels("rank-1 updates of several rows, added in place", denseDwAt[float32], denseDwAt[float64], nil),
	denseDwTiles.variants(denseDwProducts), denseDwTiles.libraryVariants(0, denseDwProducts))

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
