package gpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// conv2d.nhwc.pool on CUDA devices. For 2×2 windows the product's rows are counted by windows,
// four positions each. So a thread block has whole windows, and the map between convolution and
// pooling is never in memory. (Overlapping windows compute a pixel once for each window.) A
// second launch scans other windows, over a map in the workspace. The gradient of the weights
// takes its parts of that map from dy and index as it fills its tiles.

// fusedWindow is the size of windows that are pooled with the product.
const fusedWindow = 2

// pooledScan mirrors PooledScan of conv2d_nhwc_pool.cu.
type pooledScan struct {
	z, y, index          uint64
	outer                [3]uint64 // strides of samples of z, y, index
	middle, inner        [3]int32  // and of their rows and columns
	rows, columns        cudaDivision
	channels             cudaDivision
	elements, size, step int32
}

// PoolVariants are the variants of conv2d.nhwc.pool.
func PoolVariants() []calls.Variant {
	var all []calls.Variant
	for _, math := range []productMath{mathSIMT, mathTF32, mathBF16} {
		v := math.variant(
			func(call *calls.DeviceCall) []offload.Launch { return poolLaunches(math, call) },
			func(s *calls.Spec) int64 { return poolWorkspaceCUDA(math, s) })
		v.Takes = takesEven
		v.MostElements /= fusedWindow * fusedWindow // since each window has as many positions
		all = append(all, v)
	}
	return all
}

func poolLaunches(math productMath, call *calls.DeviceCall) []offload.Launch {
	f := ConvolutionLast.Maps
	if size, _ := calls.FusedPooling(call.Params); size == fusedWindow {
		return f.launches(call.Type, math, pooledProduct(call), call.Work)
	}
	p, bytes := unpooledProduct(call)
	all := f.launches(call.Type, math, p, call.Work+uint64(bytes))
	return append(all, scanLaunch(call, coveredPixels(call, &call.Args[0])))
}

func poolWorkspaceCUDA(math productMath, s *calls.Spec) int64 {
	call := unplaced(s, calls.WithOptions(calls.PooledParams...))
	if size, _ := calls.FusedPooling(call.Params); size == fusedWindow {
		return 0
	}
	p, bytes := unpooledProduct(call)
	return bytes + ConvolutionLast.Maps.partialBytes(s.Type, math, &p)
}

// pooledProduct is the convolution with its rows by pooling windows.
func pooledProduct(call *calls.DeviceCall) productParams {
	y, index := &call.Args[0], &call.Args[1]
	_, step := calls.FusedPooling(call.Params)
	pooled := y.Pixels()
	p := ConvolutionLast.forward(call, 2, 3, pooled)
	positions := fusedWindow * fusedWindow * pooled.Volume()
	p.a.pooled, p.a.pixels, p.m = 1, index32(positions), index32(positions)
	p.pool.step = divideBy(step)
	p.after, p.bias = afterPool, call.Bias(4)
	p.result(y.Addr, pooled, y.Strides(), 1)
	p.companion(index.Addr, index.Strides(), 1)
	return p
}

// coveredPixels are the pixels of the convolution up to the last one in a window.
func coveredPixels(call *calls.DeviceCall, y *calls.DeviceArg) calls.Triple {
	size, step := calls.FusedPooling(call.Params)
	return calls.Triple{y.Shape[0], calls.Covered(y.Shape[1], size, step), calls.Covered(y.Shape[2], size, step)}
}

// packedStrides are the strides of pixels without gaps.
func packedStrides(pixels calls.Triple, channels int) calls.Triple {
	return calls.Triple{pixels[1] * pixels[2] * channels, pixels[2] * channels, channels}
}

// unpooledProduct is the convolution with its result in the workspace. It also returns the bytes
// of that result, a multiple of 256.
func unpooledProduct(call *calls.DeviceCall) (productParams, int64) {
	y := &call.Args[0]
	pixels, filters := coveredPixels(call, y), y.Shape[3]
	p := ConvolutionLast.forward(call, 2, 3, pixels)
	p.bias = call.Bias(4)
	p.result(call.Work, pixels, packedStrides(pixels, filters), 1)
	bytes := int64(pixels.Volume()) * int64(filters) * call.Type.SizeBytes()
	return p, (bytes + 255) &^ 255
}

// scanLaunch pools the pixels of the convolution in the workspace.
func scanLaunch(call *calls.DeviceCall, pixels calls.Triple) offload.Launch {
	y, index := &call.Args[0], &call.Args[1]
	size, step := calls.FusedPooling(call.Params)
	pooled, filters := y.Pixels(), y.Shape[3]
	p := pooledScan{
		z: call.Work, y: y.Addr, index: index.Addr,
		rows: divideBy(pooled[1]), columns: divideBy(pooled[2]), channels: divideBy(filters),
		elements: index32(pooled.Volume() * filters), size: int32(size), step: int32(step),
	}
	for i, s := range []calls.Triple{packedStrides(pixels, filters), y.Strides(), index.Strides()} {
		p.outer[i], p.middle[i], p.inner[i] = uint64(s[0]), index32(s[1]), index32(s[2])
	}
	return offload.Launch{
		Module: "conv2d_nhwc_pool", Symbol: "conv2d_nhwc_pool_cuda_scan" + typeSuffix(call.Type),
		Grid: [3]uint32{uint32(dag.CeilDiv(int(p.elements), productThreads)), 1, 1}, Block: [3]uint32{productThreads, 1, 1},
		Params: offload.Params(p),
	}
}

// unpooled is a map in its pooled form, which operands dy and index are.
func unpooled(call *calls.DeviceCall, dy, index int) (productOperand, productPooling) {
	g, marks := &call.Args[dy], &call.Args[index]
	size, step := calls.FusedPooling(call.Params)
	pooled, at := g.Pixels(), marks.Strides()
	o := mapOperand(g.Addr, coveredPixels(call, g), g.Strides(), g.Shape[3], 1).vectorised(call.Type, g.Shape[3])
	if !marksAligned(marks, 16/int(call.Type.SizeBytes())) {
		o.vector = 0
	}
	return o, productPooling{
		index: marks.Addr, outer: uint64(at[0]), middle: index32(at[1]), inner: index32(at[2]),
		rows: index32(pooled[1]), columns: index32(pooled[2]), size: int32(size), step: divideBy(step),
	}
}

// marksAligned reports whether the bytes of index for a group of channels are aligned to their
// number, and so can be loaded at once.
func marksAligned(index *calls.DeviceArg, group int) bool {
	fits := index.Addr%uint64(group) == 0
	for _, s := range index.Strides() {
		fits = fits && s%group == 0
	}
	return fits
}
