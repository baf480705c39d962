package gpu

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Products of matrices by a library are variants like our own kernels, each in the arithmetic
// of the type and on tensor cores: "cublas" and "cublas-tf32" by cuBLAS, "cublaslt" and
// "cublaslt-tf32" by cuBLASLt, which also does some of the following operations
// (product_fused.go). If nothing follows, the library leaves the product in the result. Otherwise
// it leaves the product in the workspace, and product_follow completes it as our kernels do.

// libraryWorkBytes is the library's own workspace. cuBLAS itself takes as much from Hopper on,
// for kernels of this generation, and an eighth before. It is the same on all devices, since the plan
// knows no device, and since the choice of a kernel, and so the bits, may depend on it.
const libraryWorkBytes = 32 << 20

// libraryProduct is one product of matrices that a library does together with kernels of ours.
type libraryProduct struct {
	family *productFamily
	of     products
	params []string
	maps   int  // the operand that is a factor with a row for each sample, if it has no gaps; zero means none
	fuses  bool // whether the library does some of the following operations
}

// LibraryVariants are the variants by libraries of an operation that is one product of the
// family, with named parameters. maps is the operand, a map, that is a factor with a row for each
// sample. Zero means none.
func (f *productFamily) LibraryVariants(maps int, of products, params ...string) []calls.Variant {
	l := libraryProduct{family: f, of: of, params: params, maps: maps}
	lt := l
	lt.fuses = true
	return slices.Concat(l.variants(offload.CuBLAS, "cuBLAS"), lt.variants(offload.CuBLASLt, "cuBLASLt with bias, ReLU (of NaN perhaps 0) and gradients of biases"))
}

// variants are one in the type's own arithmetic and one on tensor cores.
func (l libraryProduct) variants(library, doc string) []calls.Variant {
	exact := calls.Variant{
		Name: library, Code: calls.CUDACode, Doc: doc + ", in the type's own arithmetic", Library: library,
		Launches: l.launches, WorkspaceBytes: l.workspace, MostElements: mostCounted,
		LibraryCall: func(call *calls.DeviceCall) offload.LibraryCall { return l.call(call, false) },
	}
	if l.maps != 0 {
		exact.Before = l.before
	}
	tf32 := exact
	tf32.Name, tf32.Doc = library+"-tf32", doc+", on tensor cores: factors rounded to 11 bits, sums in float32"
	tf32.Types, tf32.Capability, tf32.FactorBits = []dag.DType{dag.Float32}, 80, calls.TF32Bits
	tf32.LibraryCall = func(call *calls.DeviceCall) offload.LibraryCall { return l.call(call, true) }
	return []calls.Variant{exact, tf32}
}

// gapless is the call with its map in the form that the library takes. A map with gaps is copied
// to the beginning of the workspace. Its room is kept in any case, so that the rest is used
// alike.
func (l *libraryProduct) gapless(call *calls.DeviceCall) *calls.DeviceCall {
	if l.maps == 0 {
		return call
	}
	own, to := *call, &convolutionCall{work: call.Work, real: call.Type}
	own.Args = slices.Clone(call.Args)
	if a := to.room(dag.Read, call.Args[l.maps].Shape); !call.Args[l.maps].Packed(1) {
		own.Args[l.maps] = a
	}
	own.Work = to.work
	return &own
}

// before copies a map that has gaps.
func (l *libraryProduct) before(call *calls.DeviceCall) []offload.Launch {
	from, to := &call.Args[l.maps], &l.gapless(call).Args[l.maps]
	if from.Addr == to.Addr {
		return nil
	}
	return CopyElements(&calls.DeviceCall{Type: call.Type, Args: []calls.DeviceArg{*to, *from}})
}

// productParts divides a call's product between the library and our kernels.
type productParts struct {
	main   productParams  // without a column of ones; the library computes its sums, and the rest of it follows them
	fused  fusedParts     // operations that the library also does
	column *productParams // our own product for the column or row of ones, the gradient of biases; nil means none
}

// parts divides a gapless call's product among library and kernels.
func (l *libraryProduct) parts(call *calls.DeviceCall) productParts {
	s := productParts{main: l.of(call)[0]}
	if s.main.ones != noOnes {
		alone := s.main.onesAlone()
		s.column = &alone
		if alone.ones == rowOfOnes {
			s.main.m--
		} else {
			s.main.n--
		}
		s.main.ones, s.main.bias = noOnes, 0
	}
	if l.fuses {
		s.fuse(call)
	}
	return s
}

// direct reports whether the library's product is the final result.
func direct(p *productParams) bool {
	return p.after == afterStore && p.bias == 0 && p.relu == 0 && p.other == 0
}

// indirectBytes is the size of the product in the workspace: m rows of n elements rounded up to
// 4.
func indirectBytes(t dag.DType, p *productParams) int64 {
	if direct(p) {
		return 0
	}
	return workBytes(t, int64(p.m)*int64((p.n+3)&^3))
}

// workBytes is the size of some elements in the workspace, rounded up so that more may follow.
func workBytes(t dag.DType, elements int64) int64 {
	return (elements*t.SizeBytes() + calls.WorkAlignment - 1) &^ (calls.WorkAlignment - 1)
}

// call is the library's part of a call.
func (l *libraryProduct) call(call *calls.DeviceCall, tf32 bool) offload.LibraryCall {
	call = l.gapless(call)
	s := l.parts(call)
	p := &s.main
	c := offload.Matrix{Addr: p.c, Stride: index32(int(p.cOuter))}
	if !direct(p) {
		c = offload.Matrix{Addr: call.Work, Stride: (p.n + 3) &^ 3}
	}
	product := offload.Product{
		Float64: call.Type == dag.Float64, TF32: tf32, Rows: p.m, Columns: p.n, Depth: p.k,
		A: offload.Matrix{Addr: p.a.address, Stride: index32(int(p.a.outer)), Transposed: l.family.transposedA},
		B: offload.Matrix{Addr: p.b.address, Stride: index32(int(p.b.outer)), Transposed: l.family.transposedB},
		C: c, Add: direct(p) && p.add != 0,
		Work: call.Work + uint64(s.bytes(call.Type)), WorkBytes: libraryWorkBytes,
	}
	if !l.fuses {
		return product
	}
	return offload.FusedProduct{Product: product, Bias: s.fused.bias, ReLU: s.fused.relu, RowSums: s.fused.rowSums}
}

// launches are our kernels after the library's call.
func (l *libraryProduct) launches(call *calls.DeviceCall) []offload.Launch {
	var all []offload.Launch
	call = l.gapless(call)
	s := l.parts(call)
	if !direct(&s.main) {
		all = append(all, follow(call.Type, s.main, call.Work))
	}
	if s.fused.sums != nil {
		all = append(all, follow(call.Type, *s.fused.sums, s.fused.rowSums))
	}
	if s.column != nil {
		all = append(all, l.family.launches(call.Type, mathSIMT, *s.column, call.Work)...)
	}
	return all
}

// follow is the kernel that completes a library's sums at an address of the workspace.
func follow(t dag.DType, p productParams, from uint64) offload.Launch {
	p.partial, p.splits, p.tilesN = from, 1, int32(dag.CeilDiv(int(p.n), 4*32))
	p.storesFours(t)
	return offload.Launch{
		Module: "product", Symbol: "product_follow" + typeSuffix(t),
		Grid: [3]uint32{uint32(dag.CeilDiv(int(p.m), 8)) * uint32(p.tilesN), 1, 1}, Block: [3]uint32{productThreads, 1, 1},
		Params: offload.Params(p),
	}
}

// bytes is the size of the library's results in the workspace.
func (s *productParts) bytes(t dag.DType) int64 {
	bytes := indirectBytes(t, &s.main)
	if s.fused.sums != nil {
		bytes += workBytes(t, int64(s.main.m))
	}
	return bytes
}

// workspace holds a map's copy, the library's results and the library's own workspace. Later it
// holds the sums of the ones instead.
func (l *libraryProduct) workspace(spec *calls.Spec) int64 {
	call := unplaced(spec, l.params)
	own := l.gapless(call)
	s := l.parts(own)
	bytes := s.bytes(spec.Type) + libraryWorkBytes
	if s.column != nil {
		bytes = max(bytes, l.family.partialBytes(spec.Type, mathSIMT, s.column))
	}
	return int64(own.Work-call.Work) + bytes
}
