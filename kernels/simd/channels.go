package simd

import "unsafe"

// Channels is the loops of batch normalisation over channels-last images: at each of Pixels pixels, over channels that
// follow each other. Products and sums are rounded one by one, and sums go from the first pixel to the last, so that
// all levels give equal bits. The methods say what the images and the rows are. Image i has Steps[i] elements from
// a pixel to the next one, and rows have an element per channel.
type Channels[T Float] struct {
	Images [4][]T
	Steps  [4]int
	Rows   [6][]T
	Pixels int
	Count  int  // of channels
	ReLU   bool // what the methods say it does
	Add    bool // likewise
}

// channelArgs is the argument of one call of the assembly. gen/channels.go knows the order of the fields.
type channelArgs struct {
	images        [4]unsafe.Pointer
	steps         [4]int // in bytes
	rows          [6]unsafe.Pointer
	pixels        int
	vectors, tail int // whole vectors, and channels beyond them
	mask          uintptr
	flags         uint64
}

// vectors runs the assembly of a loop over some images and rows, and reports whether there is one.
func (c *Channels[T]) vectors(l Level, loop *forms[channelArgs], images, rows int) bool {
	if c.Pixels < 1 || c.Count < 1 {
		return true
	}
	a := channelArgs{pixels: c.Pixels}
	if c.ReLU {
		a.flags |= 1
	}
	if c.Add {
		a.flags |= 2
	} else if loop == &channelNormalise || loop == &channelGate {
		images-- // r is the last one
	}
	for i := range images {
		if c.Steps[i] < 0 || (c.Pixels-1)*c.Steps[i]+c.Count > len(c.Images[i]) {
			panic("simd: pixels beyond an image")
		}
		a.images[i], a.steps[i] = pointer(c.Images[i]), c.Steps[i]*size(c.Images[i])
	}
	for i := range rows {
		if c.Count > len(c.Rows[i]) {
			panic("simd: channels beyond a row")
		}
		a.rows[i] = pointer(c.Rows[i])
	}
	return a.run(loop, l, c.Count, size(c.Rows[0]))
}

// pixel is the channels of a pixel of an image.
func (c *Channels[T]) pixel(image, p int) []T { return c.Images[image][p*c.Steps[image]:][:c.Count] }

// Sums adds x to s. Images: x. Rows: s.
func (c *Channels[T]) Sums(l Level) {
	if c.vectors(l, &channelSums, 1, 1) {
		return
	}
	s := c.Rows[0][:c.Count]
	for p := range c.Pixels {
		for i, v := range c.pixel(0, p) {
			s[i] += v
		}
	}
}

// Squares adds (x - mean)² to q. Images: x. Rows: q, mean.
func (c *Channels[T]) Squares(l Level) {
	if c.vectors(l, &channelSquares, 1, 2) {
		return
	}
	q, mean := c.Rows[0][:c.Count], c.Rows[1]
	for p := range c.Pixels {
		for i, v := range c.pixel(0, p) {
			d := v - mean[i]
			q[i] += T(d * d)
		}
	}
}

// Normalise computes y = (x - mean)·scale + shift, with Add plus r, and with ReLU not below 0. Images: y, x, r. Rows: mean,
// scale, shift.
func (c *Channels[T]) Normalise(l Level) {
	if c.vectors(l, &channelNormalise, 3, 3) {
		return
	}
	mean, scale, shift := c.Rows[0], c.Rows[1], c.Rows[2]
	for p := range c.Pixels {
		y := c.pixel(0, p)
		for i, x := range c.pixel(1, p) {
			v := T((x-mean[i])*scale[i]) + shift[i]
			if c.Add {
				v += c.Images[2][p*c.Steps[2]+i]
			}
			if c.ReLU && v < 0 {
				v = 0
			}
			y[i] = v
		}
	}
}

// GradientSums adds dy to s and dy·(x - mean) to q, with ReLU only where Normalise without Add gives a positive
// number. Images: dy, x. Rows: mean, scale, shift, s, q.
func (c *Channels[T]) GradientSums(l Level) {
	if c.vectors(l, &channelGradientSums, 2, 5) {
		return
	}
	mean, scale, shift, s, q := c.Rows[0], c.Rows[1], c.Rows[2], c.Rows[3], c.Rows[4]
	for p := range c.Pixels {
		x := c.pixel(1, p)
		for i, g := range c.pixel(0, p) {
			d := x[i] - mean[i]
			if c.ReLU && !(T(d*scale[i])+shift[i] > 0) {
				g = 0
			}
			s[i] += g
			q[i] += T(g * d)
		}
	}
}

// Gate makes dy, with Add plus r, 0 where y is not positive, and adds it to s, and dy·(x - mean) to q. Images: dy, y, x, r. Rows:
// mean, s, q.
func (c *Channels[T]) Gate(l Level) {
	if c.vectors(l, &channelGate, 4, 3) {
		return
	}
	mean, s, q := c.Rows[0], c.Rows[1], c.Rows[2]
	for p := range c.Pixels {
		dy, y, x := c.pixel(0, p), c.pixel(1, p), c.pixel(2, p)
		for i, g := range dy {
			if c.Add {
				g += c.Images[3][p*c.Steps[3]+i]
			}
			if !(y[i] > 0) {
				g = 0
			}
			dy[i] = g
			s[i] += g
			q[i] += T(g * (x[i] - mean[i]))
		}
	}
}

// Gradient computes dx = a·dy + b·(x - mean) + e, with ReLU with 0 for dy where GradientSums has none. Images: dx, dy, x. Rows:
// mean, scale, shift, a, b, e.
func (c *Channels[T]) Gradient(l Level) {
	if c.vectors(l, &channelGradient, 3, 6) {
		return
	}
	mean, scale, shift, a, b, e := c.Rows[0], c.Rows[1], c.Rows[2], c.Rows[3], c.Rows[4], c.Rows[5]
	for p := range c.Pixels {
		dx, x := c.pixel(0, p), c.pixel(2, p)
		for i, g := range c.pixel(1, p) {
			d := x[i] - mean[i]
			if c.ReLU && !(T(d*scale[i])+shift[i] > 0) {
				g = 0
			}
			dx[i] = T(a[i]*g) + T(b[i]*d) + e[i]
		}
	}
}

// run calls the assembly of a loop for n channels and reports whether there is one.
func (a *channelArgs) run(loop *forms[channelArgs], l Level, n, size int) bool {
	if l == Go {
		return false
	}
	lanes := l.bytes() / size
	a.vectors, a.tail = n/lanes, n%lanes
	if a.tail > 0 {
		a.mask = l.mask(a.tail, size)
	} else {
		a.mask = l.mask(lanes, size)
	}
	loop.call(l, size, a)
	return true
}
