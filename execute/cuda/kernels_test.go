//go:build cuda

package cuda

import (
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/kernels/offload"
)

// TestKernels runs every CUDA variant of every operation over random calls, and compares
// with the reference: values within bounds, bits where there is nothing to round otherwise,
// and all bytes that are not the results'. A second run of the first calls gives the same
// bits.
func TestKernels(t *testing.T) {
	for _, k := range kernels.Kernels() {
		if !k.Host {
			t.Run(k.Op, func(t *testing.T) {
				d := newKernelBench(t)
				n := 0
				for c := range kerneltest.Cases(&k, 16) {
					d.compare(c)
					if n++; n <= 4 {
						d.repeat(c)
					}
				}
			})
		}
	}
}

// TestKernelsByHand runs every CUDA variant of the cases computed by hand: infinities and NaN,
// signs of zero, equal maxima.
func TestKernelsByHand(t *testing.T) {
	d := newKernelBench(t)
	for _, h := range kerneltest.HandCases() {
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			for margin := range 2 {
				c, err := h.Case(real, margin)
				must(t, err)
				for v := range d.variants(c) {
					if got := d.run(c, v); got != nil {
						must(t, h.Compare(got, v))
					}
				}
			}
		}
	}
}

// TestKernelShapes is TestKernels where kernels take other ways than at small extents: rows
// that are moved in vectors, with ends that are not; more dimensions than a launch has; more
// groups than threads, samples than layers of blocks; several tiles with ends; rows of more classes than a warp takes.
func TestKernelShapes(t *testing.T) {
	divisor := dag.Params{{Name: "divisor", Value: 255}}
	for _, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
		margin int
	}{
		{"relu", [][]int{{5, 12}, {5, 12}, {5, 12}}, nil, 4},
		{"relu.dx", [][]int{{3, 2, 8}, {3, 2, 8}, {3, 2, 8}}, nil, 4},
		{"relu", [][]int{{1031}, {1031}, {1031}}, nil, 0},
		{"relu.dx", [][]int{{7, 149}, {7, 149}, {7, 149}}, nil, 0},
		{"add", [][]int{{2, 3, 2, 5, 3, 7}, {2, 3, 2, 5, 3, 7}}, nil, 1},
		{"add", [][]int{{1024*1024 + 2053}, {1024*1024 + 2053}}, nil, 0},
		{"sgd", [][]int{{11, 16}, {11, 16}, {2}, {11, 16}}, kerneltest.SGDParams(0.9, 1, 0.01), 4},
		{"sgd", [][]int{{3, 1, 5, 2, 7}, {3, 1, 5, 2, 7}, {2}}, kerneltest.SGDParams(0, 0, 0.01), 1},
		{"adam", [][]int{{11, 16}, {11, 16}, {2}, {11, 16}, {11, 16}}, kerneltest.AdamParams(0.01, 0), 4},
		{"adam", [][]int{{11, 16}, {11, 16}, {2}, {11, 16}, {11, 16}}, kerneltest.AdamParams(0.01, 1), 4},
		{"load", [][]int{{5, 3, 2, 7, 11}, {13, 3, 2, 7, 11}, {5}}, divisor, 1},
		{"load", [][]int{{5, 28, 28}, {13, 28, 28}, {5}}, divisor, 0},
		{"load", [][]int{{5, 3, 12}, {13, 3, 12}, {5}}, divisor, 4},
		{"load.nhwc", [][]int{{5, 11, 13, 3}, {7, 3, 11, 13}, {5}}, divisor, 0},
		{"load.nhwc", [][]int{{601, 11, 53, 3}, {7, 3, 11, 53}, {601}}, divisor, 0},
		{"nhwc", [][]int{{2, 7, 11, 37}, {2, 37, 7, 11}}, nil, 1},
		{"nchw", [][]int{{2, 67, 5, 13}, {2, 5, 13, 67}}, nil, 0},
		{"nhwc", [][]int{{1031, 2, 3, 5}, {1031, 5, 2, 3}}, nil, 0},
		{"hwio", [][]int{{3, 3, 17, 37}, {37, 17, 3, 3}}, nil, 1},
		{"dense.nhwc.dw.sgd", [][]int{{10, 4, 13, 11}, {67, 10}, {67, 13, 11, 4}, {2}, {10}, {10, 4, 13, 11}, {10}}, kerneltest.SGDParams(0.9, 1, 0.01), 0},
		{"dense.nhwc.dw.sgd", [][]int{{10, 4, 3, 5}, {17, 10}, {17, 3, 5, 4}, {2}, {10}, {10, 4, 3, 5}, {10}}, kerneltest.SGDParams(0.9, 1, 0.01), 4},
		{"hwio", [][]int{{3, 3, 67, 37}, {37, 67, 3, 3}, {3, 3, 37, 67}}, nil, 1},
		{"hwoi", [][]int{{3, 3, 5, 67}, {5, 67, 3, 3}}, nil, 0},
		{"oihw", [][]int{{37, 13, 3, 3}, {3, 3, 13, 37}}, nil, 1},
		{"softmax_xent", [][]int{{3, 1031}, {3}, {3}, {3, 1031}, {3}}, kerneltest.LossParams(5, 0.25), 1},
		{"softmax_xent.eval", [][]int{{3}, {3}, {3, 1031}, {3}}, kerneltest.SmoothingParams(0.25), 0},
		{"mse", [][]int{{3, 1031}, {3}, {3}, {3, 1031}, {3}}, dag.Params{{Name: "batch", Value: 5}}, 1},
		{"mean", [][]int{{1}, {2053}}, nil, 0},
		{"squares", [][]int{{1}, {67, 131}}, nil, 0},
		{"squares", [][]int{{1}, {3, 5, 11, 131}}, nil, 1},
		{"squares", [][]int{{1}, {3, 2, 5, 7, 37}}, nil, 1},
		{"clip", [][]int{{3}, {2}, {1031}}, kerneltest.ClipParams(0.25), 1},
		{"count", [][]int{{1}, {2053}}, nil, 0},
		{"attention", [][]int{{1, 71, 40}, {1, 2, 71}, {1, 71, 40}, {1, 71, 20}, {1, 71, 20}, {1, 71}}, kerneltest.HeadParams(1, 2, 71, 70), 4},
		{"attention", [][]int{{1, 67, 74}, {1, 2, 67}, {1, 67, 74}, {1, 71, 37}, {1, 71, 37}}, kerneltest.HeadParams(1, 2, 5, 0), 1},
		{"attention", [][]int{{1, 37, 128}, {1, 1, 37}, {1, 37, 128}, {1, 37, 128}, {1, 37, 128}}, kerneltest.HeadParams(1, 1, 73, 36), 4},
		{"attention.dx", attentionDxShapes(71, 2, 20), kerneltest.HeadParams(1, 2, 71, 70), 4},
		{"attention.dx", attentionDxShapes(67, 2, 37), kerneltest.HeadParams(1, 2, 13, 6), 1},
		{"attention.dx", attentionDxShapes(37, 1, 128), kerneltest.HeadParams(1, 1, 73, 36), 4},
	} {
		k, _ := kernels.KernelByName(c.op)
		t.Run(c.op, func(t *testing.T) {
			d := newKernelBench(t)
			rng := rand.New(rand.NewPCG(3, 7))
			for _, real := range []dag.DType{dag.Float32, dag.Float64} {
				s := kerneltest.New(k, real, c.shapes, kerneltest.FirstModes(k)[:len(c.shapes)], c.params, c.margin)
				must(t, kernels.Validate(&s.Spec))
				s.Fill(rng)
				d.compare(s)
			}
		})
	}
}

// TestAttentionOfSomeQueries: queries from the 13th on have the same bits as among all 71 of them, in every variant.
func TestAttentionOfSomeQueries(t *testing.T) {
	const all, first, features = 71, 13, 20
	k, _ := kernels.KernelByName("attention")
	d := newKernelBench(t)
	shapes := func(queries int) [][]int {
		return [][]int{{1, queries, features}, {1, 1, queries}, {1, queries, features}, {1, all, features}, {1, all, features}}
	}
	whole := kerneltest.New(k, dag.Float32, shapes(all), kerneltest.FirstModes(k)[:5], kerneltest.AttentionParams(all, all-1), 0)
	whole.Fill(rand.New(rand.NewPCG(5, 23)))
	some := kerneltest.New(k, dag.Float32, shapes(all-first), kerneltest.FirstModes(k)[:5], kerneltest.AttentionParams(all, all-1-first), 0)
	must(t, kernels.Validate(&some.Spec))
	for i, skip := range []int{first * features, first, first * features, 0, 0} {
		from := whole.Values(i)[skip:]
		some.Set(i, func(j int) float64 { return from[j] })
	}
	for v := range d.variants(whole) {
		want, got := d.run(whole, v), d.run(some, v)
		for i, skip := range []int{first * features, first} {
			if w, g := want.Values(i)[skip:], got.Values(i); !slices.Equal(w, g) {
				t.Errorf("%s: operand %d differs", v.Name, i)
			}
		}
	}
}

// attentionDxShapes are the shapes of all gradients of an attention with one head of keys, without a mask.
func attentionDxShapes(positions, group, features int) [][]int {
	q, k, l := []int{1, positions, group * features}, []int{1, positions, features}, []int{1, group, positions}
	return [][]int{q, k, k, q, q, k, k, l, l}
}

// TestBFloat16 holds every variant in bfloat16 to itself in float32, as the test of package kernels does on processors.
func TestBFloat16(t *testing.T) {
	for _, k := range kernels.Kernels() {
		t.Run(k.Op, func(t *testing.T) {
			d := newKernelBench(t)
			for h := range kerneltest.Halves(&k, 3) {
				for v := range d.variants(h.Case) {
					if err := (kerneltest.Halved{Case: d.run(h.Case, v), Wide: d.run(h.Wide, v)}).Check(); err != nil {
						t.Fatalf("%s %v", v.Name, err)
					}
				}
			}
		})
	}
}

// TestAdamSteps: the powers of Adam's decay rates have the bits that Go's have, at any step.
func TestAdamSteps(t *testing.T) {
	d := newKernelBench(t)
	k, _ := kernels.KernelByName("adam")
	for _, step := range []float64{1, 2, 7, 1000, 123_457, 10_000_019} {
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			c := kerneltest.New(k, real, [][]int{{13}, {13}, {2}, {13}, {13}}, kerneltest.FirstModes(k), kerneltest.AdamParams(0, 0), 0)
			c.Fill(rand.New(rand.NewPCG(5, 11)))
			c.Set(2, func(j int) float64 { return []float64{0.001, step}[j] })
			d.compare(c)
		}
	}
}

// kernelBench runs calls of kernels on device 0.
type kernelBench struct {
	t         *testing.T
	device    *Device
	stream    Stream
	host      []byte                   // pinned
	libraries map[string]LibraryHandle // those that are there, by name
}

func newKernelBench(t *testing.T) *kernelBench {
	b := &kernelBench{t: t, device: open(t), libraries: map[string]LibraryHandle{}}
	var err error
	if b.stream, err = b.device.NewStream(); err != nil {
		t.Fatal(err)
	}
	b.host = pinned(t, 16<<20)
	for name := range sources {
		if l := loadedLibrary(t, b.device, name); l != nil {
			b.libraries[name], err = l.NewHandle(b.stream)
			must(t, err)
		}
	}
	t.Cleanup(func() {
		for _, h := range b.libraries {
			must(t, h.Destroy())
		}
		must(t, b.stream.Destroy())
	})
	return b
}

// compare compares what every variant gives with the reference.
func (b *kernelBench) compare(c *kerneltest.Case) {
	b.t.Helper()
	expected := kerneltest.Expect(c)
	for v := range b.variants(c) {
		if got := b.run(c, v); got != nil {
			must(b.t, expected.Compare(got, v))
		}
	}
}

// repeat compares two runs of every variant bit for bit.
func (b *kernelBench) repeat(c *kerneltest.Case) {
	b.t.Helper()
	for v := range b.variants(c) {
		once, again := b.run(c, v), b.run(c, v)
		for i := range c.Buffers {
			if once != nil && !once.SameBytes(again, i) {
				b.t.Fatalf("%s %s %s: operand %d has other bits in a second run", c.Kernel.Op, v.Name, c.Spec.Key(), i)
			}
		}
	}
}

// variants yields those that the device can run.
func (b *kernelBench) variants(c *kerneltest.Case) iter.Seq[*calls.Variant] {
	return func(yield func(*calls.Variant) bool) {
		for i := range c.Kernel.Variants {
			v := &c.Kernel.Variants[i]
			there := v.Code == calls.CUDACode && (v.Library == "" || b.libraries[v.Library] != nil)
			if there && v.Capability <= b.device.Capability && v.For(c.Spec.Type) && v.Fits(&c.Spec) == nil && !yield(v) {
				return
			}
		}
	}
}

// run runs a variant on a copy of the case, in buffers of the device that are as large as
// the operands', and returns the copy, or nil if the library of a GPU does not do the call. The
// workspace is full of NaN.
func (b *kernelBench) run(c *kerneltest.Case, v *calls.Variant) *kerneltest.Case {
	b.t.Helper()
	got := c.Clone()
	var bases []uint64
	for _, data := range got.Data {
		at := b.upload(data)
		defer func() { must(b.t, b.device.Release(at)) }()
		bases = append(bases, uint64(at))
	}
	var work driver.Address
	if v.WorkspaceBytes != nil {
		if bytes := v.WorkspaceBytes(&c.Spec); bytes > 0 {
			var err error
			work, err = b.device.Alloc(bytes)
			must(b.t, err)
			defer func() { must(b.t, b.device.Release(work)) }()
			if v.LibraryCall != nil {
				_, own := v.LibraryCall(got.DeviceCall(bases, uint64(work))).Workspace()
				bytes -= own // which is the end of it
			}
			must(b.t, b.stream.Fill(work, 0xff, bytes))
		}
	}
	call := got.DeviceCall(bases, uint64(work))
	if v.Before != nil {
		b.launch(v.Before(call))
	}
	if v.LibraryCall != nil {
		library := b.libraries[v.Library]
		ready, err := library.Prepare(v.LibraryCall(call))
		if refused(b.t, b.device, err) {
			return nil
		}
		must(b.t, err)
		defer ready.Free()
		must(b.t, library.Issue(ready))
	}
	b.launch(v.Launches(call))
	for i, data := range got.Data {
		n := int64(len(data))
		must(b.t, b.stream.Copy(hostPlace(b.host, n), driver.Plane{Device: driver.Address(bases[i]), Pitch: n}, n, 1), b.stream.Synchronize())
		copy(data, b.host)
	}
	return got
}

// launch launches kernels.
func (b *kernelBench) launch(list []offload.Launch) {
	b.t.Helper()
	ready, err := b.device.Prepare(list)
	must(b.t, err)
	defer ready.Free()
	must(b.t, b.stream.Launch(ready))
}

// upload allocates device memory of exactly the data's size and copies it there.
func (b *kernelBench) upload(data []byte) driver.Address {
	b.t.Helper()
	n := int64(len(data))
	to, err := b.device.Alloc(n)
	if err != nil {
		b.t.Fatal(err)
	}
	copy(b.host, data)
	must(b.t, b.stream.Copy(driver.Plane{Device: to, Pitch: n}, hostPlace(b.host, n), n, 1), b.stream.Synchronize())
	return to
}
