package simd

// runGo is the product in plain Go, four columns at a time.
func (d *Dot[T]) runGo() {
	j := 0
	for ; j+4 <= d.N; j += 4 {
		b := d.B[j*d.BRow:]
		b0, b1, b2, b3 := b[:d.K], b[d.BRow:][:d.K], b[2*d.BRow:][:d.K], b[3*d.BRow:][:d.K]
		for i := range d.M {
			s0, s1, s2, s3 := dot4(d.A[i*d.ARow:][:d.K], b0, b1, b2, b3)
			d.put(i, j, s0)
			d.put(i, j+1, s1)
			d.put(i, j+2, s2)
			d.put(i, j+3, s3)
		}
	}
	for ; j < d.N; j++ {
		b := d.B[j*d.BRow:][:d.K]
		for i := range d.M {
			var sum T
			for p, v := range d.A[i*d.ARow:][:d.K] {
				sum += b[p] * v
			}
			d.put(i, j, sum)
		}
	}
}

// dot4 is the dot products of a with four vectors of its length.
func dot4[T Float](a, b0, b1, b2, b3 []T) (s0, s1, s2, s3 T) {
	b0, b1, b2, b3 = b0[:len(a)], b1[:len(a)], b2[:len(a)], b3[:len(a)]
	for p, v := range a {
		s0 += b0[p] * v
		s1 += b1[p] * v
		s2 += b2[p] * v
		s3 += b3[p] * v
	}
	return s0, s1, s2, s3
}

// put adds the initial value of the sum of C[i,j], and stores it.
func (d *Dot[T]) put(i, j int, sum T) {
	c := &d.C[i*d.CRow+j]
	switch {
	case d.Accumulate:
		sum += *c
	case d.Bias != nil:
		sum += d.Bias[j]
	}
	if d.ReLU && sum < 0 {
		sum = 0
	}
	*c = sum
}
