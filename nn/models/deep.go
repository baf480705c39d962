package models

import (
	"fmt"

	"dahl/nn"
	"dahl/nn/layers"
)

// The networks of Simonyan and Zisserman (2014, arXiv:1409.1556) and of He et al. (2015, arXiv:1512.03385), with the
// names of torchvision's, in two forms. For 224×224 images and 1000 classes they are torchvision's vgg11, vgg16,
// resnet18 and resnet50. For 32×32 images and 10 classes vgg normalises batches, as torchvision's vgg11_bn, and has one
// dense layer, and resnet begins with a 3×3 convolution and no pooling.

// deepModels are their lines of the table of models.
func deepAll() []Info {
	return []Info{
		{"vgg11", "eight convolutions with batch normalisation and a dense layer, 32×32 colour images", func() *nn.Model { return smallVGG("vgg11", vgg11Filters) }},
		{"vgg16", "thirteen convolutions with batch normalisation and a dense layer, 32×32 colour images", func() *nn.Model { return smallVGG("vgg16", vgg16Filters) }},
		{"resnet18", "residual network of 18 layers, 32×32 colour images", func() *nn.Model { return resNet("resnet18", basicBlock, []int{2, 2, 2, 2}, 32) }},
		{"resnet50", "residual network of 50 layers, 32×32 colour images", func() *nn.Model { return resNet("resnet50", bottleneck, []int{3, 4, 6, 3}, 32) }},
		{"vgg11-224", "eight convolutions and three dense layers, 224×224 colour images", func() *nn.Model { return largeVGG("vgg11-224", vgg11Filters) }},
		{"vgg16-224", "thirteen convolutions and three dense layers, 224×224 colour images", func() *nn.Model { return largeVGG("vgg16-224", vgg16Filters) }},
		{"resnet18-224", "residual network of 18 layers, 224×224 colour images", func() *nn.Model { return resNet("resnet18-224", basicBlock, []int{2, 2, 2, 2}, 224) }},
		{"resnet50-224", "residual network of 50 layers, 224×224 colour images", func() *nn.Model { return resNet("resnet50-224", bottleneck, []int{3, 4, 6, 3}, 224) }},
	}
}

// Filters of the convolutions of vgg; 0 is a pooling.
var (
	vgg11Filters = []int{64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}
	vgg16Filters = []int{64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}
)

// vggFeatures are the convolutions, numbered as torchvision numbers them.
func vggFeatures(filters []int, normalised bool) (list []nn.Layer) {
	add := func(l nn.Layer) { list = append(list, nn.Named{Name: fmt.Sprintf("features.%d", len(list)), Layer: l}) }
	for _, f := range filters {
		if f == 0 {
			add(layers.MaxPool{Size: 2})
			continue
		}
		add(layers.Conv2D{Filters: f, Kernel: 3, Pad: 1})
		if normalised {
			add(layers.BatchNorm{})
		}
		add(layers.ReLU{})
	}
	return append(list, layers.Flatten{})
}

func smallVGG(name string, filters []int) *nn.Model {
	return builtin(name, []int{3, 32, 32}, nn.Defaults{Batch: 64, Optimizer: nn.SGD{LearningRate: 0.05, Momentum: 0.9, WeightDecay: 5e-4}},
		append(vggFeatures(filters, true), nn.Named{Name: "classifier", Layer: layers.Dense{Outputs: 10}})...)
}

// largeVGG has no average over 7×7 parts between convolutions and dense layers, which changes nothing at 224×224.
func largeVGG(name string, filters []int) *nn.Model {
	list := vggFeatures(filters, false)
	for i, l := range []nn.Layer{layers.Dense{Outputs: 4096}, layers.ReLU{}, layers.Dropout{P: layers.DefaultP}, layers.Dense{Outputs: 4096}, layers.ReLU{}, layers.Dropout{P: layers.DefaultP}, layers.Dense{Outputs: 1000}} {
		list = append(list, nn.Named{Name: fmt.Sprintf("classifier.%d", i), Layer: l})
	}
	return builtin(name, []int{3, 224, 224}, nn.Defaults{Batch: 64, Optimizer: nn.SGD{LearningRate: 0.01, Momentum: 0.9, WeightDecay: 5e-4}}, list...)
}

// residual is a residual network while its layers are listed.
type residual struct {
	layers   []nn.Layer
	channels int    // of the last block
	output   string // of the last block
}

// block adds a block's layers. It reads the output of the block before.
type block func(r *residual, name string, filters, stride int)

// bottleneckOutputs is how many channels a bottleneck gives per filter of the others.
const bottleneckOutputs = 4

// resNet has a stage for each number of blocks, with twice the filters of the stage before it.
func resNet(name string, b block, blocks []int, image int) *nn.Model {
	r, classes := &residual{}, 10
	if image == 32 {
		r.normalised("conv1", "bn1", layers.Conv2D{Filters: 64, Kernel: 3, Pad: 1}, "input")
		r.named("relu", layers.ReLU{})
	} else {
		classes = 1000
		r.normalised("conv1", "bn1", layers.Conv2D{Filters: 64, Kernel: 7, Pad: 3, Stride: 2}, "input")
		r.named("relu", layers.ReLU{})
		r.named("maxpool", layers.MaxPool{Size: 3, Stride: 2, Pad: 1})
	}
	r.channels = 64
	for stage, count := range blocks {
		for i := range count {
			stride := 1
			if i == 0 && stage > 0 {
				stride = 2
			}
			b(r, fmt.Sprintf("layer%d.%d.", stage+1, i), 64<<stage, stride)
		}
	}
	r.named("avgpool", layers.GlobalAvgPool{})
	r.layers = append(r.layers, layers.Flatten{}, nn.Named{Name: "fc", Layer: layers.Dense{Outputs: classes}})
	return builtin(name, []int{3, image, image}, nn.Defaults{Batch: 64, Optimizer: nn.SGD{LearningRate: 0.05, Momentum: 0.9, WeightDecay: 5e-4}}, r.layers...)
}

// named adds a layer, and notes its name.
func (r *residual) named(name string, l nn.Layer, inputs ...string) {
	r.layers = append(r.layers, nn.Named{Name: name, Layer: l, Inputs: inputs})
	r.output = name
}

// normalised adds a convolution of an earlier layer, without a bias, and its batch normalisation.
func (r *residual) normalised(conv, norm string, c layers.Conv2D, input string) {
	c.NoBias = true
	r.named(conv, c, input)
	r.named(norm, layers.BatchNorm{}, conv)
}

// join adds the output of a block to its input. A convolution brings the input to the same shape, if it has another.
func (r *residual) join(name, input string, outputs, stride int) {
	branches := []string{r.output, input}
	if stride > 1 || r.channels != outputs {
		r.normalised(name+"downsample.0", name+"downsample.1", layers.Conv2D{Filters: outputs, Kernel: 1, Stride: stride}, input)
		branches[1] = r.output
	}
	r.named(name+"add", layers.Add{}, branches...)
	r.named(name+"relu", layers.ReLU{})
	r.channels = outputs
}

func basicBlock(r *residual, name string, filters, stride int) {
	input := r.output
	r.normalised(name+"conv1", name+"bn1", layers.Conv2D{Filters: filters, Kernel: 3, Pad: 1, Stride: stride}, input)
	r.named(name+"relu1", layers.ReLU{})
	r.normalised(name+"conv2", name+"bn2", layers.Conv2D{Filters: filters, Kernel: 3, Pad: 1}, r.output)
	r.join(name, input, filters, stride)
}

// bottleneck has its stride in the 3×3 convolution, as torchvision's.
func bottleneck(r *residual, name string, filters, stride int) {
	input := r.output
	r.normalised(name+"conv1", name+"bn1", layers.Conv2D{Filters: filters, Kernel: 1}, input)
	r.named(name+"relu1", layers.ReLU{})
	r.normalised(name+"conv2", name+"bn2", layers.Conv2D{Filters: filters, Kernel: 3, Pad: 1, Stride: stride}, r.output)
	r.named(name+"relu2", layers.ReLU{})
	r.normalised(name+"conv3", name+"bn3", layers.Conv2D{Filters: bottleneckOutputs * filters, Kernel: 1}, r.output)
	r.join(name, input, bottleneckOutputs*filters, stride)
}
