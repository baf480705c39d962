package kernels

// Fully connected layer followed by a rectifier, and the gradient of one whose input
// x came out of a rectifier:
//
//	y[n,o]  = max(0, b[o] + Σ_i x[n,i]·w[o,i])
//	dx[n,i] = Σ_o dy[n,o]·w[o,i] where x[n,i] > 0, else 0
//
// NaN passes through y, and the gradient is 0 where x is NaN, as in relu.

var denseReLU = Kernel{
	Op: "dense.relu", Doc: "y = max(0, x·wᵀ + b)",
	Operands: []Operand{
		writes("y", Real, "n f"),
		reads("x", Real, "n c"),
		reads("w", Real, "f c"),
		optional(reads("b", Real, "f")),
	},
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return s.volume(0) + biasFlops(s, 3, 0) },
	Variants: withRef("dense, then one comparison per element", denseReLURef[float32], denseReLURef[float64],
		atLevels("as dense, compared before it is stored", denseReLUAt[float32], denseReLUAt[float64], nil),
		denseTiles.variants(denseForward(true)), denseTiles.libraryVariants(0, denseForward(true))),
}

var denseDxReLU = Kernel{
	Op: "dense.dx.relu", Doc: "dx = dy·w where x > 0, else 0",
	Operands: []Operand{
		writes("dx", Real, "n c"),
		reads("dy", Real, "n f"),
		reads("w", Real, "f c"),
		reads("x", Real, "n c"),
	},
	PerPoint: 2,
	Flops:    perElement(1, 0),
	Variants: withRef("dense.dx, then one comparison per element", denseDxReLURef[float32], denseDxReLURef[float64],
		atLevels("as dense.dx, masked before it is stored", denseDxReLUAt[float32], denseDxReLUAt[float64], nil),
		denseDxTiles.variants(denseDxProducts), denseDxTiles.libraryVariants(0, denseDxProducts)),
}

func denseReLURef[T Float](call *Call) {
	denseRef[T](call)
	y := map2Of[T](&call.Args[0])
	for n := range y.rows {
		for o, v := range y.row(n) {
			if v <= 0 {
				y.row(n)[o] = 0
			}
		}
	}
}

func denseDxReLURef[T Float](call *Call) {
	denseDxRef[T](call)
	dx, x := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[3])
	for n := range dx.rows {
		row := dx.row(n)
		for i, v := range x.row(n) {
			if !(v > 0) {
				row[i] = 0
			}
		}
	}
}
