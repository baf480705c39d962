package models

import (
	"slices"

	"dahl/naming"
	"dahl/nn"
	"dahl/nn/layers"
)

// Info is a line of the table of built-in models.
type Info struct {
	Name, Doc string
	New       func() *nn.Model
}

// Models is the table of built-in models, the networks of common benchmarks. Weights are in
// conv1, fc1, …, so that a PyTorch twin has the same state_dict.
func All() []Info {
	return append([]Info{
		{"digits-cnn", "two convolutions and two dense layers on 8×8 digits", digitsCNN},
		{"dahl-cnn", "one convolution of 4 filters, 28×28 images", func() *nn.Model { return dahlCNN("dahl-cnn", []int{1, 28, 28}, 4, 3, 10, 10, 1e-3) }},
		{"dahl32", "dahl-cnn with 32 filters", func() *nn.Model { return dahlCNN("dahl32", []int{1, 28, 28}, 32, 3, 10, 10, 1e-3) }},
		{"dahl-cnn-cifar", "dahl-cnn on 32×32 colour images", func() *nn.Model { return dahlCNN("dahl-cnn-cifar", []int{3, 32, 32}, 4, 3, 10, 10, 1e-3) }},
		{"dahl-cnn-big", "dahl-cnn on 360×270 photographs of 7 classes", func() *nn.Model { return dahlCNN("dahl-cnn-big", []int{3, 360, 270}, 4, 3, 7, 30, 1e-3) }},
		{"dahl-cnn-512", "dahl-cnn on 512×512 colour images", func() *nn.Model { return dahlCNN("dahl-cnn-512", []int{3, 512, 512}, 4, 3, 10, 14, 1e-3) }},
		{"dahl-cnn-k6", "dahl-cnn with two 6×6 filters, sample by sample", func() *nn.Model { return dahlCNN("dahl-cnn-k6", []int{1, 28, 28}, 2, 6, 10, 1, 0.05) }},
		{"mlp", "three dense layers on 28×28 images", mlp},
		{"lenet5", "LeNet-5 with ReLU and max-pooling, 28×28 images", lenet5},
		{"cifar-cnn", "four convolutions and two dense layers on 32×32 colour images", cifarCNN},
	}, slices.Concat(deepAll(), gptAll(), llamaAll(), bertAll(), vitAll())...)
}

// ByName builds a built-in model.
func ByName(name string) (*nn.Model, error) {
	info, err := naming.Find("model", name, All(), func(m Info) string { return m.Name })
	if err != nil {
		return nil, err
	}
	return info.New(), nil
}

// builtin panics on a mistake in this file.
func builtin(name string, input []int, d nn.Defaults, layers ...nn.Layer) *nn.Model {
	m, err := nn.New(name, input, layers...)
	if err != nil {
		panic("models: " + err.Error())
	}
	m.Defaults = d
	return m
}

func dahlCNN(name string, input []int, filters, kernel, classes, batch int, rate float64) *nn.Model {
	return builtin(name, input, nn.Defaults{Batch: batch, Optimizer: nn.SGD{LearningRate: rate}},
		layers.Conv2D{Filters: filters, Kernel: kernel}, layers.ReLU{}, layers.MaxPool{Size: 2}, layers.Flatten{}, layers.Dense{Outputs: classes})
}

func digitsCNN() *nn.Model {
	return builtin("digits-cnn", []int{1, 8, 8}, nn.Defaults{Batch: 64, Optimizer: nn.SGD{LearningRate: 0.05, Momentum: 0.9}},
		layers.Conv2D{Filters: 32, Kernel: 3, Pad: 1}, layers.ReLU{}, layers.Conv2D{Filters: 32, Kernel: 3, Pad: 1}, layers.ReLU{}, layers.MaxPool{Size: 2},
		layers.Flatten{}, layers.Dense{Outputs: 128}, layers.ReLU{}, layers.Dense{Outputs: 10})
}

func mlp() *nn.Model {
	return builtin("mlp", []int{1, 28, 28}, nn.Defaults{Batch: 64, Optimizer: nn.SGD{LearningRate: 0.1}},
		layers.Flatten{}, layers.Dense{Outputs: 512}, layers.ReLU{}, layers.Dense{Outputs: 512}, layers.ReLU{}, layers.Dense{Outputs: 10})
}

func lenet5() *nn.Model {
	return builtin("lenet5", []int{1, 28, 28}, nn.Defaults{Batch: 32, Optimizer: nn.SGD{LearningRate: 0.1}},
		layers.Conv2D{Filters: 6, Kernel: 5, Pad: 2}, layers.ReLU{}, layers.MaxPool{Size: 2}, layers.Conv2D{Filters: 16, Kernel: 5}, layers.ReLU{}, layers.MaxPool{Size: 2},
		layers.Flatten{}, layers.Dense{Outputs: 120}, layers.ReLU{}, layers.Dense{Outputs: 84}, layers.ReLU{}, layers.Dense{Outputs: 10})
}

func cifarCNN() *nn.Model {
	conv := func(filters int) nn.Layer { return layers.Conv2D{Filters: filters, Kernel: 3, Pad: 1} }
	return builtin("cifar-cnn", []int{3, 32, 32}, nn.Defaults{Batch: 64, Optimizer: nn.SGD{LearningRate: 0.05, Momentum: 0.9}},
		conv(32), layers.ReLU{}, conv(32), layers.ReLU{}, layers.MaxPool{Size: 2}, conv(64), layers.ReLU{}, conv(64), layers.ReLU{}, layers.MaxPool{Size: 2},
		layers.Flatten{}, layers.Dense{Outputs: 512}, layers.ReLU{}, layers.Dense{Outputs: 10})
}
