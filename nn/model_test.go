package nn_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/naming"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/models"
)

// TestStateDictNames checks names, shapes and fan-in of parameters against the
// state_dict of the PyTorch twin: conv (out,in,kh,kw), dense (out,in).
func TestStateDictNames(t *testing.T) {
	m := mustNew(t, "names", []int{2, 11, 13},
		layers.Conv2D{Filters: 5, Kernel: 3}, layers.ReLU{}, layers.MaxPool{Size: 2}, layers.Conv2D{Filters: 7, Kernel: 2, NoBias: true}, layers.AvgPool{Size: 2},
		layers.Flatten{}, nn.Named{Name: "classifier.0", Layer: layers.Dense{Outputs: 17}}, layers.Dense{Outputs: 19})
	want := []nn.Parameter{
		{Name: "conv1.weight", Shape: []int{5, 2, 3, 3}, FanIn: 18}, {Name: "conv1.bias", Shape: []int{5}, FanIn: 18}, // 2·3·3
		{Name: "conv2.weight", Shape: []int{7, 5, 2, 2}, FanIn: 20},                                                              // 5·2·2
		{Name: "classifier.0.weight", Shape: []int{17, 14}, FanIn: 14}, {Name: "classifier.0.bias", Shape: []int{17}, FanIn: 14}, // 7 channels of 1×2
		{Name: "fc2.weight", Shape: []int{19, 17}, FanIn: 17}, {Name: "fc2.bias", Shape: []int{19}, FanIn: 17},
	}
	got := m.Parameters()
	if !slices.EqualFunc(got, want, func(a, b nn.Parameter) bool {
		return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) && a.FanIn == b.FanIn
	}) {
		t.Errorf("parameters are %v, want %v", got, want)
	}
	var stages []string
	for _, s := range m.Stages {
		stages = append(stages, s.Name+" "+naming.ShapeText(s.Out))
	}
	// 11×13 less 2 is 9×11, halved and floored 4×5, less 1 is 3×4, halved 1×2.
	if text := strings.Join(stages, ", "); text != "conv1 5×9×11, relu1 5×9×11, pool1 5×4×5, conv2 7×3×4, pool2 7×1×2, flatten1 14, classifier.0 17, fc2 19" {
		t.Errorf("stages are %s", text)
	}
}

// TestParameterInit checks the bound of PyTorch's default distribution and that two
// parameters of equal shape differ.
func TestParameterInit(t *testing.T) {
	m := mustNew(t, "init", []int{101}, layers.Dense{Outputs: 97}, layers.Dense{Outputs: 101})
	var means []float64
	for _, p := range m.Parameters() {
		values := make([]float64, p.Elems())
		p.Init(values, 0, 7)
		bound := 1 / math.Sqrt(float64(p.FanIn))
		if top := max(slices.Max(values), -slices.Min(values)); !(top <= bound && top > bound*0.9) {
			t.Errorf("%s reaches %g, the distribution %g", p.Name, top, bound)
		}
		means = append(means, values[0])
	}
	slices.Sort(means)
	if len(slices.Compact(means)) != 4 {
		t.Errorf("parameters begin with equal numbers: %v", means)
	}
}

// TestModelFor puts mlp on 8×8 digits of 10 classes, and refuses what does not fit.
func TestModelFor(t *testing.T) {
	m, _ := models.ByName("mlp")
	digits, err := m.For([]int{1, 8, 8}, 7)
	if err != nil {
		t.Fatal(err)
	}
	if want := 64*512 + 512 + 512*512 + 512 + 512*7 + 7; digits.NumWeights() != want || digits.Classes() != 7 || digits.Name != "mlp" || !reflect.DeepEqual(digits.Defaults, m.Defaults) {
		t.Errorf("mlp on digits has %d weights, want %d", digits.NumWeights(), want)
	}
	lenet, _ := models.ByName("lenet5")
	if _, err := lenet.For([]int{1, 8, 8}, 10); err == nil || !strings.Contains(err.Error(), `layer "conv2" (conv2d) of input 6×4×4: window 5 is larger than the input, 4 with padding`) {
		t.Errorf("lenet5 on 8×8: %v", err)
	}
}

// TestModelErrors checks mistakes that a file cannot make, or makes like Go code.
func TestModelErrors(t *testing.T) {
	for want, build := range map[string]func() (*nn.Model, error){
		"has no layers":       func() (*nn.Model, error) { return nn.New("m", []int{3}) },
		"input: shape 3×-1×2": func() (*nn.Model, error) { return nn.New("m", []int{3, -1, 2}, layers.ReLU{}) },
		"the name is taken": func() (*nn.Model, error) {
			return nn.New("m", []int{3}, nn.Named{Name: "a", Layer: layers.ReLU{}}, nn.Named{Name: "a", Layer: layers.ReLU{}})
		},
		"letter followed by letters": func() (*nn.Model, error) { return nn.New("m", []int{3}, nn.Named{Name: "a[", Layer: layers.ReLU{}}) },
		"are for dahl's own buffers": func() (*nn.Model, error) {
			return nn.New("m", []int{3}, nn.Named{Name: "grad.x", Layer: layers.ReLU{}})
		},
		"window 17; at most 15": func() (*nn.Model, error) {
			return nn.New("m", []int{1, 19, 19}, layers.MaxPool{Size: 17}, layers.Flatten{})
		},
		"has more than 4294967296": func() (*nn.Model, error) { return nn.New("m", []int{1 << 20}, layers.Dense{Outputs: 1 << 20}) },
		"pooling needs C×H×W":      func() (*nn.Model, error) { return nn.New("m", []int{3}, layers.AvgPool{Size: 2}) },
		"pad -1": func() (*nn.Model, error) {
			return nn.New("m", []int{1, 5, 5}, layers.Conv2D{Filters: 1, Kernel: 3, Pad: -1})
		},
		"window 0, stride 1; want at lea": func() (*nn.Model, error) { return nn.New("m", []int{1, 5, 5}, layers.Conv2D{Filters: 1}) },
	} {
		if _, err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// cifar-cnn's work per image: conv2 has 9216 weights at 32×32 positions, more than
// conv4's 36864 at 16×16 (equal: 9,437,184 each); the first of equal ones counts.
func TestBusiestLayer(t *testing.T) {
	for name, want := range map[string]string{"cifar-cnn": "conv2", "mlp": "fc1", "lenet5": "conv2"} {
		m, err := models.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.BusiestLayer(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestFanIn: an output of a dense layer has all inputs, one of a convolution a window of each
// channel, and so has its bias.
func TestFanIn(t *testing.T) {
	for _, test := range []struct {
		layer nn.Layer
		in    []int
		want  int
	}{
		{layers.Dense{Outputs: 7}, []int{11}, 11},
		{layers.Dense{Outputs: 1}, []int{1}, 1},
		{layers.Conv2D{Filters: 5, Kernel: 3, Stride: 1}, []int{2, 7, 13}, 2 * 3 * 3},
		{layers.Conv2D{Filters: 6, Kernel: 5, Stride: 1}, []int{1, 28, 28}, 25},
		{layers.Conv2D{Filters: 2, Kernel: 1, Stride: 1}, []int{17, 3, 3}, 17},
	} {
		for _, p := range test.layer.(nn.Learner).Params([][]int{test.in}) {
			if p.FanIn != test.want {
				t.Errorf("%+v of %v: the fan-in of %s is %d, want %d", test.layer, test.in, p.Name, p.FanIn, test.want)
			}
		}
	}
}
