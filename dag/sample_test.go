package dag

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"dahl/must"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with testdata/name, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want := must.Get(os.ReadFile(path))(t)
	if got != string(want) {
		t.Errorf("%s differs; run with -update and read the difference. Got\n%s", path, got)
	}
}

// tiles cuts an extent into ranges of the given length, the last maybe shorter.
func tiles(extent, tile int) []Range {
	var all []Range
	for lo := 0; lo < extent; lo += tile {
		all = append(all, Range{lo, min(lo+tile, extent)})
	}
	return all
}

// sampleGraph is the forward pass and one weight gradient of a small network:
// batch 7, 3 channels 11×13, convolution to 5 filters 9×11, pooling to 4×5, a
// flatten to 100, dense to 2. Every layer has another split.
func sampleGraph(t testing.TB) *Graph {
	t.Helper()
	b := NewBuilder("sample net")
	x := b.Buffer(Buffer{Name: "x", Shape: []int{7, 3, 11, 13}, Type: Float32, Role: Input, Home: "host"})
	w := b.Buffer(Buffer{Name: "conv.weight", Shape: []int{5, 3, 3, 3}, Type: Float32, Role: Parameter, Home: "host"})
	y := b.Buffer(Buffer{Name: "conv.y", Shape: []int{7, 5, 9, 11}, Type: Float32})
	r := b.Buffer(Buffer{Name: "relu.y", Shape: []int{7, 5, 9, 11}, Type: Float32})
	mask := b.Buffer(Buffer{Name: "relu.mask", Shape: []int{7, 5, 9, 11}, Type: Uint8})
	p := b.Buffer(Buffer{Name: "pool.y", Shape: []int{7, 5, 4, 5}, Type: Float32})
	flat := b.View("pool.flat", p, 7, 100)
	fw := b.Buffer(Buffer{Name: "fc.weight", Shape: []int{2, 100}, Type: Float32, Role: Parameter, Home: "host"})
	z := b.Buffer(Buffer{Name: "fc.y", Shape: []int{7, 2}, Type: Float32})
	dw := b.Buffer(Buffer{Name: "grad.fc.weight", Shape: []int{2, 100}, Type: Float32, Role: Gradient, Accumulators: 2})
	b.OpCosts("relu", []Cost{{Key: "cuda@1.2GHz", Ns: 40, Joules: 0.002}, {Key: AnyDevice, Ns: 500}})
	for _, n := range tiles(7, 2) {
		for _, f := range tiles(5, 3) {
			box := Box{n, f, {0, 9}, {0, 11}}
			b.Task(Task{
				Name: fmt.Sprintf("conv[%v]", box[:2]), Op: "conv2d", Type: Float32,
				Params: Params{{"stride", 1}, {"pad", 0}}, Labels: Labels{Layer: "conv", Phase: "forward"},
				Accesses: []Access{{Region{y, box}, Write}, {Region{x, Box{n, {0, 3}, {0, 11}, {0, 13}}}, Read},
					{Region{w, Box{f, {0, 3}, {0, 3}, {0, 3}}}, Read}},
				Flops: float64(box.Elems() * 54), MovedBytes: 4 * box.Elems(),
			})
		}
	}
	for _, n := range tiles(7, 3) {
		box := Box{n, {0, 5}, {0, 9}, {0, 11}}
		b.Task(Task{Name: fmt.Sprintf("relu[%v]", box[:1]), Op: "relu", Type: Float32, Labels: Labels{Layer: "relu", Phase: "forward"},
			Accesses: []Access{{Region{r, box}, Write}, {Region{mask, box}, Write}, {Region{y, box}, Read}}})
	}
	for _, n := range tiles(7, 5) {
		b.Task(Task{Name: fmt.Sprintf("pool[%v]", Box{n}), Op: "avgpool", Type: Float32, Labels: Labels{Layer: "pool", Phase: "forward"},
			Costs: []Cost{{Key: "cpu/go", Ns: 700}}, Priority: 3, Placement: &Placement{Device: "cpu", Colocate: "pool"},
			Accesses: []Access{{Region{p, Box{n, {0, 5}, {0, 4}, {0, 5}}}, Write}, {Region{r, Box{n, {0, 5}, {0, 9}, {0, 11}}}, Read}}})
	}
	for i, n := range tiles(7, 4) {
		b.Task(Task{Name: fmt.Sprintf("fc[%v]", Box{n}), Op: "dense", Type: Float32, Labels: Labels{Layer: "fc", Phase: "forward", MicroBatch: int32(i)},
			Accesses: []Access{{Region{z, Box{n, {0, 2}}}, Write}, {Region{flat, Box{n, {0, 100}}}, Read}, {Region{fw, nil}, Read}}})
	}
	for _, n := range tiles(7, 2) {
		b.Task(Task{Name: fmt.Sprintf("fc.dw[%v]", Box{n}), Op: "dense.dw", Type: Float32, Labels: Labels{Layer: "fc", Phase: "backward"},
			Accesses: []Access{{Region{dw, nil}, Reduce}, {Region{z, Box{n, {0, 2}}}, Read}, {Region{flat, Box{n, {0, 100}}}, Read}}})
	}
	last := b.Task(Task{Name: "sgd", Op: "sgd", Type: Float32, Labels: Labels{Layer: "fc", Phase: "update"}, Accesses: []Access{{Region{fw, nil}, ReadWrite}, {Region{dw, nil}, Read}}})
	b.Task(Task{Name: `say "done"`, After: []TaskID{0, last}})
	return must.Get(b.Build())(t)
}

// randomGraph has everything a graph can have, with awkward names.
func randomGraph(t testing.TB, seed uint64) *Graph {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	odd := []string{"a", "b.c", "d[1]", `q"q`, "e f", "g=h", "i,j", "k#l", "m\\n", "ü", "\u00a0", "<&>", "[", "\ufffd", "p/q@r"}
	word := func() string { return odd[rng.IntN(len(odd))] }
	b := NewBuilder(word())
	shapes := [][]int{{2, 3, 5}, {7}, {}, {11, 1}, {6, 5}}
	for i := range 4 {
		shape := shapes[rng.IntN(len(shapes))]
		id := b.Buffer(Buffer{Name: fmt.Sprint(word(), i), Shape: shape, Type: DType(rng.IntN(5)), Role: Role(rng.IntN(6)), Home: []string{"", word()}[rng.IntN(2)], Layout: []string{"", word()}[rng.IntN(2)], Accumulators: rng.IntN(3)})
		if rng.IntN(2) == 0 {
			b.View(fmt.Sprint(word(), "v", i), id, int(elemsOf(shape)))
		}
	}
	costs := func() []Cost {
		return []Cost{{Key: AnyDevice, Ns: rng.Int64N(1e15)}, {Key: "cpu/go@2GHz", Ns: 3, Joules: rng.Float64() * 1e-9}, {Key: word() + "_", Ns: 5}}[rng.IntN(2):]
	}
	b.OpCosts("op1", costs())
	for i := range 12 {
		task := Task{Name: fmt.Sprint(word(), i), Op: []string{"", "op1", word()}[rng.IntN(3)], Shape: []string{"", "2x3+;5 stride=1"}[rng.IntN(2)],
			Type: DType(rng.IntN(5)), Priority: int32(rng.IntN(5) - 2), Flops: float64(rng.IntN(3)) * 1e21 / 7, MovedBytes: rng.Int64N(1e15)}
		if rng.IntN(3) == 0 {
			task.Params = Params{{word(), rng.NormFloat64()}, {"zz", -1e-300}}
			task.Labels = Labels{word(), word(), int32(rng.IntN(3)), int32(rng.IntN(2))}
			task.Placement = &Placement{Device: word(), Colocate: word()}
		}
		if rng.IntN(3) == 0 && task.Op != "op1" {
			task.Costs = costs()
		}
		if i > 0 && rng.IntN(2) == 0 {
			task.After = []TaskID{TaskID(rng.IntN(i)), TaskID(rng.IntN(i))}
		}
		for id := range b.graph.Buffers {
			buf := &b.graph.Buffers[id]
			if buf.ViewOf != None || rng.IntN(2) == 0 {
				continue
			}
			var box Box
			if rng.IntN(3) > 0 {
				box = randomBox(rng, buf.Shape)
			}
			task.Accesses = append(task.Accesses, Access{Region{BufferID(id), box}, Mode(rng.IntN(4))})
		}
		b.Task(task)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return g
}

func elemsOf(shape []int) int64 { b := Buffer{Shape: shape}; return b.Elems() }

func randomBox(rng *rand.Rand, shape []int) Box {
	box := make(Box, len(shape))
	for d, e := range shape {
		lo := rng.IntN(e)
		box[d] = Range{lo, lo + 1 + rng.IntN(e-lo)}
	}
	return box
}
