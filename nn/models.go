package nn

import "dahl/naming"

// ModelInfo is a line of the table of built-in models.
type ModelInfo struct {
	Name, Doc string
	New       func() *Model
}

// Models is the table of built-in models, the networks of common benchmarks. Weights are in
// conv1, fc1, …, so that a PyTorch twin has the same state_dict.
func Models() []ModelInfo {
	return append([]ModelInfo{
		{"digits-cnn", "two convolutions and two dense layers on 8×8 digits", digitsCNN},
		{"dahl-cnn", "one convolution of 4 filters, 28×28 images", func() *Model { return dahlCNN("dahl-cnn", []int{1, 28, 28}, 4, 3, 10, 10, 1e-3) }},
		{"dahl32", "dahl-cnn with 32 filters", func() *Model { return dahlCNN("dahl32", []int{1, 28, 28}, 32, 3, 10, 10, 1e-3) }},
		{"dahl-cnn-cifar", "dahl-cnn on 32×32 colour images", func() *Model { return dahlCNN("dahl-cnn-cifar", []int{3, 32, 32}, 4, 3, 10, 10, 1e-3) }},
		{"dahl-cnn-big", "dahl-cnn on 360×270 photographs of 7 classes", func() *Model { return dahlCNN("dahl-cnn-big", []int{3, 360, 270}, 4, 3, 7, 30, 1e-3) }},
		{"dahl-cnn-512", "dahl-cnn on 512×512 colour images", func() *Model { return dahlCNN("dahl-cnn-512", []int{3, 512, 512}, 4, 3, 10, 14, 1e-3) }},
		{"dahl-cnn-k6", "dahl-cnn with two 6×6 filters, sample by sample", func() *Model { return dahlCNN("dahl-cnn-k6", []int{1, 28, 28}, 2, 6, 10, 1, 0.05) }},
		{"mlp", "three dense layers on 28×28 images", mlp},
		{"lenet5", "LeNet-5 with ReLU and max-pooling, 28×28 images", lenet5},
		{"cifar-cnn", "four convolutions and two dense layers on 32×32 colour images", cifarCNN},
	}, deepModels()...)
}

// ModelByName builds a built-in model.
func ModelByName(name string) (*Model, error) {
	info, err := naming.Find("model", name, Models(), func(m ModelInfo) string { return m.Name })
	if err != nil {
		return nil, err
	}
	return info.New(), nil
}

// builtin panics on a mistake in this file.
func builtin(name string, input []int, d Defaults, layers ...Layer) *Model {
	m, err := New(name, input, layers...)
	if err != nil {
		panic("nn: " + err.Error())
	}
	m.Defaults = d
	return m
}

func dahlCNN(name string, input []int, filters, kernel, classes, batch int, rate float64) *Model {
	return builtin(name, input, Defaults{Batch: batch, Optimizer: SGD{LearningRate: rate}},
		Conv2D{Filters: filters, Kernel: kernel}, ReLU{}, MaxPool{Size: 2}, Flatten{}, Dense{Outputs: classes})
}

func digitsCNN() *Model {
	return builtin("digits-cnn", []int{1, 8, 8}, Defaults{Batch: 64, Optimizer: SGD{LearningRate: 0.05, Momentum: 0.9}},
		Conv2D{Filters: 32, Kernel: 3, Pad: 1}, ReLU{}, Conv2D{Filters: 32, Kernel: 3, Pad: 1}, ReLU{}, MaxPool{Size: 2},
		Flatten{}, Dense{Outputs: 128}, ReLU{}, Dense{Outputs: 10})
}

func mlp() *Model {
	return builtin("mlp", []int{1, 28, 28}, Defaults{Batch: 64, Optimizer: SGD{LearningRate: 0.1}},
		Flatten{}, Dense{Outputs: 512}, ReLU{}, Dense{Outputs: 512}, ReLU{}, Dense{Outputs: 10})
}

func lenet5() *Model {
	return builtin("lenet5", []int{1, 28, 28}, Defaults{Batch: 32, Optimizer: SGD{LearningRate: 0.1}},
		Conv2D{Filters: 6, Kernel: 5, Pad: 2}, ReLU{}, MaxPool{Size: 2}, Conv2D{Filters: 16, Kernel: 5}, ReLU{}, MaxPool{Size: 2},
		Flatten{}, Dense{Outputs: 120}, ReLU{}, Dense{Outputs: 84}, ReLU{}, Dense{Outputs: 10})
}

func cifarCNN() *Model {
	conv := func(filters int) Layer { return Conv2D{Filters: filters, Kernel: 3, Pad: 1} }
	return builtin("cifar-cnn", []int{3, 32, 32}, Defaults{Batch: 64, Optimizer: SGD{LearningRate: 0.05, Momentum: 0.9}},
		conv(32), ReLU{}, conv(32), ReLU{}, MaxPool{Size: 2}, conv(64), ReLU{}, conv(64), ReLU{}, MaxPool{Size: 2},
		Flatten{}, Dense{Outputs: 512}, ReLU{}, Dense{Outputs: 10})
}
