package kernels

import (
	"unsafe"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/offload"
	"dahl/kernels/simd"
)

// A convolution behind a batch normalisation and its ReLU normalises what it reads, so that the normalised map need not
// be in memory. With Norm an operation takes, in the place of x,
//
//	max(0, (x - k0)·k1 + k2)    with the operand k of batchnorm.nhwc behind x
//
// Zeros around the image stay zeros. It has the variants of the convolution. Variants at levels normalise some samples at a time in
// the workspace, Winograd's a few tiles on their way to the domain, and the others all samples. Normalised values have the bits
// of batchnorm.nhwc.

// normed is which operands of such an operation are the image and the filters.
type normed struct{ x, filters int }

// kernelOf is the operation that normalises the image of another one.
func (n normed) kernelOf(plain Kernel) Kernel {
	scale := insertion{n.x + 1, []Operand{reads("k", Real, "4 g:c")}}
	k := scale.into(plain, perElement(4, n.x))
	k.Doc += ", with max(0, (x - k0)·k1 + k2) for x"
	for _, v := range plain.Variants {
		room := n.room(&v)
		normalised := scale.variant(v, ", of normalised data", func(s *calls.Spec, own int64) int64 {
			return own + room(s.Operands[n.x].Shape, s.Volume(n.filters), s.Type.SizeBytes())
		})
		if v.Code == calls.CUDACode {
			n.onCUDA(&normalised, &v, scale)
		} else {
			normalised.Run32, normalised.Run64 = normedRun[float32](n, &v, v.Run32, room), normedRun[float64](n, &v, v.Run64, room)
		}
		k.Variants = append(k.Variants, normalised)
	}
	return k
}

// roomAlign is at what bytes the rest of the workspace begins.
const roomAlign = 256

// room is the bytes for normalised data of an image of some shape, before a variant's own workspace.
func (n normed) room(v *calls.Variant) func(x []int, filters float64, elementBytes int64) int64 {
	return func(x []int, filters float64, elementBytes int64) int64 {
		sample := int64(x[1] * x[2] * x[3])
		elements := int64(x[0]) * sample
		switch {
		case v.Transforms:
			elements = int64(cpu.WinogradPatch(x))
		case v.RunsOn(calls.GoCode) && v.Name != "ref" && int64(filters)*elementBytes <= cpu.FiltersBytes: // panels of more meet all samples
			elements = min(elements, sample*max(1, max(int64(cpu.CachedBytes)/elementBytes, int64(filters))/sample))
		}
		return (elements*elementBytes + roomAlign - 1) / roomAlign * roomAlign
	}
}

// normedRun calls a convolution with k in Call.Norm instead of among its operands. The reference knows no k, and gets normalised
// data.
func normedRun[T calls.Float](n normed, v *calls.Variant, run func(*calls.Call), room func([]int, float64, int64) int64) func(*calls.Call) {
	if run == nil { // of the other type alone
		return nil
	}
	before, reference := n.x+1, v.Name == "ref"
	return func(call *calls.Call) {
		args, work, k := call.Args, call.Work, call.Args[before]
		x := args[n.x]
		end := room(x.Shape, float64(args[n.filters].Volume()), int64(calls.SizeOf[T]()))
		call.Work = work[end:]
		if reference {
			x = normedRef[T](&x, &k, work, &call.Strides)
		} else {
			call.Norm, call.Room = k, work[:end]
		}
		original := args[n.x]
		copy(args[1:], args[:n.x]) // a call of another slice would be on the heap
		args[before], call.Args = x, args[1:]
		run(call)
		copy(args, args[1:before])
		args[n.x], args[before] = original, k
		call.Args, call.Work, call.Norm, call.Room = args, work, calls.Arg{}, nil
	}
}

// normedRef is the image, normalised element by element in the workspace. strides is memory for its strides.
func normedRef[T calls.Float](a, k *calls.Arg, work []byte, strides *[4]int) calls.Arg {
	x, n := calls.Map4Of[T](a), cpu.NormalisingOf[T](k)
	elems, _ := calls.Scratch[T](work, a.Volume())
	to := calls.Packed4(elems, x.Extent)
	x.Each(func(i, h, w, c int) {
		v := n.Of(x.Elems[x.At(i, h, w, c)], c)
		if v < 0 {
			v = 0
		}
		to.Elems[to.At(i, h, w, c)] = v
	})
	*strides = to.Stride
	return calls.Arg{Mode: dag.Read, Shape: a.Shape, Stride: strides[:], First: unsafe.Pointer(unsafe.SliceData(elems)), Elems: len(elems)}
}

// onCUDA normalises the image before a variant for CUDA.
func (n normed) onCUDA(v, plain *calls.Variant, scale insertion) {
	on := func(c *calls.DeviceCall) (*calls.DeviceCall, []offload.Launch) {
		x := c.Args[n.x]
		e := x.Shape
		to := calls.DeviceArg{Mode: dag.Write, Type: x.Type, Addr: c.Work, Shape: e, Stride: []int{e[1] * e[2] * e[3], e[2] * e[3], e[3], 1}}
		first := gpu.BatchNorm[0].Launches(&calls.DeviceCall{Type: c.Type, Args: []calls.DeviceArg{to, x, c.Args[n.x+1]}, Params: []float64{1}})
		to.Mode = dag.Read
		then := scale.withoutOn(c)
		then.Args[n.x] = to
		then.Work += uint64(n.room(plain)(e, 0, c.Type.SizeBytes()))
		return then, first
	}
	if plain.Library == "" {
		v.Launches = func(c *calls.DeviceCall) []offload.Launch {
			then, first := on(c)
			return append(first, plain.Launches(then)...)
		}
		return
	}
	v.Before = func(c *calls.DeviceCall) []offload.Launch {
		then, first := on(c)
		return append(first, plain.Before(then)...)
	}
	v.LibraryCall = func(c *calls.DeviceCall) offload.LibraryCall {
		then, _ := on(c)
		return plain.LibraryCall(then)
	}
	v.Launches = func(c *calls.DeviceCall) []offload.Launch {
		then, _ := on(c)
		return plain.Launches(then)
	}
}

// A convolution before a batch normalisation takes the moments of its output while that is in a cache. Its variants are
// variants of conv2d.nhwc with a pass of moments.nhwc behind them, and give the bits of the two operations
// one after the other.

// withMoments is the convolution with the moments of its output before its operands.
func withMoments(convolution Kernel) Kernel {
	moments := insertion{0, []Operand{writes("s", Real, "n g:f"), writes("q", Real, "n g:f")}}
	k := moments.into(convolution, perElement(4, 2))
	k.Doc += ", s and q = moments of y"
	k.Operands[2].Modes = []dag.Mode{dag.Write}
	k.Whole = "oh ow"
	for _, v := range convolution.Variants {
		if v.Library != "" {
			continue
		}
		both := moments.variant(v, "; then moments", func(s *calls.Spec, own int64) int64 { return max(cpu.ChannelWorkspace(2)(s), own) })
		if v.Code == calls.CUDACode {
			both.Launches = func(c *calls.DeviceCall) []offload.Launch {
				return append(v.Launches(moments.withoutOn(c)), gpu.Moments[0].Launches(c)...)
			}
		} else {
			both.Run32, both.Run64 = thenMoments[float32](v.Level, v.Run32, v.Name == "ref"), thenMoments[float64](v.Level, v.Run64, v.Name == "ref")
		}
		k.Variants = append(k.Variants, both)
	}
	return k
}

// thenMoments is a convolution and the moments of its output. The convolution has the last operands of the call, the moments
// have the first three.
func thenMoments[T calls.Float](l simd.Level, convolve func(*calls.Call), reference bool) func(*calls.Call) {
	if convolve == nil { // of the other type alone
		return nil
	}
	moments := func(c *calls.Call) { cpu.MomentsAt[T](l, c) }
	if reference {
		moments = momentsRef[T]
	}
	return func(call *calls.Call) {
		args := call.Args // a call of another slice would be on the heap
		call.Args = args[2:]
		convolve(call)
		call.Args = args[:3]
		moments(call)
		call.Args = args
	}
}
