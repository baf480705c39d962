package kernels

import (
	"unsafe"

	"dahl/dag"
	"dahl/kernels/offload"
	"dahl/kernels/simd"
)

// A convolution behind a batch normalisation and its ReLU normalises what it reads, so that the normalised map need not
// be in memory. With Norm an operation takes, in the place of x,
//
//	max(0, (x - k0)·k1 + k2)    with the operand k of batchnorm.nhwc behind x
//
// Zeros around the image stay zeros. Its variants are those of the convolution. Those at levels normalise some samples at a time,
// Winograd's a few tiles on their way to the domain, and the others all, in the workspace. The bits of normalised values are
// those of batchnorm.nhwc.

// normed is which operands of such an operation are the image and the filters.
type normed struct{ x, filters int }

// of is the operation that normalises the image of another one.
func (n normed) of(plain Kernel) Kernel {
	scale := beside{n.x + 1, []Operand{reads("k", Real, "4 g:c")}}
	k := scale.to(plain, perElement(4, n.x))
	k.Doc += ", with max(0, (x - k0)·k1 + k2) for x"
	for _, v := range plain.Variants {
		room := n.room(&v)
		normalised := scale.variant(v, ", of normalised data", func(s *Spec, own int64) int64 {
			return own + room(s.Operands[n.x].Shape, s.volume(n.filters), s.Type.SizeBytes())
		})
		if v.Code == CUDACode {
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
func (n normed) room(v *Variant) func(x []int, filters float64, elementBytes int64) int64 {
	return func(x []int, filters float64, elementBytes int64) int64 {
		sample := int64(x[1] * x[2] * x[3])
		elements := int64(x[0]) * sample
		switch {
		case v.Transforms:
			elements = int64(winogradPatch(x))
		case v.RunsOn(GoCode) && v.Name != "ref" && int64(filters)*elementBytes <= filtersBytes: // panels of more meet all samples
			elements = min(elements, sample*max(1, max(int64(cachedBytes)/elementBytes, int64(filters))/sample))
		}
		return (elements*elementBytes + roomAlign - 1) / roomAlign * roomAlign
	}
}

// normedRun calls a convolution with k beside its operands instead of among them. The reference knows no k, and gets normalised
// data.
func normedRun[T Float](n normed, v *Variant, run func(*Call), room func([]int, float64, int64) int64) func(*Call) {
	if run == nil { // of the other type alone
		return nil
	}
	before, reference := n.x+1, v.Name == "ref"
	return func(call *Call) {
		args, work, k := call.Args, call.Work, call.Args[before]
		x := args[n.x]
		end := room(x.Shape, float64(args[n.filters].volume()), int64(sizeOf[T]()))
		call.Work = work[end:]
		if reference {
			x = normedRef[T](&x, &k, work, &call.strides)
		} else {
			call.norm, call.room = k, work[:end]
		}
		original := args[n.x]
		copy(args[1:], args[:n.x]) // a call of another slice would be on the heap
		args[before], call.Args = x, args[1:]
		run(call)
		copy(args, args[1:before])
		args[n.x], args[before] = original, k
		call.Args, call.Work, call.norm, call.room = args, work, Arg{}, nil
	}
}

// normedRef is the image, normalised element by element in the workspace. strides is memory for its strides.
func normedRef[T Float](a, k *Arg, work []byte, strides *[4]int) Arg {
	x, n := map4Of[T](a), normalisingOf[T](k)
	elems, _ := scratch[T](work, a.volume())
	to := packed4(elems, x.extent)
	x.each(func(i, h, w, c int) {
		v := n.of(x.elems[x.at(i, h, w, c)], c)
		if v < 0 {
			v = 0
		}
		to.elems[to.at(i, h, w, c)] = v
	})
	*strides = to.stride
	return Arg{Mode: dag.Read, Shape: a.Shape, Stride: strides[:], first: unsafe.Pointer(unsafe.SliceData(elems)), elems: len(elems)}
}

// onCUDA normalises the image before a variant for CUDA.
func (n normed) onCUDA(v, plain *Variant, scale beside) {
	on := func(c *DeviceCall) (*DeviceCall, []offload.Launch) {
		x := c.Args[n.x]
		e := x.Shape
		to := DeviceArg{Mode: dag.Write, Type: x.Type, Addr: c.Work, Shape: e, Stride: []int{e[1] * e[2] * e[3], e[2] * e[3], e[3], 1}}
		first := batchNormOnCUDA(&DeviceCall{Type: c.Type, Args: []DeviceArg{to, x, c.Args[n.x+1]}, Params: []float64{1}})
		to.Mode = dag.Read
		then := scale.withoutOn(c)
		then.Args[n.x] = to
		then.Work += uint64(n.room(plain)(e, 0, c.Type.SizeBytes()))
		return then, first
	}
	if plain.Library == "" {
		v.Launches = func(c *DeviceCall) []offload.Launch {
			then, first := on(c)
			return append(first, plain.Launches(then)...)
		}
		return
	}
	v.Before = func(c *DeviceCall) []offload.Launch {
		then, first := on(c)
		return append(first, plain.Before(then)...)
	}
	v.LibraryCall = func(c *DeviceCall) offload.LibraryCall {
		then, _ := on(c)
		return plain.LibraryCall(then)
	}
	v.Launches = func(c *DeviceCall) []offload.Launch {
		then, _ := on(c)
		return plain.Launches(then)
	}
}

// norm normalises data on their way into a convolution.
type norm[T Float] struct {
	normalising[T]
	room []T // nil: data are taken as they are
}

func normOf[T Float](call *Call) (n norm[T]) {
	if call.room != nil {
		n.normalising = normalisingOf[T](&call.norm)
		n.room, _ = scratch[T](call.room, len(call.room)/sizeOf[T]())
	}
	return n
}

// channels is how channels from one on are normalised.
func (n norm[T]) channels(first int) norm[T] {
	if n.room != nil {
		n.mean, n.scale, n.shift = n.mean[first:], n.scale[first:], n.shift[first:]
	}
	return n
}

// samples is how many samples of a map find room.
func (n *norm[T]) samples(x *map4[T]) int {
	return len(n.room) / (x.extent[1] * x.extent[2] * x.extent[3])
}

// image normalises all of a map.
func (n *norm[T]) image(l simd.Level, x map4[T]) map4[T] {
	to := packed4(n.room[:x.extent[0]*x.extent[1]*x.extent[2]*x.extent[3]], x.extent)
	for i := range x.extent[0] {
		for h := range x.extent[1] {
			n.pixels(l, to.elems[to.at(i, h, 0, 0):], x.elems[x.at(i, h, 0, 0):], x.stride[2], x.extent[2], x.extent[3])
		}
	}
	return to
}

// pixels normalises some pixels that are so many elements apart. The results follow each other.
func (n *norm[T]) pixels(l simd.Level, to, from []T, step, pixels, channels int) {
	c := simd.Channels[T]{Pixels: pixels, Count: channels, ReLU: true}
	c.Images[0], c.Images[1], c.Steps[0], c.Steps[1] = to, from, channels, step
	c.Rows[0], c.Rows[1], c.Rows[2] = n.mean, n.scale, n.shift
	c.Normalise(l)
}
