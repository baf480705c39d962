package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
)

// interpreter runs the tasks of a graph one after the other in program order, with
// the reference kernels where nobody chooses others. It is what program order means, and knows nothing else:
// no dependences, no schedule, no shared memory between buffers.
type interpreter struct {
	g       *dag.Graph
	storage map[string][]uint64 // by name of the owner; 8-byte aligned
	calls   []func()
	tasks   []*dag.Task // of the calls
	kind    dag.DType
}

// newInterpreter binds a graph to storage by buffer name; what is not in shared yet is
// added to it, so that the graphs of a program share parameters and data.
func newInterpreter(t testing.TB, g *dag.Graph, shared map[string][]uint64) *interpreter {
	t.Helper()
	return newInterpreterOf(t, g, shared, func(k *kernels.Kernel, _ *calls.Spec) *calls.Variant { return &k.Variants[0] })
}

// newInterpreterOf is one with other variants than the reference.
func newInterpreterOf(t testing.TB, g *dag.Graph, shared map[string][]uint64, choose func(*kernels.Kernel, *calls.Spec) *calls.Variant) *interpreter {
	t.Helper()
	in := &interpreter{g: g, storage: shared}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if b.ViewOf == dag.None && shared[b.Name] == nil {
			shared[b.Name] = make([]uint64, (b.Bytes()+7)/8)
			if b.Role != dag.State && b.Role != dag.Parameter && b.Role != dag.Input {
				poison(shared[b.Name])
			}
		}
	}
	for i := range g.Tasks {
		task := &g.Tasks[i]
		in.kind = task.Type
		k, err := kernels.KernelByName(task.Op)
		if err != nil {
			t.Fatalf("task %q: %v", task.Name, err)
		}
		if k.Host {
			continue
		}
		call := &calls.Call{}
		for j, a := range task.Accesses {
			base := shared[g.Buffers[g.Storage(a.Buffer)].Name]
			call.Args = append(call.Args, calls.Bind(unsafe.Pointer(&base[0]), &g.Buffers[a.Buffer], g.Box(dag.TaskID(i), j), a.Mode))
		}
		spec := calls.SpecOf(task, func(id dag.BufferID) dag.Buffer { return g.Buffers[id] })
		call.Params = k.Values(spec)
		variant := choose(k, spec)
		if variant.WorkspaceBytes != nil {
			work := make([]uint64, variant.WorkspaceBytes(spec)/8+1)
			call.Work = unsafe.Slice((*byte)(unsafe.Pointer(&work[0])), 8*len(work))
		}
		run := variant.Run(task.Type)
		in.calls, in.tasks = append(in.calls, func() { run(call) }), append(in.tasks, task)
	}
	return in
}

// byDefault chooses the variant that a training has where nobody says another.
func byDefault(k *kernels.Kernel, _ *calls.Spec) *calls.Variant { return k.Default() }

// poison fills memory with NaN in either float type, so that a read of what was
// never written shows.
func poison(words []uint64) {
	for i := range words {
		words[i] = 0xffffffffffffffff
	}
}

// step runs the graph once on the samples with these indices.
func (in *interpreter) step(index []int32, rate float64, step int) {
	in.feed(index, rate, step)
	for _, run := range in.calls {
		run()
	}
}

func (in *interpreter) feed(index []int32, rate float64, step int) {
	copy(in.ints("step.index"), index)
	if h, ok := in.storage["step.hyper"]; ok {
		hyper := unsafe.Slice((*float64)(unsafe.Pointer(&h[0])), 2)
		hyper[0], hyper[1] = rate, float64(step)
	}
}

func (in *interpreter) Elems(name string) (*uint64, int) {
	id, ok := in.g.BufferByName(name)
	if !ok {
		panic("no buffer " + name)
	}
	s := in.storage[in.g.Buffers[in.g.Storage(id)].Name]
	return &s[0], int(in.g.Buffers[id].Elems())
}

func (in *interpreter) ints(name string) []int32 {
	p, n := in.Elems(name)
	return unsafe.Slice((*int32)(unsafe.Pointer(p)), n)
}

func (in *interpreter) bytes(name string) []byte {
	p, _ := in.Elems(name)
	id, _ := in.g.BufferByName(name)
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), in.g.Buffers[id].Bytes())
}

// floats returns a copy of a buffer of the graph's float type.
func (in *interpreter) floats(name string) []float64 {
	p, n := in.Elems(name)
	out := make([]float64, n)
	if in.kind == dag.Float64 {
		copy(out, unsafe.Slice((*float64)(unsafe.Pointer(p)), n))
		return out
	}
	for i, v := range unsafe.Slice((*float32)(unsafe.Pointer(p)), n) {
		out[i] = float64(v)
	}
	return out
}

// has reports whether the graph has a buffer: fused lowerings leave some out.
func (in *interpreter) has(name string) bool {
	_, ok := in.g.BufferByName(name)
	return ok
}

// canonical returns a buffer of images or flattened images in PyTorch's order
// N×C×H×W, whatever its layout.
func (in *interpreter) canonical(name string) []float64 {
	values := in.floats(name)
	id, _ := in.g.BufferByName(name)
	b, owner := &in.g.Buffers[id], &in.g.Buffers[in.g.Storage(id)]
	shape := owner.Shape
	switch {
	case b.ViewOf != dag.None && len(b.Shape) == 4: // of a sequence as an image
		shape = b.Shape
	case owner.Layout != "nhwc" || len(b.Shape) == 3: // of an image as a sequence
		return values
	}
	n, h, w, c := shape[0], shape[1], shape[2], shape[3]
	out := make([]float64, len(values))
	for i, v := range values {
		sample, pixel, channel := i/(h*w*c), i/c%(h*w), i%c
		out[(sample*c+channel)*h*w+pixel] = v
	}
	if len(values) != n*h*w*c {
		panic("view of part of " + owner.Name)
	}
	return out
}

// ofStage returns the output of a stage or its gradient, in PyTorch's order. It has no buffer of
// its own where it is part of that of a sum or a concatenation. It is nil where it is not in memory, or whole numbers.
func (in *interpreter) ofStage(m *nn.Model, stage int, name string) []float64 {
	s := &m.Stages[stage]
	if s.Traits.Integers {
		return nil
	}
	if in.has(name) {
		return in.canonical(name)
	}
	var all []float64
	for k := 1; in.has(fmt.Sprintf("%s.micro%d", name, k)); k++ {
		all = append(all, in.canonical(fmt.Sprintf("%s.micro%d", name, k))...)
	}
	if all != nil {
		return all
	}
	for _, r := range s.Readers() {
		reader := &m.Stages[r.Stage]
		of, gradient := reader.Name+".out", strings.HasPrefix(name, "grad.")
		if gradient {
			of = "grad." + of
		}
		switch reader.Layer.(type) {
		case layers.Add, layers.Positions:
			if gradient {
				return in.ofStage(m, r.Stage, of)
			}
		case layers.Concat:
			whole, before, runs := in.ofStage(m, r.Stage, of), 0, 1 // of channels in a sample
			if len(s.Out) == 2 {
				runs = s.Out[0]
			}
			for _, shape := range reader.In[:r.Input] {
				before += nn.Elems(shape) / runs
			}
			if whole == nil {
				return nil
			}
			var part []float64
			for sample := range slices.Chunk(whole, nn.Elems(reader.Out)/runs) {
				part = append(part, sample[before:before+nn.Elems(s.Out)/runs]...)
			}
			return part
		}
	}
	return nil
}

// each visits the elements of an operand of a task, by their indices in its buffer.
func (in *interpreter) each(task *dag.Task, operand int, visit func(int)) {
	a := task.Accesses[operand]
	shape, box := in.g.Buffers[a.Buffer].Shape, a.Box
	if box == nil {
		box = dag.Whole(shape)
	}
	var walk func(d, at int)
	walk = func(d, at int) {
		if d == len(shape) {
			visit(at)
			return
		}
		for i := box[d].Lo; i < box[d].Hi; i++ {
			walk(d+1, at*shape[d]+i)
		}
	}
	walk(0, 0)
}

// operand returns the elements of an operand of a task.
func (in *interpreter) operand(task *dag.Task, operand int) (values []float64) {
	all := in.floats(in.g.Buffers[task.Accesses[operand].Buffer].Name)
	in.each(task, operand, func(i int) { values = append(values, all[i]) })
	return values
}

// setOperand overwrites them.
func (in *interpreter) setOperand(task *dag.Task, operand int, values []float64) {
	name := in.g.Buffers[task.Accesses[operand].Buffer].Name
	all, next := in.floats(name), 0
	in.each(task, operand, func(i int) { all[i] = values[next]; next++ })
	in.setFloats(name, all)
}

func (in *interpreter) setFloats(name string, values []float64) {
	p, n := in.Elems(name)
	if len(values) != n {
		panic("wrong length for " + name)
	}
	if in.kind == dag.Float64 {
		copy(unsafe.Slice((*float64)(unsafe.Pointer(p)), n), values)
		return
	}
	dst := unsafe.Slice((*float32)(unsafe.Pointer(p)), n)
	for i, v := range values {
		dst[i] = float32(v)
	}
}

// fillSamples gives the data set random pixels below a number, or tokens.
func (in *interpreter) fillSamples(m *nn.Model, split string, rng *rand.Rand, below int) {
	name := "data." + split + ".images"
	if tokens := m.Vocabulary(); tokens > 0 {
		for i := range in.ints(name) {
			in.ints(name)[i] = int32(rng.IntN(tokens))
		}
		return
	}
	pixels := in.bytes(name)
	for i := range pixels {
		pixels[i] = byte(rng.IntN(below))
	}
}

// fill gives the data set random pixels or tokens and labels and the parameters random
// values in [-0.5, 0.5), the same for equal seeds whatever the lowering.
func (in *interpreter) fill(m *nn.Model, split string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 17))
	in.fillSamples(m, split, rng, 256)
	labels := in.ints("data." + split + ".labels")
	for i := range labels {
		labels[i] = int32(rng.IntN(m.Classes()))
	}
	for _, p := range m.Parameters() {
		values := make([]float64, p.Elems())
		for i := range values {
			values[i] = float64(float32(rng.Float64() - 0.5))
		}
		in.setFloats(p.Name, values)
	}
}

// indices are the samples first, first+1, … of a batch.
func indices(first, batch int) []int32 {
	index := make([]int32, batch)
	for i := range index {
		index[i] = int32(first + i)
	}
	return index
}

func mustNew(t testing.TB, name string, input []int, list ...nn.Layer) *nn.Model {
	t.Helper()
	return must.Get(nn.New(name, input, list...))(t)
}

func mustLower(t testing.TB, m *nn.Model, opt nn.LowerOptions) *dag.Graph {
	t.Helper()
	return must.Get(m.Lower(opt))(t)
}
