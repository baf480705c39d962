package train

import (
	"errors"
	"fmt"
	"slices"

	"dahl/execute"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/data"
)

// Data is what a network is trained and tested on.
type Data struct {
	Train, Test *data.Dataset // Test is nil where there is none
}

// Samples says how many samples there are, where it does not matter which.
type Samples struct {
	Train, Test int     // 0: a batch, and no test
	Divisor     float64 // of pixels
}

// Samples are those of the data.
func (d *Data) Samples() Samples {
	n := Samples{Train: d.Train.Len(), Divisor: d.Train.Divisor}
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
	opt.Split, opt.Later = data.Train, true
	if d.Train, err = data.Open(name, opt); err != nil {
		return d, asInput(err)
	}
	if l := d.Train.Labels; opt.Limit == 0 && opt.Offset == 0 && slices.Min(l) == slices.Max(l) {
		return d, oneClass(d.Train)
	}
	d.Test, err = data.Open(name, data.Options{Split: data.Test, Later: true, Resize: opt.Resize, Colour: d.Train.Shape[0] == 3})
	if errors.Is(err, data.ErrNoSplit) {
		return d, nil
	}
	if err == nil {
		err = d.alike()
	}
	return d, asInput(err)
}

// oneClass is the error of data that teach nothing.
func oneClass(d *data.Dataset) error {
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
		if err := split.d.Fill(samples); err != nil {
			return fmt.Errorf("data %s: %w", split.d.Name, err)
		}
		split.d.Keep(samples)
		copy(r.Int32s(split.prefix+".labels"), split.d.Labels)
	}
	return nil
}

// alike refuses a test that a network for the training samples cannot take.
func (d *Data) alike() error {
	if a, b := d.Train.Shape, d.Test.Shape; a != b {
		return fmt.Errorf("data %s: the test samples are %d×%d×%d (channels×height×width) and the training samples %d×%d×%d; make them equal",
			d.Train.Name, b[0], b[1], b[2], a[0], a[1], a[2])
	}
	for i, label := range d.Test.Labels {
		if int(label) >= d.Train.Classes {
			return fmt.Errorf("data %s: test sample %d has the label %d, and the training samples have %d classes, 0 to %d; number the classes of both alike",
				d.Train.Name, i, label, d.Train.Classes, d.Train.Classes-1)
		}
	}
	return nil
}

// DefaultData names the built-in data that have the model's shape.
func DefaultData(m *nn.Model) string {
	if slices.Equal(m.Input, []int{1, 8, 8}) && m.Classes() >= 10 {
		return "digits"
	}
	if len(m.Input) == 3 {
		return fmt.Sprintf("synthetic:%dx%dx%d:2000:%d", m.Input[0], m.Input[1], m.Input[2], m.Classes())
	}
	return fmt.Sprintf("synthetic:1x1x%d:2000:%d", m.Input[0], m.Classes())
}

// Fit adapts the first and the last layer of a network to its data. A network that begins
// with features sees the pixels of a sample as a vector. A model file that has fewer outputs
// than the data have classes is refused, and so are data of one class.
func Fit(m *nn.Model, d *data.Dataset) (*nn.Model, error) {
	if d.Classes < 2 {
		return nil, oneClass(d)
	}
	shape := d.Shape[:]
	if len(m.Input) == 1 {
		shape = []int{d.Shape[0] * d.Shape[1] * d.Shape[2]}
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
	return fitted, nil
}

// fitsFile refuses data of another shape or with more classes than an ONNX file says. Its weights fit nothing else.
func fitsFile(m *nn.Model, d *data.Dataset, shape []int) error {
	switch f := m.ONNX; {
	case !slices.Equal(shape, m.Input):
		return inputErrorf("%s: the input %q of the file is N×%s, and the samples of the data %s are %s (channels×height×width); take other data or export the network for these",
			f.Path, f.Input, naming.ShapeText(m.Input), d.Name, naming.ShapeText(d.Shape[:]))
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
