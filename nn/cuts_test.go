package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/nn/layers"
)

// cutCase is a small network and the layers in it of which all cuts are tried. Extents are pairwise different primes, so that
// no tile but those of one element divides them. There are 4 classes, where no cut is of the last layer.
type cutCase struct {
	what   string
	batch  int
	input  []int
	layers []nn.Layer
	cut    []string
}

// cutCases have each kind of layer behind a convolution or a dense layer, so that the gradient of its input is needed.
func cutCases() []cutCase {
	head := func(channels int) nn.Layer { return layers.Conv2D{Filters: channels, Kernel: 1} }
	cases := []cutCase{
		{"stride and padding", 5, []int{1, 11, 13}, []nn.Layer{head(2), layers.Conv2D{Filters: 7, Kernel: 3, Pad: 1, Stride: 2}}, []string{"conv2"}},
		{"windows of even extent", 3, []int{1, 7, 11}, []nn.Layer{head(5), layers.Conv2D{Filters: 2, Kernel: 2, Pad: 1}}, []string{"conv2"}},
		{"windows larger than the tile", 2, []int{1, 11, 13}, []nn.Layer{head(3), layers.Conv2D{Filters: 7, Kernel: 5, Pad: 2, Stride: 3}}, []string{"conv2"}},
		{"padding of more than a window's step", 3, []int{1, 7, 11}, []nn.Layer{head(2), layers.Conv2D{Filters: 5, Kernel: 5, Pad: 4, Stride: 2}}, []string{"conv2"}},
		{"gaps between windows", 3, []int{1, 11, 13}, []nn.Layer{head(5), layers.Conv2D{Filters: 7, Kernel: 2, Stride: 3}}, []string{"conv2"}},
		{"an image of one row", 5, []int{1, 1, 13}, []nn.Layer{head(2), layers.Conv2D{Filters: 7, Kernel: 3, Pad: 1}}, []string{"conv2"}},
		{"a result of one row", 5, []int{1, 3, 11}, []nn.Layer{head(2), layers.Conv2D{Filters: 7, Kernel: 3}}, []string{"conv2"}},
		{"no bias, and input without gradient", 3, []int{5, 7, 11}, []nn.Layer{layers.Conv2D{Filters: 2, Kernel: 3, NoBias: true}}, []string{"conv1"}},
		{"rows and columns that differ", 3, []int{1, 11, 13}, []nn.Layer{head(2), layers.Conv2D{Filters: 7, Kernel: 3, Stride: 2, Columns: layers.Columns{Size: 2, Stride: 1}, Pads: layers.Pads{Top: 2, Left: 1}}}, []string{"conv2"}},
		{"dilation", 3, []int{1, 11, 13}, []nn.Layer{head(5), layers.Conv2D{Filters: 2, Kernel: 3, Pad: 3, Dilation: 3, Columns: layers.Columns{Dilation: 1}}}, []string{"conv2"}},
		{"dilation and stride", 3, []int{1, 11, 13}, []nn.Layer{head(2), layers.Conv2D{Filters: 7, Kernel: 3, Pad: 2, Dilation: 2, Stride: 3, Columns: layers.Columns{Dilation: 4, Stride: 2}}}, []string{"conv2"}},
		{"groups", 3, []int{1, 7, 5}, []nn.Layer{head(6), layers.Conv2D{Filters: 21, Kernel: 2, Groups: 3}}, []string{"conv2"}},
		{"depthwise", 3, []int{1, 7, 5}, []nn.Layer{head(11), layers.Conv2D{Filters: 11, Kernel: 3, Pad: 1, Groups: 11}}, []string{"conv2"}},
		{"two filters per channel", 3, []int{1, 11, 5}, []nn.Layer{head(7), layers.Conv2D{Filters: 14, Kernel: 3, Stride: 2, Groups: 7}}, []string{"conv2"}},
		{"fused groups", 3, []int{1, 7, 11}, []nn.Layer{head(6), layers.ReLU{}, layers.Conv2D{Filters: 10, Kernel: 3, Groups: 2}, layers.ReLU{}, head(5)}, []string{"conv1", "conv2"}},
		{"dense", 5, []int{13}, []nn.Layer{layers.Dense{Outputs: 11}, layers.Dense{Outputs: 7}}, []string{"fc2"}},
		{"dense without bias", 5, []int{13}, []nn.Layer{layers.Dense{Outputs: 7}, layers.Dense{Outputs: 11, NoBias: true}}, []string{"fc2"}},
		{"flattened maps", 5, []int{1, 3, 7}, []nn.Layer{head(2)}, []string{"conv1", "flatten1", "fc1"}},
		{"maximum over windows that overlap", 5, []int{1, 7, 11}, []nn.Layer{head(2), layers.MaxPool{Size: 3, Stride: 2, Pad: 1}}, []string{"pool1"}},
		{"maximum that leaves a row out", 5, []int{1, 7, 11}, []nn.Layer{head(3), layers.MaxPool{Size: 2}}, []string{"pool1"}},
		{"maximum over rectangles", 5, []int{1, 7, 11}, []nn.Layer{head(2), layers.MaxPool{Size: 2, Columns: layers.Columns{Size: 5, Stride: 3}, Pads: layers.Pads{Left: 2, Bottom: 1}}}, []string{"pool1"}},
		{"average over rectangles", 5, []int{1, 7, 11}, []nn.Layer{head(3), layers.AvgPool{Size: 3, Columns: layers.Columns{Size: 2, Stride: 1}, Pads: layers.Pads{Top: 1, Right: 1}}}, []string{"pool1"}},
		{"average over windows that overlap", 5, []int{1, 7, 11}, []nn.Layer{head(3), layers.AvgPool{Size: 2, Stride: 1, Pad: 1}}, []string{"pool1"}},
		{"average of thirds", 5, []int{1, 7, 11}, []nn.Layer{head(2), layers.AvgPool{Size: 3, Stride: 2, Pad: 1}}, []string{"pool1"}},
		{"batch normalisation", 5, []int{1, 7, 11}, []nn.Layer{layers.Conv2D{Filters: 3, Kernel: 1, NoBias: true}, layers.BatchNorm{}}, []string{"conv1", "bn1"}},
		{"dropout", 5, []int{1, 7, 11}, []nn.Layer{head(3), layers.Dropout{P: 0.25}}, []string{"drop1"}},
		{"average of all pixels", 5, []int{1, 7, 11}, []nn.Layer{head(3), layers.GlobalAvgPool{}}, []string{"pool1"}},
		{"ReLU", 5, []int{1, 7, 11}, []nn.Layer{head(3), layers.ReLU{}}, []string{"relu1"}},
		{"sum", 3, []int{1, 7, 11}, []nn.Layer{head(5), head(5), nn.Of(layers.Add{}, "conv1", "conv2")}, []string{"conv1", "add1"}},
		{"concatenation", 3, []int{1, 7, 11}, []nn.Layer{head(5), head(2), nn.Of(layers.Concat{}, "conv1", "conv2")}, []string{"conv1", "concat1"}},
		{"product", 3, []int{1, 7, 11}, []nn.Layer{head(5), head(5), nn.Of(layers.Multiply{}, "conv1", "conv2")}, []string{"conv1", "multiply1"}},
		{"three readers", 3, []int{1, 7, 11}, []nn.Layer{head(5), layers.ReLU{}, head(5), nn.Of(head(5), "relu1"), nn.Of(layers.Add{}, "relu1", "conv2", "conv3")}, []string{"relu1", "conv3"}},
		{"fused with a pooling", 3, []int{1, 11, 13}, []nn.Layer{head(2), layers.Conv2D{Filters: 7, Kernel: 5, Stride: 2}, layers.ReLU{}, layers.MaxPool{Size: 2}}, []string{"conv2"}},
		{"fused with a pooling, first", 5, []int{2, 11, 13}, []nn.Layer{layers.Conv2D{Filters: 7, Kernel: 3}, layers.ReLU{}, layers.MaxPool{Size: 2}}, []string{"conv1"}},
		{"fused before a convolution", 5, []int{1, 11, 13}, []nn.Layer{head(2), layers.ReLU{}, layers.Conv2D{Filters: 7, Kernel: 3, Stride: 2}}, []string{"conv1", "conv2"}},
		{"dense on a sequence", 3, []int{5, 13}, []nn.Layer{layers.Dense{Outputs: 11}, layers.Dense{Outputs: 7}}, []string{"fc2"}},
		{"fused on a sequence", 3, []int{5, 13}, []nn.Layer{layers.Dense{Outputs: 11}, layers.ReLU{}, layers.Dense{Outputs: 7, NoBias: true}, layers.ReLU{}, layers.Dense{Outputs: 2}}, []string{"fc1", "fc2"}},
		{"sum of sequences", 3, []int{5, 11}, []nn.Layer{layers.Dense{Outputs: 7}, layers.Dense{Outputs: 7}, nn.Of(layers.Add{}, "fc1", "fc2")}, []string{"fc2", "add1"}},
		{"concatenation of sequences", 3, []int{7, 11}, []nn.Layer{layers.Dense{Outputs: 5}, layers.Dense{Outputs: 2}, nn.Of(layers.Concat{}, "fc1", "fc2")}, []string{"fc2", "concat1"}},
		{"embedding", 3, []int{7}, []nn.Layer{layers.Embedding{Tokens: 11, Width: 5}}, []string{"embed1"}},
		{"dropout of positions", 3, []int{7}, []nn.Layer{layers.Embedding{Tokens: 11, Width: 5}, layers.Dropout{P: 0.25}}, []string{"drop1"}},
		{"positions", 3, []int{7}, []nn.Layer{layers.Embedding{Tokens: 11, Width: 5}, layers.Positions{}}, []string{"positions1"}},
		{"a class token before the positions", 3, []int{7}, []nn.Layer{layers.Embedding{Tokens: 11, Width: 5}, layers.ClassToken{}}, []string{"class_token1"}},
		{"the third position", 3, []int{7}, []nn.Layer{layers.Embedding{Tokens: 11, Width: 5}, layers.Select{Position: 2}}, []string{"select1"}},
		{"normalised positions", 3, []int{7}, []nn.Layer{layers.Embedding{Tokens: 11, Width: 5}, layers.LayerNorm{}, layers.RMSNorm{}}, []string{"ln1", "rms1"}},
		{"attention", 3, []int{7}, []nn.Layer{layers.Embedding{Tokens: 11, Width: 30}, layers.Attention{Heads: 6, KeyHeads: 2, Causal: true}}, []string{"attn1"}},
		{"attention to both sides", 2, []int{5}, []nn.Layer{layers.Embedding{Tokens: 11, Width: 27}, layers.Rotary{Heads: 4, Width: 6}, layers.Attention{Heads: 3, Window: 2}}, []string{"rotary1", "attn1"}},
		{"attention with dropout", 3, []int{7}, []nn.Layer{
			nn.Of(layers.Embedding{Tokens: 3, Width: 30}, "input"), nn.Of(layers.Mask{Token: 1}, "input"), nn.Of(layers.Attention{Heads: 6, KeyHeads: 2, Window: 5, Dropout: 0.25}, "embed1", "mask1"),
		}, []string{"attn1"}},
		{"masked attention", 3, []int{7}, []nn.Layer{
			nn.Of(layers.Embedding{Tokens: 3, Width: 30}, "input"), nn.Of(layers.Mask{Token: 1}, "input"), nn.Of(layers.Segments{Token: 2}, "input"),
			nn.Of(layers.Embedding{Tokens: 2, Width: 30}, "segments1"), nn.Of(layers.Add{}, "embed1", "embed2"), nn.Of(layers.Attention{Heads: 6, KeyHeads: 2}, "add1", "mask1"),
		}, []string{"mask1", "segments1", "embed2", "attn1"}},
		{"pixels", 3, []int{1, 7, 5}, []nn.Layer{head(11), layers.Pixels{}, layers.Dense{Outputs: 3}, layers.Pixels{}, layers.GlobalAvgPool{}}, []string{"conv1", "pixels1", "pixels2", "pool1"}},
		{"fused dense layers", 5, []int{13}, []nn.Layer{layers.Dense{Outputs: 11}, layers.ReLU{}, layers.Dense{Outputs: 7}, layers.ReLU{}, layers.Dense{Outputs: 3}}, []string{"fc1", "fc2"}},
	}
	for _, f := range kernels.Functions() {
		cases = append(cases, cutCase{f.Name, 5, []int{1, 7, 11}, []nn.Layer{head(3), layers.Activation{Function: f.Name, Setting: f.Most / 8}}, []string{f.Name + "1"}})
	}
	return cases
}

func (c *cutCase) model(t testing.TB) *nn.Model {
	t.Helper()
	list, classes := c.layers, 4
	if slices.Contains(c.cut, "fc1") {
		classes = 17
	}
	if len(c.input) == 3 {
		list = append(slices.Clone(list), layers.Flatten{})
	}
	return mustNew(t, c.what, c.input, append(slices.Clone(list), layers.Dense{Outputs: classes})...)
}

// TestCutCasesCoverTable makes a new layer in the table ask for its case.
func TestCutCasesCoverTable(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cutCases() {
		m, found := c.model(t), 0
		for _, s := range m.Stages {
			if slices.Contains(c.cut, s.Name) {
				seen[s.Layer.Kind()] = true
				found++
			}
		}
		if found != len(c.cut) {
			t.Errorf("%s: layers %v are not all there", c.what, c.cut)
		}
	}
	for _, kind := range layers.All() {
		if !seen[kind.Kind] {
			t.Errorf("layer kind %q has no case in cutCases", kind.Kind)
		}
	}
}

// singleCut is a tile of one dimension, in the forward pass or one of the gradients of a layer.
type singleCut struct {
	layer string
	pass  dag.Pass
	along dag.Dimension
	tile  int
}

// lowerCuts is the layers with some cuts. Where a layer has several, chance says whether it is recomputed.
func lowerCuts(cuts []singleCut, accumulators int, rng *rand.Rand) map[string]dag.LayerLowering {
	list := map[string]dag.LayerLowering{}
	for _, c := range cuts {
		ll := list[c.layer]
		cut := ll.Cut(c.pass)
		*cut.Of(c.along), cut.Accumulators = c.tile, accumulators
		ll.Recompute = len(cuts) > 1 && rng.IntN(2) == 0
		list[c.layer] = ll
	}
	return list
}

// cuts are all single cuts of some layers, into tiles of one element, of three and of more than half. The sizes of a dimension
// follow each other.
func (c *cutCase) cuts(m *nn.Model, among func(*nn.Stage) bool) (all [][]singleCut) {
	for i := range m.Stages {
		s := &m.Stages[i]
		if !among(s) {
			continue
		}
		in, out := nn.ExtentsOf(s.In[0]), nn.ExtentsOf(s.Out)
		for pass := range dag.NumPasses {
			image := out
			if pass == dag.InputGradientPass {
				image = in
			}
			if s.Layer.Kind() == "attention" { // columns are keys of queries, or queries of keys
				image[2] = image[1]
			}
			for along, extent := range [dag.NumDimensions]int{c.batch, out[0], in[0], image[1], image[2]} {
				var sizes []singleCut
				for _, tile := range []int{1, 3, extent/2 + 1} {
					if tile < extent && (len(sizes) == 0 || tile > sizes[len(sizes)-1].tile) {
						sizes = append(sizes, singleCut{s.Name, pass, dag.Dimension(along), tile})
					}
				}
				if sizes != nil {
					all = append(all, sizes)
				}
			}
		}
	}
	return all
}

// tries are single cuts, of each size or of sizes that take turns, and some random pairs with a cut of any layer.
func (c *cutCase) tries(m *nn.Model, rng *rand.Rand, eachSize bool) (all [][]singleCut) {
	cuts := c.cuts(m, func(s *nn.Stage) bool { return slices.Contains(c.cut, s.Name) })
	for i, sizes := range cuts {
		if !eachSize {
			sizes = sizes[i%len(sizes):][:1]
		}
		for _, one := range sizes {
			all = append(all, []singleCut{one})
		}
	}
	draw := func(from [][]singleCut) singleCut {
		sizes := from[rng.IntN(len(from))]
		return sizes[rng.IntN(len(sizes))]
	}
	ofAll := c.cuts(m, func(*nn.Stage) bool { return true })
	for range 2 * int(dag.NumDimensions) {
		all = append(all, []singleCut{draw(cuts), draw(ofAll)})
	}
	return all
}

// eachLowering visits the tries whose graphs differ from those without cuts and from each other. Fusion and types take turns.
func (c *cutCase) eachLowering(t testing.TB, m *nn.Model, opt nn.LowerOptions, types []dag.DType, eachSize bool, visit func(opt nn.LowerOptions, g *dag.Graph)) {
	t.Helper()
	seen := map[string]bool{}
	lower := func() (g *dag.Graph, isNew bool) {
		g = mustLower(t, m, opt)
		isNew = !seen[g.Hash()]
		seen[g.Hash()] = true
		return g, isNew
	}
	for _, opt.Type = range types {
		for _, opt.Unfused = range []bool{false, true} {
			lower()
		}
	}
	rng := rand.New(rand.NewPCG(uint64(len(c.what)), 71))
	for i, cuts := range c.tries(m, rng, eachSize) {
		opt.Unfused = i%2 == 1
		opt.Lowering = dag.Lowering{Layers: lowerCuts(cuts, 1+i%3, rng)}
		if len(cuts) > 1 && !isTracked(m) {
			opt.Lowering.MicroBatches = 1 + rng.IntN(min(c.batch, 3))
		}
		opt.Type = types[i/2%len(types)]
		if testing.Short() && i%3 == 2 {
			continue
		}
		if g, isNew := lower(); isNew {
			visit(opt, g)
		}
	}
}

// isTracked reports whether a network has statistics of batches, which differ between micro-batches and the batch.
func isTracked(m *nn.Model) bool {
	return slices.ContainsFunc(m.Stages, func(s nn.Stage) bool { return len(s.Running) > 0 })
}

// isExact reports whether a step has integers, or integers divided by a power of 2, wherever weights, pixels and the gradient of the loss are integers.
func isExact(m *nn.Model) bool {
	return !slices.ContainsFunc(m.Stages, func(s nn.Stage) bool {
		switch l := s.Layer.(type) {
		case layers.GlobalAvgPool, layers.BatchNorm, layers.Dropout, layers.LayerNorm, layers.RMSNorm, layers.Attention, layers.Rotary:
			return true
		case layers.AvgPool:
			return l.Size != 2
		case layers.Activation:
			return l.Function != "leaky_relu" // whose slope is 1/8 here
		}
		return false
	})
}

// integerStep is a step on small integers, at the rate 1. Labels have no part in it: the gradient of the outputs is chosen.
//
// Weights are -1, 0 or 1, pixels at most 2, and that gradient is -2 to 2. So the gradient of what the last layer reads is at most 2·17 = 34. The
// largest sums here are weight gradients of a first layer before a convolution with 7 filters of 3×3, over 5 images of 11×13
// pixels: at most 5·143·2·(7·9·34) < 2²². They are exact in a float32, also with the three bits behind the point that an
// average of four or a slope of 1/8 brings, and so the order of terms does not matter. By stochastic gradient descent without
// momentum a weight is less by its gradient after the step. So all variants of a kernel do, too: the number says which. Those
// that transform convolutions have fractions in between, and are left out.
func integerStep(t testing.TB, m *nn.Model, opt nn.LowerOptions, g *dag.Graph, number int) *interpreter {
	t.Helper()
	in := newInterpreterOf(t, g, map[string][]uint64{}, func(k *kernels.Kernel, s *calls.Spec) *calls.Variant {
		var all []*calls.Variant
		for i := range k.Variants {
			if v := &k.Variants[i]; v.RunsHere() && v.Fits(s) == nil && !v.Transforms {
				all = append(all, v)
			}
		}
		return all[number%len(all)]
	})
	rng := rand.New(rand.NewPCG(3, 19))
	in.fillSamples(m, "train", rng, 3)
	for _, p := range m.Parameters() {
		values := make([]float64, p.Elems())
		for i := range values {
			values[i] = float64(rng.IntN(3) - 1)
		}
		in.setFloats(p.Name, values)
	}
	dz := make([]float64, opt.Batch*m.Classes()*nn.Elems(m.Positions()))
	for i := range dz {
		dz[i] = float64(rng.IntN(5) - 2)
	}
	in.feed(indices(0, opt.Batch), 1, 1)
	for i, run := range in.calls {
		run()
		if task := in.tasks[i]; task.Labels.Phase == "loss" && task.Op == "softmax_xent" {
			n := len(in.operand(task, 0)) // of a micro-batch
			in.setOperand(task, 0, dz[:n])
			dz = dz[n:]
		}
	}
	return in
}

// TestCutsAreExact: a step on integers gives the same values, gradients and weights whatever is cut, bit for bit, in both
// types and forms, by all kernels of this machine. Each element is written once.
func TestCutsAreExact(t *testing.T) {
	for _, c := range cutCases() {
		m := c.model(t)
		if !isExact(m) {
			continue
		}
		t.Run(c.what, func(t *testing.T) {
			opt := nn.LowerOptions{Batch: c.batch, Samples: c.batch, Type: dag.Float64, Train: true, Optimizer: nn.SGD{}, Divisor: 1, Unfused: true}
			whole := integerStep(t, m, opt, mustLower(t, m, opt), 0)
			tried := 0
			c.eachLowering(t, m, opt, []dag.DType{dag.Float64, dag.Float32}, true, func(opt nn.LowerOptions, g *dag.Graph) {
				tried++
				writtenOnce(t, g)
				cut := integerStep(t, m, opt, g, tried)
				for i, s := range m.Stages {
					for _, name := range []string{s.Name + ".out", "grad." + s.Name + ".out"} {
						if got := cut.ofStage(m, i, name); got != nil && !slices.Equal(got, whole.ofStage(m, i, name)) {
							t.Fatalf("%v %+v: %s differs", opt.Type, opt.Lowering, name)
						}
					}
				}
				for _, p := range m.Parameters() {
					if !slices.Equal(cut.floats(p.Name), whole.floats(p.Name)) {
						t.Fatalf("%v %+v: %s differs after the step", opt.Type, opt.Lowering, p.Name)
					}
				}
			})
			if tried < 12 {
				t.Errorf("%d lowerings are no test", tried)
			}
		})
	}
}

// writtenOnce fails unless each element of values and gradients is written at most once in a step and before it is read or added to, and each element of
// a gradient at least once.
func writtenOnce(t *testing.T, g *dag.Graph) {
	t.Helper()
	in := &interpreter{g: g}
	written := make([][]byte, len(g.Buffers))
	for i := range g.Buffers {
		written[i] = make([]byte, g.Buffers[i].Elems())
	}
	for i := range g.Tasks {
		task := &g.Tasks[i]
		for k, a := range task.Accesses {
			of := g.Storage(a.Buffer)
			b := &g.Buffers[of]
			if b.Role == dag.Input || b.Role == dag.Parameter || b.Role == dag.State {
				continue
			}
			in.each(task, k, func(e int) {
				if a.Mode.Reads() && written[of][e] == 0 {
					t.Fatalf("%s reads element %d of %s, which is not written", task.Name, e, b.Name)
				}
				if a.Mode == dag.Write {
					if written[of][e]++; written[of][e] > 1 {
						t.Fatalf("%s writes element %d of %s again", task.Name, e, b.Name)
					}
				}
			})
		}
	}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if b.Role == dag.Gradient && b.ViewOf == dag.None && slices.Contains(written[i], 0) {
			t.Fatalf("element %d of %s is not written", slices.Index(written[i], 0), b.Name)
		}
	}
}

// TestCutsWithinRounding compares the values and gradients of a step on fractions with those of the network that is not cut,
// within bounds that rounding alone explains: of networks that have no exact step.
func TestCutsWithinRounding(t *testing.T) {
	for _, c := range cutCases() {
		m := c.model(t)
		if isExact(m) {
			continue
		}
		t.Run(c.what, func(t *testing.T) {
			opt := nn.LowerOptions{Batch: c.batch, Samples: c.batch, Type: dag.Float64, Train: true, Optimizer: keepsGradients, Unfused: true}
			index := indices(0, c.batch)
			whole := newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{})
			whole.fill(m, "train", 2)
			mag := magnitudesOf(t, m, whole, c.batch, c.batch, index, dag.Float64)
			whole.step(index, 0, 1)
			c.eachLowering(t, m, opt, []dag.DType{dag.Float64}, true, func(opt nn.LowerOptions, g *dag.Graph) {
				cut := newInterpreterOf(t, g, map[string][]uint64{}, byDefault)
				cut.fill(m, "train", 2)
				cut.step(index, 0, 1)
				mag.compareSteps(t, fmt.Sprintf("%+v", opt.Lowering), m, cut, whole)
			})
		})
	}
}

// compareSteps compares the values of layers and all gradients after a step.
func (b *magnitudes) compareSteps(t *testing.T, what string, m *nn.Model, got, want *interpreter) {
	t.Helper()
	b.compareWithin(t, what, "loss", got.floats("loss"), want.floats("loss"))
	for i, s := range m.Stages {
		for _, name := range []string{s.Name + ".out", "grad." + s.Name + ".out"} {
			if values := got.ofStage(m, i, name); values != nil {
				b.compareWithin(t, what, name, values, want.ofStage(m, i, name))
			}
		}
	}
	for _, p := range m.Parameters() {
		b.compareWithin(t, what, "grad."+p.Name, got.floats("grad."+p.Name), want.floats("grad."+p.Name))
	}
}
