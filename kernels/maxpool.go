package kernels

// Max-pooling without padding over size×size windows, at most 15×15, so that a
// position in the window fits a byte. The first of equal maxima in row-major order
// is taken, and NaN wins, as in PyTorch.

var maxpool = Kernel{
	Op: "maxpool", Doc: "y = maximum of each window, index = its row-major position in the window",
	Operands: []Operand{
		writes("y", Real, "n c oh ow"),
		writes("index", Mask, "n c oh ow"),
		reads("x", Real, "n c h w"),
	},
	Params: []string{"size", "stride"},
	Check: func(s *Spec) error {
		return checkPool(s, sliding{out: 0, outName: "y", in: 2, inName: "x"}, maxWindow)
	},
	Work: poolWork(0),
	Variants: []Variant{
		{Name: "ref", Doc: "a scan of each window", Run32: maxpoolRef[float32], Run64: maxpoolRef[float64]},
		{Name: "go", Doc: "2×2 windows without branches", Run32: maxpoolGo[float32], Run64: maxpoolGo[float64]},
	},
}

var maxpoolDx = Kernel{
	Op: "maxpool.dx", Doc: "dx = dy at each window's maximum, summed over windows, else 0",
	Operands: []Operand{
		writes("dx", Real, "n c h w"),
		reads("dy", Real, "n c oh ow"),
		reads("index", Mask, "n c oh ow"),
	},
	Params: []string{"size", "stride"},
	Check: func(s *Spec) error {
		return checkPool(s, sliding{out: 1, outName: "dy", in: 0, inName: "dx"}, maxWindow)
	},
	Work: perElement(1, 1),
	Variants: []Variant{
		{Name: "ref", Doc: "zero, then add in the order of dy", Run32: maxpoolDxRef[float32], Run64: maxpoolDxRef[float64]},
		{Name: "go", Doc: "2×2 windows without division", Run32: maxpoolDxGo[float32], Run64: maxpoolDxGo[float64]},
	},
}

// checkPool checks the maps of a pooling with windows of at most largest.
func checkPool(s *Spec, g sliding, largest int) error {
	var err error
	if g.size, err = intParam(s, "size", 1, largest); err != nil {
		return err
	}
	if g.stride, err = intParam(s, "stride", 1, maxGeometry); err != nil {
		return err
	}
	return g.check(s)
}

// poolWork counts one operation per element of each window of operand y.
func poolWork(y int) func(*Spec) (float64, int64) {
	return func(s *Spec) (float64, int64) {
		size := s.Param("size")
		return s.volume(y) * size * size, s.Bytes()
	}
}

func maxpoolRef[T Float](call *Call) {
	y, index, x := map4Of[T](&call.Args[0]), map4Of[uint8](&call.Args[1]), map4Of[T](&call.Args[2])
	size, stride := int(call.Params[0]), int(call.Params[1])
	for n := range y.extent[0] {
		for c := range y.extent[1] {
			for u := range y.extent[2] {
				for v := range y.extent[3] {
					most, position := firstMaximum(x.elems[x.at(n, c, u*stride, v*stride):], x.stride[2], size)
					y.elems[y.at(n, c, u, v)] = most
					index.elems[index.at(n, c, u, v)] = position
				}
			}
		}
	}
}

// firstMaximum scans the size×size window at the start of x, whose rows are stride
// elements apart.
func firstMaximum[T Float](x []T, stride, size int) (most T, position uint8) {
	most = x[0]
	for i := range size {
		for j, v := range x[i*stride : i*stride+size] {
			if v > most || v != v && most == most {
				most, position = v, uint8(i*size+j)
			}
		}
	}
	return most, position
}

func maxpoolDxRef[T Float](call *Call) {
	dx, dy, index := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[uint8](&call.Args[2])
	size, stride := int(call.Params[0]), int(call.Params[1])
	for n := range dx.extent[0] {
		for c := range dx.extent[1] {
			dx.clear(n, c)
			for u := range dy.extent[2] {
				for v := range dy.extent[3] {
					p := int(index.elems[index.at(n, c, u, v)])
					dx.elems[dx.at(n, c, u*stride+p/size, v*stride+p%size)] += dy.elems[dy.at(n, c, u, v)]
				}
			}
		}
	}
}

// clear sets map (n, c) to zero.
func (m *map4[T]) clear(n, c int) {
	for a := range m.extent[2] {
		at := m.at(n, c, a, 0)
		clear(m.elems[at : at+m.extent[3]])
	}
}
