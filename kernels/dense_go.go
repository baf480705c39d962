package kernels

// denseDepth is how many inputs are taken at a time: four rows of weights of that
// length (32 or 64 KB) stay in the cache while all samples pass over them.
const denseDepth = 2048

// denseGo computes four outputs of a sample at a time as dot products, block after
// block of the inputs: the sums of the blocks are added in order, the bias last.
func denseGo[T Float](call *Call) {
	y, x, w := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	clearRows(&y)
	for i := 0; i < x.columns; i += denseDepth {
		end := min(i+denseDepth, x.columns)
		o := 0
		for ; o+4 <= y.columns; o += 4 {
			w0, w1, w2, w3 := w.row(o)[i:end], w.row(o + 1)[i:end], w.row(o + 2)[i:end], w.row(o + 3)[i:end]
			for n := range y.rows {
				addDots4((*[4]T)(y.row(n)[o:]), x.row(n)[i:end], w0, w1, w2, w3)
			}
		}
		for ; o < y.columns; o++ {
			for n := range y.rows {
				y.row(n)[o] += dot(x.row(n)[i:end], w.row(o)[i:end])
			}
		}
	}
	if len(call.Args) > 3 {
		b := Data[T](&call.Args[3])
		for n := range y.rows {
			for o, v := range b {
				y.row(n)[o] += v
			}
		}
	}
}

// addDots4 adds the dot products of x with four rows to y.
func addDots4[T Float](y *[4]T, x, w0, w1, w2, w3 []T) {
	w0, w1, w2, w3 = w0[:len(x)], w1[:len(x)], w2[:len(x)], w3[:len(x)]
	var s0, s1, s2, s3 T
	for i, v := range x {
		s0 += w0[i] * v
		s1 += w1[i] * v
		s2 += w2[i] * v
		s3 += w3[i] * v
	}
	y[0] += s0
	y[1] += s1
	y[2] += s2
	y[3] += s3
}

func dot[T Float](x, w []T) T {
	w = w[:len(x)]
	var sum T
	for i, v := range x {
		sum += w[i] * v
	}
	return sum
}

// denseDxGo adds the products to dx in place, in the order of o.
func denseDxGo[T Float](call *Call) {
	dx, dy, w := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	if !call.Args[0].Accumulates() {
		clearRows(&dx)
	}
	addProduct(dx.matrix(), dy.matrix(), w.matrix(), dx.rows, dy.columns, dx.columns)
}

// denseDwGo adds the products to dw in place, in the order of n.
func denseDwGo[T Float](call *Call) {
	dw, dy, x := map2Of[T](&call.Args[0]), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	if !call.Args[0].Accumulates() {
		clearRows(&dw)
	}
	addProduct(dw.matrix(), matrix[T]{dy.elems, 1, dy.stride}, x.matrix(), dw.rows, dy.rows, dw.columns)
	if len(call.Args) > 3 {
		sumRows(&call.Args[3], &dy)
	}
}

func (m *map2[T]) matrix() matrix[T] { return matrix[T]{m.elems, m.stride, 1} }

func clearRows[T Float](m *map2[T]) {
	for i := range m.rows {
		clear(m.row(i))
	}
}
