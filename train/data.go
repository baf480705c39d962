package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/execute"
	"dahl/kernels/calls"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/data"
)

// Data are the sets for training and testing a network.
type Data struct {
	Train, Test *data.Dataset // Test is nil where there is none
}

// Samples says how many samples there are, where it does not matter which. Zeros mean a batch, and no test.
type Samples struct {
	Train, Test int
	Type        dag.DType
	Divisor     float64 // of pixels
	OnlyRead    bool    // for each step, on any machine
}

// SamplesOf says how many samples a set for training has.
func SamplesOf(d *data.Dataset) Samples {
	return Samples{Train: d.Len(), Type: d.Type, Divisor: d.Divisor, OnlyRead: d.OnlyRead()}
}

// Samples says how many samples the data have.
func (d *Data) Samples() Samples {
	n := SamplesOf(d.Train)
	if d.Test != nil {
		n.Test = d.Test.Len()
	}
	return n
}

// OpenData opens the training data of a name or path, with a limit and an offset, and the
// test split where there is one. Their samples are read by the training.
func OpenData(name string, limit, offset int) (Data, error) {
	return OpenDataAs(name, data.Options{Limit: limit, Offset: offset})
}

// OpenDataAs is OpenData with further options, which hold for both splits but for limit and offset.
func OpenDataAs(name string, opt data.Options) (d Data, err error) {
	opt.Split = data.Train
	if d.Train, err = data.Open(name, opt); err != nil {
		return d, asInput(err)
	}
	if l := d.Train.Labels; opt.Limit == 0 && opt.Offset == 0 && l != nil && slices.Min(l) == slices.Max(l) {
		return d, oneClass(d.Train)
	}
	test := data.Options{Split: data.Test, Resize: opt.Resize, Colour: d.Train.Shape[0] == 3, Positions: opt.Positions, MaskToken: opt.MaskToken, Vocabulary: opt.Vocabulary}
	d.Test, err = data.Open(name, test)
	if errors.Is(err, data.ErrNoSplit) {
		return d, nil
	}
	if err == nil {
		err = d.checkTest()
	}
	return d, asInput(err)
}

// oneClass is the error of data that teach nothing.
func oneClass(d *data.Dataset) error {
	if d.OnlyRead() {
		return inputErrorf("data %s: %s: nothing to learn; take a text of several", d.Name, naming.Count(d.Classes, "token"))
	}
	return inputErrorf("data %s: all samples have the label %d, one class: nothing to learn; a directory of images has one for each class, or a labels file", d.Name, d.Labels[0])
}

// fill reads all samples into the memory of a runner, where they are kept from then on.
func (d *Data) fill(r *execute.Runner) error {
	for _, split := range []struct {
		prefix string
		d      *data.Dataset
	}{{"data.train", d.Train}, {"data.test", d.Test}} {
		if split.d == nil {
			continue
		}
		samples := r.Bytes(split.prefix + ".images")
		if samples == nil { // no step reads this split
			continue
		}
		if err := split.d.Fill(samples); err != nil {
			return fmt.Errorf("data %s: %w", split.d.Name, err)
		}
		split.d.Keep(samples)
		copy(r.Int32s(split.prefix+".labels"), split.d.Labels)
	}
	return nil
}

// checkTest refuses a test that a network for the training samples cannot take.
func (d *Data) checkTest() error {
	a, b := d.Train, d.Test
	if !slices.Equal(a.Shape, b.Shape) || a.Type != b.Type || !slices.Equal(a.Positions, b.Positions) {
		return fmt.Errorf("data %s: the test samples are %s and the training samples %s; make them equal", a.Name, shapeText(b), shapeText(a))
	}
	for i, label := range b.Labels {
		if int(label) >= a.Classes {
			return fmt.Errorf("data %s: test sample %d has the label %d, and the training samples have %d classes, 0 to %d; number the classes of both alike",
				d.Train.Name, i/(len(b.Labels)/b.Len()), label, d.Train.Classes, d.Train.Classes-1)
		}
	}
	return nil
}

// shapeText is the shape of samples, their type where they are no pixels, and the shape of labels where there are several.
func shapeText(d *data.Dataset) string {
	text := naming.ShapeText(d.Shape)
	if len(d.Shape) == 3 {
		text += " (channels×height×width)"
	}
	if d.Type != dag.Uint8 {
		text += " of " + d.Type.String()
	}
	if len(d.Positions) > 0 {
		text += " with " + labelsText(d.Positions)
	}
	return text
}

// as is the data with their numbers in the type of a network.
func (d Data) as(t dag.DType) Data {
	for _, s := range []**data.Dataset{&d.Train, &d.Test} {
		if *s != nil {
			*s = (*s).As(t)
		}
	}
	return d
}

// DefaultData names the built-in data that have the model's shape.
func DefaultData(m *nn.Model) string {
	if slices.Equal(m.Input, []int{1, 8, 8}) && m.Classes() >= 10 {
		return "digits"
	}
	if length := Window(m); length > 0 {
		tokens := min(m.Vocabulary(), m.Classes())
		if tokens < data.WrittenTokens() && m.Defaults.MaskToken == 0 {
			return fmt.Sprintf("tokens:%d:2000:%d", length, tokens)
		}
		return fmt.Sprintf("text:%d", min(2000*length+1, data.MostWritten)) // of 2000 samples
	}
	shape := m.Input
	if len(shape) == 1 {
		shape = []int{1, 1, shape[0]}
	}
	name := fmt.Sprintf("synthetic:%s:2000:%d", naming.JoinInts(shape, "x"), m.Classes())
	if p := m.Positions(); len(p) > 0 {
		name += ":" + naming.JoinInts(p, "x")
	}
	return name
}

// Window is the length of the parts of a text that a network takes as samples: tokens, with an output at each of them. 0 means
// that it takes no text.
func Window(m *nn.Model) int {
	if m.Vocabulary() > 0 && slices.Equal(m.Positions(), m.Input) {
		return m.Input[0]
	}
	return 0
}

// Fit adapts the first and the last layer of a network to its data. A sample becomes a vector where the network begins with features. Rows of columns become an
// image of one channel where it begins with images. A model file that has fewer outputs
// than the data have classes is refused, and so are data of one class.
func Fit(m *nn.Model, d *data.Dataset) (*nn.Model, error) {
	if d.Classes < 2 {
		return nil, oneClass(d)
	}
	if i := slices.Index(d.Labels, -1); i >= 0 && !m.Defaults.Loss.Ignored {
		return nil, inputErrorf("data %s: sample %d has a label of -1, and the loss of network %s takes 0 to %d; write ignored_labels = true in [train] to leave such labels out",
			d.Name, i/nn.Elems(d.Positions), m.Name, m.Classes()-1)
	}
	if takes := m.Vocabulary(); d.OnlyRead() && takes > 0 && takes < d.Classes {
		return nil, inputErrorf("data %s: tokens are 0 to %d, and network %s takes 0 to %d; take a network with more tokens%s",
			d.Name, d.Classes-1, m.Name, takes-1, map[bool]string{true: ", or --vocabulary " + data.ByBytes}[d.Vocabulary != nil && takes >= 256])
	}
	shape := d.Shape
	switch {
	case len(m.Input) == 1:
		shape = []int{nn.Elems(shape)}
	case len(m.Input) == 3 && len(shape) == 2:
		shape = []int{1, shape[0], shape[1]}
	}
	if m.ONNX != nil {
		if err := fitsFile(m, d, shape); err != nil {
			return nil, err
		}
	}
	if m.OutputsAt != "" && m.Classes() < d.Classes {
		return nil, inputErrorf("%s: the last layer has %d outputs and the data %s have %d classes; write outputs = %d",
			m.OutputsAt, m.Classes(), d.Name, d.Classes, d.Classes)
	}
	fitted, err := m.For(shape, max(m.Classes(), d.Classes))
	if err != nil {
		return nil, inputErrorf("data %s: %w", d.Name, err)
	}
	if p := fitted.Positions(); !slices.Equal(p, d.Positions) {
		return nil, inputErrorf("data %s: %s for each sample, and the network has outputs for %s; make them equal (a network with one label ends with flatten and dense)",
			d.Name, labelsText(d.Positions), labelsText(p))
	}
	return fitted, nil
}

func labelsText(positions []int) string {
	if len(positions) == 0 {
		return "one label"
	}
	return "labels of " + naming.ShapeText(positions)
}

// fitsFile refuses data of another shape or with more classes than an ONNX file says. Its weights fit nothing else.
func fitsFile(m *nn.Model, d *data.Dataset, shape []int) error {
	switch f := m.ONNX; {
	case !slices.Equal(shape, m.Input):
		return inputErrorf("%s: the input %q of the file is N×%s, and the samples of the data %s are %s (channels×height×width); take other data or export the network for these",
			f.Path, f.Input, naming.ShapeText(m.Input), d.Name, naming.ShapeText(d.Shape))
	case m.Classes() < d.Classes:
		return inputErrorf("%s: the output %q of the file is N×%d, and the data %s have %d classes; take other data or export the network for these",
			f.Path, f.Output, m.Classes(), d.Name, d.Classes)
	}
	return nil
}

// shuffled is n indices that go round a data set, each time in a new order, as training does:
// loading gathers them from all over it.
func shuffled(size, n int, seed uint64) []int32 {
	order := make([]int32, (n+size-1)/size*size)
	for epoch := range len(order) / size {
		data.Shuffle(order[epoch*size:][:size], seed, epoch)
	}
	return order[:n]
}

// InTurn is n indices that go round a data set as it lies, as evaluation does.
func InTurn(size, n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i % size)
	}
	return order
}

// checkTokens refuses tokens that a layer has no row for.
func (w *Workload) checkTokens() error {
	if w.Data.Train == nil || w.Data.Train.Type != dag.Int32 {
		return nil
	}
	g, most := w.Program.Graphs[0], w.Data.Train.Tokens()
	if test := w.Data.Test; test != nil {
		most = max(most, test.Tokens())
	}
	for i := range g.Tasks {
		task := &g.Tasks[i]
		k, _ := w.Model.Kernels().Lookup(task.Op)
		for operand, a := range task.Accesses {
			if name := g.Buffers[g.Storage(a.Buffer)].Name; name != "input" && !strings.HasPrefix(name, "input.") { // of the model or of a micro-batch
				continue
			}
			spec := calls.SpecOf(task, func(id dag.BufferID) dag.Buffer { return g.Buffers[id] })
			if bound := k.IndexBound(spec, operand); bound > 0 && bound < most {
				return inputErrorf("data %s: a token is %d, and layer %s takes 0 to %d", w.Data.Train.Name, most-1, task.Labels.Layer, bound-1)
			}
		}
	}
	return nil
}
