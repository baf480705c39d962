package kernels

// maxpoolGo computes windows of 2×2 without branches on the data; other windows as
// the reference does.
func maxpoolGo[T Float](call *Call) {
	if call.Params[0] != 2 {
		maxpoolRef[T](call)
		return
	}
	y, index, x := map4Of[T](&call.Args[0]), map4Of[uint8](&call.Args[1]), map4Of[T](&call.Args[2])
	stride := int(call.Params[1])
	for n := range y.extent[0] {
		for c := range y.extent[1] {
			for u := range y.extent[2] {
				out := y.elems[y.at(n, c, u, 0):][:y.extent[3]]
				positions := index.elems[index.at(n, c, u, 0):][:len(out)]
				top := x.elems[x.at(n, c, u*stride, 0):][:x.extent[3]]
				bottom := x.elems[x.at(n, c, u*stride+1, 0):][:x.extent[3]]
				for v := range out {
					out[v], positions[v] = maximum2x2(top[v*stride:], bottom[v*stride:])
				}
			}
		}
	}
}

// maximum2x2 is firstMaximum of the window at the start of two rows.
func maximum2x2[T Float](top, bottom []T) (most T, position uint8) {
	a, b, c, d := top[0], top[1], bottom[0], bottom[1]
	most = max(max(a, b), max(c, d)) // NaN if any is
	position = 3
	if c == most {
		position = 2
	}
	if b == most {
		position = 1
	}
	if a == most {
		position = 0
	}
	if most != most {
		position = firstNaN(a, b, c)
	}
	return most, position
}

// firstNaN is the position of the first NaN of a, b, c, or 3.
func firstNaN[T Float](a, b, c T) uint8 {
	switch {
	case a != a:
		return 0
	case b != b:
		return 1
	case c != c:
		return 2
	}
	return 3
}

// maxpoolDxGo visits windows of 2×2 row by row; other windows as the reference does.
func maxpoolDxGo[T Float](call *Call) {
	if call.Params[0] != 2 {
		maxpoolDxRef[T](call)
		return
	}
	dx, dy, index := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[uint8](&call.Args[2])
	stride := int(call.Params[1])
	dx.clear()
	for n := range dx.extent[0] {
		for c := range dx.extent[1] {
			for u := range dy.extent[2] {
				at := dx.at(n, c, u*stride, 0)
				positions := index.elems[index.at(n, c, u, 0):][:dy.extent[3]]
				for v, g := range dy.elems[dy.at(n, c, u, 0):][:len(positions)] {
					p := int(positions[v])
					dx.elems[at+p>>1*dx.stride[2]+p&1] += g
					at += stride
				}
			}
		}
	}
}
