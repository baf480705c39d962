package simd

// Product is a batch-reduced matrix product, the building block of dense layers and convolutions
// (Georganas et al., "Harnessing Deep Learning via a Single Building Block", IPDPS 2020):
//
//	C[i,j] = Bias[j] + Σ_{o<Outer} Σ_{b<Batch} Σ_{p<K} A_ob[i,p]·B_ob[p,j]     i < M, j < N
//
// with A_ob[i,p] = A[o·AOuter + b·ABatch + i·ARow + p·AStep], B_ob[p,j] = B[o·BOuter + b·BBatch + p·BRow + j]
// and C[i,j] = C[i·CRow + j]. Rows of B and C are contiguous, A has any two strides:
// ARow = 1 reads it transposed. A convolution over channels-last images is one
// product per run of output pixels, with the rows of the window as the batch.
//
// Groups above 1 do the same for groups g of M rows. They add g·AGroup to the positions in A and
// g·CGroup to those in C. The rows of an output map are such groups.
//
// The sum of one element starts from zero, from the bias or from C, and takes the products in the
// order of o, b, then p. Vectors of a few rows and columns would wait for each other. For these,
// every second or fourth step of each b is summed separately, and the partial sums are added at
// the end. M, N and the level decide for which elements.
type Product[T Float] struct {
	M, N, K, Batch int
	Outer, Groups  int // 0 is 1

	A, B, C                             []T
	ARow, AStep, ABatch, AOuter, AGroup int
	BRow, BBatch, BOuter                int
	CRow, CGroup                        int

	// Next, if not empty, is memory that the next product reads. Vector instructions fetch it to the
	// cache meanwhile.
	Next [2][]T

	Bias       []T  // of N elements, or nil
	Accumulate bool // start from C; Bias is not used
	ReLU       bool // replace a negative result by zero; NaN stays

	// Where, if not nil, has an element for each element of C, at i·WhereRow + j of its group. A
	// result is set to zero where that element is not positive.
	Where                []T
	WhereRow, WhereGroup int
}

// check panics if an operand is shorter than the extents and distances say.
func (p *Product[T]) check() {
	if p.M < 1 || p.N < 1 || p.K < 1 || p.Batch < 1 || p.Outer < 0 || p.Groups < 0 {
		panic("simd: product of an empty matrix")
	}
	if p.ARow|p.AStep|p.ABatch|p.AOuter|p.AGroup|p.BRow|p.BBatch|p.BOuter|p.CRow|p.CGroup|p.WhereRow|p.WhereGroup < 0 {
		panic("simd: product with a negative distance")
	}
	last, outer := max(p.Groups, 1)-1, max(p.Outer, 1)-1
	lastA := (p.M-1)*p.ARow + (p.K-1)*p.AStep + (p.Batch-1)*p.ABatch + outer*p.AOuter + last*p.AGroup
	lastB := (p.K-1)*p.BRow + (p.Batch-1)*p.BBatch + outer*p.BOuter + p.N - 1
	lastC := (p.M-1)*p.CRow + p.N - 1 + last*p.CGroup
	lastWhere := (p.M-1)*p.WhereRow + p.N - 1 + last*p.WhereGroup
	if lastA >= len(p.A) || lastB >= len(p.B) || lastC >= len(p.C) ||
		p.Bias != nil && p.N > len(p.Bias) || p.Where != nil && lastWhere >= len(p.Where) {
		panic("simd: product reaches beyond an operand")
	}
}

// Run computes the product at a level.
func (p *Product[T]) Run(l Level) {
	p.check()
	if l == Go {
		p.runGo()
		return
	}
	p.runVectors(l)
}
