package gpu

import "dahl/kernels/calls"

// Dense layers on CUDA devices. The gradient of the bias is one more column of dw, as x gets a
// column of ones.

// The families of products of dense layers.
var (
	DenseTiles = productFamily{
		module: "dense", name: "dense", transposedB: true,
		simt:   []productTile{tile128x64, tile64x64, tile128x16},
		simt64: []productTile{tile64x64},
		tensor: []productTile{tensor128x128, tensor64x64, tensor128x32},
	}
	DenseDxTiles = productFamily{
		module: "dense", name: "dense_dx",
		simt:   []productTile{tile128x64, tile64x64},
		simt64: []productTile{tile64x64},
		tensor: []productTile{tensor128x128, tensor64x64},
	}
	DenseDwTiles = productFamily{
		module: "dense", name: "dense_dw", transposedA: true,
		simt:   []productTile{tile128x64, tile64x64, tile16x128},
		simt64: []productTile{tile64x64},
		tensor: []productTile{tensor128x128, tensor64x64},
	}
)

// matrix is a matrix operand, vectorised where it can be.
func matrix(call *calls.DeviceCall, i int) productOperand {
	a := &call.Args[i]
	return matrixOperand(a).vectorised(call.Type, a.Shape[1])
}

// DenseForward is the product x·wᵀ + b of a dense layer, with relu its positive part. Operands are y of n×f, x of n×c, w of
// f×c, and an optional b of f.
func DenseForward(relu bool) products {
	return func(call *calls.DeviceCall) []productParams {
		y, x, w := &call.Args[0], &call.Args[1], &call.Args[2]
		p := productParams{
			a: matrix(call, 1), b: matrix(call, 2), bias: call.Bias(3), relu: flag(relu), add: flag(y.Accumulates()),
			m: index32(x.Shape[0]), n: index32(w.Shape[0]), k: index32(x.Shape[1]),
		}
		p.matrixResult(y)
		return []productParams{p}
	}
}

// DenseDxProducts is the product dy·w of dense.dx. Operands are dx of n×c, dy of n×f, w of f×c, and with ReLU also x of n×c,
// where dx is 0 unless x is above 0.
func DenseDxProducts(call *calls.DeviceCall) []productParams {
	dx, dy, w := &call.Args[0], &call.Args[1], &call.Args[2]
	p := productParams{
		a: matrix(call, 1), b: matrix(call, 2), add: flag(dx.Accumulates()),
		m: index32(dy.Shape[0]), n: index32(w.Shape[1]), k: index32(dy.Shape[1]),
	}
	p.matrixResult(dx)
	if len(call.Args) > 3 {
		x := &call.Args[3]
		p.companion(x.Addr, calls.Triple{x.Stride[0], 0, 0}, 1)
	}
	return []productParams{p}
}

// denseGradient is dyᵀ·x, with a column of ones where the bias has a gradient.
func denseGradient(call *calls.DeviceCall, dy, x int, ones bool) productParams {
	p := productParams{
		a: matrix(call, dy), b: matrix(call, x),
		m: index32(call.Args[dy].Shape[1]), n: index32(call.Args[x].Shape[1]), k: index32(call.Args[dy].Shape[0]),
	}
	if ones {
		p.b, p.ones = p.b.withOnes(), columnOfOnes
		p.n++
	}
	return p
}

// DenseDwProducts is the product dyᵀ·x of dense.dw, with a column of ones for db. Operands are dw of f×c, dy of n×f, x of n×c,
// and an optional db of f.
func DenseDwProducts(call *calls.DeviceCall) []productParams {
	p := denseGradient(call, 1, 2, len(call.Args) > 3)
	p.matrixResult(&call.Args[0])
	p.add = flag(call.Args[0].Accumulates())
	if len(call.Args) > 3 {
		p.bias, p.addBias = call.Args[3].Addr, flag(call.Args[3].Accumulates())
	}
	return []productParams{p}
}

// DenseDescentProducts is the product of dense.dw.sgd, whose result is a step of SGD of w and b in place of a gradient.
// Operands are w of f×c, dy of n×f, x of n×c, hyper, b unless with has NoBias, and velocities.
func DenseDescentProducts(with calls.Attributes) products {
	return func(call *calls.DeviceCall) []productParams {
		_, vw := calls.AfterHyper(3, with)
		p := denseGradient(call, 1, 2, !with.Has(calls.NoBias))
		p.matrixResult(&call.Args[0])
		if p.descends(call, 3, with) {
			v := &call.Args[vw]
			p.companion(v.Addr, calls.Triple{v.Stride[0], 0, 0}, 1)
		}
		return []productParams{p}
	}
}
