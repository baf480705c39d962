package kernels

// Fully connected layer followed by a rectifier, and the gradient of one whose input
// x came out of a rectifier:
//
//	y[n,o]  = max(0, b[o] + Σ_i x[n,i]·w[o,i])
//	dx[n,i] = Σ_o dy[n,o]·w[o,i] where x[n,i] > 0, else 0
//
// NaN passes through y, and the gradient is 0 where x is NaN, as in relu.

var denseReLU = linear{factors: []int{1, 2}, bias: 3, relu: func([]float64) bool { return true }}.of(Kernel{
	Op: "dense.relu", Doc: "y = max(0, x·wᵀ + b)",
	Operands: []Operand{
		writes("y", Real, "n f"),
		reads("x", Real, "n c"),
		reads("w", Real, "f c"),
		optional(reads("b", Real, "f")),
	},
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return s.volume(0) + biasFlops(s, 3, 0) },
},
	atLevels("as dense, compared before it is stored", denseReLUAt[float32], denseReLUAt[float64], nil),
	denseTiles.variants(denseForward(true)), denseTiles.libraryVariants(0, denseForward(true)))

var denseDxReLU = linear{factors: []int{1, 2}, gate: 3}.of(Kernel{
	Op: "dense.dx.relu", Doc: "dx = dy·w where x > 0, else 0",
	Operands: []Operand{
		writes("dx", Real, "n c"),
		reads("dy", Real, "n f"),
		reads("w", Real, "f c"),
		reads("x", Real, "n c"),
	},
	PerPoint: 2,
	Flops:    perElement(1, 0),
},
	atLevels("as dense.dx, masked before it is stored", denseDxReLUAt[float32], denseDxReLUAt[float64], nil),
	denseDxTiles.variants(denseDxProducts), denseDxTiles.libraryVariants(0, denseDxProducts))
