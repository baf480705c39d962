package kernels

// maximaGo computes windows of 2×2 without branches on the data; other squares are scanned. All
// windows lie in the image, from its first pixel on, and channels come before rows.
func (p *pooling[T]) maximaGo() {
	for n := range p.y.extent[0] {
		for c := range p.y.extent[1] {
			for u := range p.y.extent[2] {
				out := p.y.elems[p.y.at(n, c, u, 0):][:p.y.extent[3]]
				positions := p.index.elems[p.index.at(n, c, u, 0):][:len(out)]
				rows := p.x.elems[p.x.at(n, c, u*p.stride, 0):]
				for v := range out {
					if at := rows[v*p.stride:]; p.height == 2 {
						out[v], positions[v] = maximum2x2(at, at[p.x.stride[2]:])
					} else {
						out[v], positions[v] = firstMaximum(at, p.x.stride[2], p.height)
					}
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

// spreadGo adds the gradient of windows of 2×2 row by row; other squares as the reference does.
// The windows lie as for maximaGo.
func (p *pooling[T]) spreadGo() {
	if p.height != 2 {
		p.spread(area{})
		return
	}
	for n := range p.y.extent[0] {
		for c := range p.y.extent[1] {
			for u := range p.y.extent[2] {
				at := p.x.at(n, c, u*p.stride, 0)
				positions := p.index.elems[p.index.at(n, c, u, 0):][:p.y.extent[3]]
				for v, g := range p.y.elems[p.y.at(n, c, u, 0):][:len(positions)] {
					if from := int(positions[v]); from != noMaximum {
						p.x.elems[at+from>>1*p.x.stride[2]+from&1] += g
					}
					at += p.stride
				}
			}
		}
	}
}
