package kernels

// Fully connected layer of i inputs and o outputs, weights as PyTorch stores them:
//
//	y[n,o]  = b[o] + Σ_i x[n,i]·w[o,i]
//	dx[n,i] = Σ_o dy[n,o]·w[o,i]
//	dw[o,i] = Σ_n dy[n,o]·x[n,i]
//	db[o]   = Σ_n dy[n,o]

var dense = Kernel{
	Op: "dense", Doc: "y = x·wᵀ + b",
	Operands: []Operand{
		sums("y", "n f"),
		reads("x", Real, "n c"),
		reads("w", Real, "f c"),
		optional(reads("b", Real, "f")),
	},
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return biasFlops(s, 3, 0) },
	Variants: withRef("the sum as written", denseRef[float32], denseRef[float64],
		atLevels("four dot products at a time, in blocks of the inputs", denseAt[float32], denseAt[float64], denseWorkspace),
		denseTiles.variants(denseForward(false)), denseTiles.libraryVariants(0, denseForward(false))),
}

var denseDx = Kernel{
	Op: "dense.dx", Doc: "dx = dy·w",
	Operands: []Operand{
		sums("dx", "n c"),
		reads("dy", Real, "n f"),
		reads("w", Real, "f c"),
	},
	PerPoint: 2,
	Variants: withRef("the sum as written", denseDxRef[float32], denseDxRef[float64],
		atLevels("rank-1 updates of several rows, added in place", denseDxAt[float32], denseDxAt[float64], nil),
		denseDxTiles.variants(denseDxProducts), denseDxTiles.libraryVariants(0, denseDxProducts)),
}

var denseDw = Kernel{
	Op: "dense.dw", Doc: "dw = dyᵀ·x, db = column sums of dy",
	Operands: []Operand{
		sums("dw", "f c"),
		reads("dy", Real, "n f"),
		reads("x", Real, "n c"),
		optional(sums("db", "f")),
	},
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return biasFlops(s, 3, 1) },
	Variants: withRef("the sum as written", denseDwRef[float32], denseDwRef[float64],
		atLevels("rank-1 updates of several rows, added in place", denseDwAt[float32], denseDwAt[float64], nil),
		denseDwTiles.variants(denseDwProducts), denseDwTiles.libraryVariants(0, denseDwProducts)),
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

// denseRef adds the products in the order of i and the bias last, then stores or adds the sum.
func denseRef[T Float](call *Call) {
	y, x, w := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	add := call.Args[0].Accumulates()
	for n := range y.rows {
		for o := range y.columns {
			var sum T
			for i, v := range x.row(n) {
				sum += v * w.row(o)[i]
			}
			if len(call.Args) > 3 {
				sum += Data[T](&call.Args[3])[o]
			}
			put(&y.row(n)[o], sum, add)
		}
	}
}

// denseDxRef adds the products in the order of o, then stores or adds the sum.
func denseDxRef[T Float](call *Call) {
	dx, dy, w := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	add := call.Args[0].Accumulates()
	for n := range dx.rows {
		for i := range dx.columns {
			var sum T
			for o, v := range dy.row(n) {
				sum += v * w.row(o)[i]
			}
			put(&dx.row(n)[i], sum, add)
		}
	}
}

// denseDwRef adds the products in the order of n, then stores or adds the sums.
func denseDwRef[T Float](call *Call) {
	dw, dy, x := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	add := call.Args[0].Accumulates()
	for o := range dw.rows {
		for i := range dw.columns {
			put(&dw.row(o)[i], columnDot(&dy, o, &x, i), add)
		}
	}
	if len(call.Args) > 3 {
		sumRows(&call.Args[3], &dy)
	}
}

// sumRows sets or adds db[o] = Σ_n dy[n,o].
func sumRows[T Float](db *Arg, dy *map2[T]) {
	out := Data[T](db)
	for o := range dy.columns {
		put(&out[o], columnSum(dy, o), db.Accumulates())
	}
}

// columnDot is Σ_n a[n,j]·b[n,k].
func columnDot[T Float](a *map2[T], j int, b *map2[T], k int) (sum T) {
	for n := range a.rows {
		sum += a.row(n)[j] * b.row(n)[k]
	}
	return sum
}

// columnSum is Σ_n a[n,j].
func columnSum[T Float](a *map2[T], j int) (sum T) {
	for n := range a.rows {
		sum += a.row(n)[j]
	}
	return sum
}
