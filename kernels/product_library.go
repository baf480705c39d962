package kernels

import (
	"dahl/dag"
	"dahl/kernels/cuda"
)

// Products of matrices by a library, cuBLAS, as variants beside our own kernels: "cublas" in
// the arithmetic of the type, "cublas-tf32" on tensor cores. The library leaves the product in
// the result where nothing follows it, else in the workspace, where product_follow takes it on
// to what our kernels end with. Gradients of biases are a product of ours, with a column of ones.

// CuBLAS is the library's name in Variant.Library.
const CuBLAS = "cublas"

// libraryWorkBytes is the library's own workspace: what cuBLAS takes for itself on most
// devices. It is the same on all, since the choice of a kernel, and with it the bits, may
// depend on it.
const libraryWorkBytes = 4 << 20

// workAlignment is that of any call's workspace, and of the library's in it.
const workAlignment = 256

// matrixFactors says which factors of a family's products are transposed, where they lie.
type matrixFactors struct{ a, b bool }

var (
	denseFactors   = matrixFactors{b: true}
	denseDxFactors = matrixFactors{}
	denseDwFactors = matrixFactors{a: true}
)

// libraryProduct is one product of matrices as it is shared out: by whom what is done.
type libraryProduct struct {
	family  *productFamily
	factors matrixFactors
	of      products
	params  []string
}

// libraryVariants are "cublas" and "cublas-tf32" of an operation that is one product of the
// family, whose parameters are named.
func (f *productFamily) libraryVariants(factors matrixFactors, of products, params ...string) []Variant {
	l := &libraryProduct{f, factors, of, params}
	exact := onCUDA("cuBLAS, in the type's own arithmetic", l.launches, l.workspace)
	exact.Name, exact.Library, exact.MostElements = "cublas", CuBLAS, mostCounted
	exact.Product = func(call *DeviceCall) cuda.Product { return l.product(call, false) }
	tf32 := onCUDA("cuBLAS on tensor cores: factors rounded to 11 bits, sums in float32", l.launches, l.workspace)
	tf32.Name, tf32.Library, tf32.Types, tf32.Capability = "cublas-tf32", CuBLAS, []dag.DType{dag.Float32}, 80
	tf32.MostElements = mostCounted
	tf32.Product = func(call *DeviceCall) cuda.Product { return l.product(call, true) }
	return []Variant{exact, tf32}
}

// parts are the call's product without a column of ones, and, where there is one, the product
// that is that column alone.
func (l *libraryProduct) parts(call *DeviceCall) (main productParams, ones *productParams) {
	main = l.of(call)[0]
	if main.ones == noOnes {
		return main, nil
	}
	column := main
	column.n, column.b.taps, column.b.ones, column.b.vector = 1, 0, 0, 0
	main.n--
	main.ones, main.bias = noOnes, 0
	return main, &column
}

// direct reports whether the library's product is the result, so that nothing follows it.
func direct(p *productParams) bool {
	return p.after == afterStore && p.bias == 0 && p.relu == 0 && p.other == 0
}

// indirectBytes is the product in the workspace: m rows of n elements rounded up to 4.
func indirectBytes(t dag.DType, p *productParams) int64 {
	if direct(p) {
		return 0
	}
	bytes := int64(p.m) * int64((p.n+3)&^3) * t.SizeBytes()
	return (bytes + workAlignment - 1) &^ (workAlignment - 1)
}

// product is what the library does of a call.
func (l *libraryProduct) product(call *DeviceCall, tf32 bool) cuda.Product {
	p, _ := l.parts(call)
	c := cuda.Matrix{Addr: p.c, Stride: index32(int(p.cOuter))}
	if !direct(&p) {
		c = cuda.Matrix{Addr: call.Work, Stride: (p.n + 3) &^ 3}
	}
	return cuda.Product{
		Float64: call.Type == dag.Float64, TF32: tf32, Rows: p.m, Columns: p.n, Depth: p.k,
		A: cuda.Matrix{Addr: p.a.address, Stride: index32(int(p.a.outer)), Transposed: l.factors.a},
		B: cuda.Matrix{Addr: p.b.address, Stride: index32(int(p.b.outer)), Transposed: l.factors.b},
		C: c, Add: direct(&p) && p.add != 0,
		Work: call.Work + uint64(indirectBytes(call.Type, &p)), WorkBytes: libraryWorkBytes,
	}
}

// launches are what follows the library's product: our own kernels.
func (l *libraryProduct) launches(call *DeviceCall) []cuda.Launch {
	var all []cuda.Launch
	p, ones := l.parts(call)
	if !direct(&p) {
		p.partial, p.splits, p.tilesN = call.Work, 1, int32(ceilDiv(int(p.n), 4*32))
		p.storesFours(call.Type)
		all = append(all, cuda.Launch{
			Module: "product", Symbol: "product_follow" + typeSuffix(call.Type),
			Grid: [3]uint32{uint32(ceilDiv(int(p.m), 8)) * uint32(p.tilesN), 1, 1}, Block: [3]uint32{productThreads, 1, 1},
			Params: cuda.Params(p),
		})
	}
	if ones != nil {
		all = append(all, l.family.launches(call.Type, mathSIMT, *ones, call.Work)...)
	}
	return all
}

// workspace holds the product, where something follows it, and the library's own, or the sums
// of the column of ones, which come later.
func (l *libraryProduct) workspace(s *Spec) int64 {
	p, ones := l.parts(unplaced(s, l.params))
	bytes := indirectBytes(s.Type, &p) + libraryWorkBytes
	if ones != nil {
		bytes = max(bytes, l.family.partialBytes(s.Type, mathSIMT, ones))
	}
	return bytes
}
