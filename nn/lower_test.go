package nn_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/models"
)

// TestModels checks the built-in models against the table of networks: the number
// of weights, counted layer by layer, and the training defaults.
func TestModels(t *testing.T) {
	weights := map[string]int{
		// conv (f·c·k·k + f) + dense (out·in + out)
		"digits-cnn":     (32*1*9 + 32) + (32*32*9 + 32) + (128*512 + 128) + (10*128 + 10),
		"dahl-cnn":       (4*1*9 + 4) + (10*676 + 10),
		"dahl32":         (32*1*9 + 32) + (10*32*13*13 + 10),
		"dahl-cnn-cifar": (4*3*9 + 4) + (10*900 + 10),
		"dahl-cnn-big":   (4*3*9 + 4) + (7*95944 + 7),
		"dahl-cnn-512":   (4*3*9 + 4) + (10*260100 + 10),
		"dahl-cnn-k6":    (2*1*36 + 2) + (10*242 + 10),
		"mlp":            (512*784 + 512) + (512*512 + 512) + (10*512 + 10),
		"lenet5":         (6*25 + 6) + (16*6*25 + 16) + (120*400 + 120) + (84*120 + 84) + (10*84 + 10),
		"cifar-cnn":      (32*3*9 + 32) + (32*32*9 + 32) + (64*32*9 + 64) + (64*64*9 + 64) + (512*64*8*8 + 512) + (10*512 + 10),
		// PyTorch's counts of torchvision's networks, and of the usual forms for CIFAR-10.
		"vgg11-224": 132_863_336, "vgg16-224": 138_357_544, "resnet18-224": 11_689_512, "resnet50-224": 25_557_032,
		// With c features, a layer of a GPT has 12c² weights in dense layers, 9c biases there, and 4c numbers in two normalisations.
		"gpt-tiny": (256+64)*128 + 4*(12*128*128+13*128) + 2*128, "gpt-char": (256+256)*384 + 6*(12*384*384+13*384) + 2*384,
		// Hugging Face's counts of its GPT-2 models.
		"gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200,
		"vgg11": 9_231_114, "vgg16": 14_728_266, "resnet18": 11_173_962, "resnet50": 23_520_842,
		// Meta's counts of Llama 3, 8,030,261,248 and 70,553,706,496: the table of tokens and the last layer, and for each layer the dense layers around
		// attention, with 128 numbers for each of heads + 2·8 heads, three of a SwiGLU, and two normalisations.
		"llama-8b":  2*128256*4096 + 32*(4096*(32+16)*128+4096*4096+3*4096*14336+2*4096) + 4096,
		"llama-70b": 2*128256*8192 + 80*(8192*(64+16)*128+8192*8192+3*8192*28672+2*8192) + 8192,
		// Hugging Face's count of BertModel, 109,482,240, without its pooler of a dense layer, and with the head: a dense layer, a
		// normalisation and a bias for each token.
		"bert-base": 109_482_240 - (768*768 + 768) + (768*768 + 768) + 2*768 + 30522,
		// With the pooler, and two classes of it.
		"bert-base-classifier": 109_482_240 + 2*768 + 2,
		// torchvision's count of vit_b_16.
		"vit-b16": 86_567_656,
		// Patches of 4×4 colour pixels, 64 positions, 12 layers as of a GPT, and a normalisation and a dense layer of 10 classes.
		"vit-tiny": (192*3*4*4 + 192) + 64*192 + 12*(12*192*192+13*192) + 2*192 + (10*192 + 10),
	}
	if n := len(models.All()); n != len(weights) {
		t.Errorf("%d models, %d expected counts", n, len(weights))
	}
	for _, info := range models.All() {
		m, err := models.ByName(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.NumWeights(); got != weights[info.Name] || m.Name != info.Name {
			t.Errorf("%s (%s): %d weights, want %d", info.Name, m.Name, got, weights[info.Name])
		}
		if err := m.Defaults.Optimizer.Check(); err != nil || m.Defaults.Batch < 1 {
			t.Errorf("%s: defaults %+v: %v", info.Name, m.Defaults, err)
		}
	}
}

// TestUnknownNames: a name that is in no table is answered with those that are.
func TestUnknownNames(t *testing.T) {
	_, model := models.ByName("none")
	_, layer := layers.ByName("none")
	_, optimizer := nn.OptimizerByName("none")
	for want, err := range map[string]error{
		`model "none" is not one of digits-cnn, dahl-cnn, `: model,
		`layer "none" is not one of conv2d, dense, `:        layer,
		`optimizer "none" is not one of sgd, adam, adamw`:   optimizer,
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestModelsLower builds training step and evaluation of every model at its default
// batch: phases and layers are labelled, every task has work or is a host's, and
// all the work that the convolutions and dense layers need is there.
func TestModelsLower(t *testing.T) {
	for _, info := range models.All() {
		m := info.New()
		batch := m.Defaults.Batch
		if isLarge(m) {
			continue // the layers of gpt-tiny, and of fixtures
		}
		if nn.Elems(m.Input) > 100_000 {
			batch = 3 // for fewer tasks
		}
		lowering := nn.DefaultLowering(m, batch, 1<<20, dag.Float32)
		for _, train := range []bool{true, false} {
			g := mustLower(t, m, nn.LowerOptions{Batch: batch, Type: dag.Float32, Train: train, Samples: 1009, Lowering: lowering})
			t.Logf("%-15s batch %3d train=%-5v %4d tasks", info.Name, batch, train, g.NumTasks())
			var got, want float64
			for i := range g.Tasks {
				task := &g.Tasks[i]
				if task.Labels.Layer == "" || task.Labels.Phase == "" || task.Shape == "" || task.MovedBytes == 0 {
					t.Errorf("%s: task %q: labels %+v, shape %q, %d bytes", info.Name, task.Name, task.Labels, task.Shape, task.MovedBytes)
				}
				if strings.HasPrefix(task.Op, "conv2d") || strings.HasPrefix(task.Op, "dense") {
					got += task.Flops
				}
			}
			first := true
			for _, g := range m.Groups(&lowering, true) {
				s := g[0]
				if !s.Traits.Weight {
					continue
				}
				times := 1.0 // forward
				if train {
					times = 3 // and two gradients, one for the first layer
					if first && m.Vocabulary() == 0 {
						times = 2
					}
				}
				first = false
				want += times * float64(batch) * s.Layer.Flops(s.In, s.Out) * usedShare(g)
			}
			// The kernels also count additions of bias, below one per output and pass.
			if got < want || got > 1.2*want {
				t.Errorf("%s: convolutions and dense layers have %g flops, want %g", info.Name, got, want)
			}
		}
	}
}

// isLarge reports whether a model has tens of thousands of tasks, of the layers that smaller models or fixtures have.
func isLarge(m *nn.Model) bool {
	return strings.HasPrefix(m.Name, "gpt2") || strings.HasPrefix(m.Name, "llama") || strings.HasPrefix(m.Name, "bert-base") || m.Name == "vit-b16"
}

// usedShare is the share of a convolution's outputs that the pooling fused with it
// reads: windows leave out a remainder of rows and columns, as in 23 = 11·2 + 1.
func usedShare(group []*nn.Stage) float64 {
	last := group[len(group)-1]
	p, pools := last.Layer.(layers.MaxPool)
	if !pools {
		return 1
	}
	used := 1.0
	for d := 1; d <= 2; d++ {
		used *= float64((last.Out[d]-1)*p.Windows()[d-1].Stride+p.Size) / float64(group[0].Out[d])
	}
	return used
}

// TestDefaultLowering checks the rules that its documentation states, for every
// model and cache sizes from small to large.
func TestDefaultLowering(t *testing.T) {
	for _, info := range models.All() {
		m := info.New()
		if isLarge(m) {
			continue
		}
		for _, batch := range []int{1, 7, 64} {
			for _, l2 := range []int{256 << 10, 1 << 20, 4 << 20} {
				l := nn.DefaultLowering(m, batch, l2, dag.Float32)
				for _, g := range m.Groups(&l, true) {
					s := g[0]
					what := fmt.Sprintf("%s %s batch %d L2 %d: %+v", info.Name, s.Name, batch, l2, l.Of(s.Name))
					if !s.Traits.Weight {
						checkElementwise(t, what, s, l.Of(s.Name), batch, l2/2)
					} else {
						written := s // the first layer's output is not in memory where it is pooled, and no gradient of the input needed
						if last := g[len(g)-1]; s.Inputs[0] == nn.ModelInput && len(last.Out) == 3 {
							written = last
						}
						checkWeighted(t, what, s, written, l.Of(s.Name), batch, l2/2)
					}
				}
			}
		}
	}
}

// TestWholeLowering: where the memory holds everything each layer is one task per step and
// pass; where it is small, a task of several samples stays within half of it.
func TestWholeLowering(t *testing.T) {
	for _, info := range models.All() {
		m := info.New()
		if isLarge(m) {
			continue
		}
		for _, batch := range []int{1, 7, 64} {
			l := nn.WholeLowering(m, batch, 0, dag.Float32)
			g, err := m.Lower(nn.LowerOptions{Batch: batch, Samples: batch, Type: dag.Float32, Train: true, Lowering: l})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for i := range g.Tasks {
				what, _, _ := strings.Cut(g.Tasks[i].Name, "[")
				if seen[what] {
					t.Errorf("%s batch %d: %s is several tasks", info.Name, batch, what)
				}
				seen[what] = true
			}
			if m.NumWeights() > 3<<20 {
				continue // weights alone fill the memory below
			}
			const memory = 3 << 20
			l = nn.WholeLowering(m, batch, memory, dag.Float32)
			for _, group := range m.Groups(&l, true) {
				s := group[0]
				ll := l.Of(s.Name)
				what := fmt.Sprintf("%s %s batch %d: %+v", info.Name, s.Name, batch, ll)
				bytes := 4 * ll.Forward.Samples * (s.InElems() + nn.Elems(s.Out)/nn.Channels(s.Out)*ll.Forward.Outputs)
				if bytes > memory/2 && ll.Forward.Samples > 1 && len(s.Params) == 0 {
					t.Errorf("%s works on %d bytes", what, bytes)
				}
				if ll.Forward.Samples < batch && 2*bytes < memory/8 {
					t.Errorf("%s is split, and works on %d bytes only", what, bytes)
				}
			}
		}
	}
}

// TestPartsLowering: of cifar-cnn with 64 images the convolutions have inputs of 3·32·32, 32·32·32, 32·16·16 and
// 64·16·16 elements per image and weights of at most 64·64·3·3 = 36,864, which even four devices hold in less than the
// 64·3,072 elements of the least batch. They are divided, each with an accumulator for each part. fc1 has 512·4,096
// weights, eight times the 64·4,096 elements of its input: it and what follows stay whole. At 1024 images it
// is two times as many as the weights: two devices divide it, four do not (4·512·4,096 > 1024·4,096). The same holds for mlp,
// whose fc1 comes first and decides for the loading of the images, too.
func TestPartsLowering(t *testing.T) {
	for _, c := range []struct {
		model          string
		batch, devices int
		divided, whole string
	}{
		{"cifar-cnn", 64, 4, "input conv1 conv2 conv3 conv4 flatten1", "fc1 fc2 loss"},
		{"cifar-cnn", 1024, 2, "conv4 fc1 fc2 loss", ""},
		{"cifar-cnn", 1024, 4, "conv4", "fc1 fc2 loss"},
		{"cifar-cnn", 65, 2, "conv1", "fc1"}, // in 33 and 32
		{"mlp", 64, 2, "", "input flatten1 fc1 fc2 fc3 loss"},
		{"mlp", 1024, 2, "input flatten1 fc1 fc2 fc3 loss", ""},
	} {
		m, err := models.ByName(c.model)
		if err != nil {
			t.Fatal(err)
		}
		l := nn.PartsLowering(m, c.batch, c.devices, dag.Float32)
		if _, err := m.Lower(nn.LowerOptions{Batch: c.batch, Samples: c.batch, Type: dag.Float32, Train: true, Lowering: l}); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		part := (c.batch + c.devices - 1) / c.devices
		for _, name := range strings.Fields(c.divided) {
			ll := l.Of(name)
			if ll.Forward.Samples != part || ll.WeightGradient.Samples > 0 && (ll.WeightGradient.Samples != part || ll.WeightGradient.Accumulators != c.devices) {
				t.Errorf("%s of %d images on %d devices: %s has %+v", c.model, c.batch, c.devices, name, ll)
			}
		}
		for _, name := range strings.Fields(c.whole) {
			if ll := l.Of(name); ll.Forward.Samples != c.batch || ll.WeightGradient.Accumulators > 1 {
				t.Errorf("%s of %d images on %d devices: %s has %+v", c.model, c.batch, c.devices, name, ll)
			}
		}
	}
}

// checkElementwise: a tile works on at most half of the cache, but for one of at least eight of a layer of sequences.
func checkElementwise(t *testing.T, what string, s *nn.Stage, ll dag.LayerLowering, batch, half int) {
	tiles := (batch + ll.Forward.Samples - 1) / ll.Forward.Samples * ((nn.Channels(s.Out) + ll.Forward.Outputs - 1) / ll.Forward.Outputs)
	if len(s.Out) == 2 && tiles >= 8 {
		return
	}
	channel, least := 4*(s.InElems()+nn.Elems(s.Out))/nn.Channels(s.Out), 1
	if s.Traits.WholeSample {
		least = nn.Channels(s.Out)
	}
	if ll.Forward.Samples*ll.Forward.Outputs > least && ll.Forward.Samples*ll.Forward.Outputs*channel > half {
		t.Errorf("%s works on more than half of L2", what)
	}
}

func checkWeighted(t *testing.T, what string, s, written *nn.Stage, ll dag.LayerLowering, batch, half int) {
	const taskNs, lanes = 20_000, 16 // 64 bytes of float32
	parts := func(extent, size int) int { return (extent + size - 1) / size }
	in, out, weights := 4*s.InElems(), 4*nn.Elems(written.Out), 4*s.Params[0].Elems()
	tiles := parts(batch, ll.Forward.Samples) * parts(nn.Channels(s.Out), ll.Forward.Outputs)
	work := nn.WorkNs(s, ll.Forward.Samples, ll.Forward.Outputs)
	convolves := len(s.Out) > 1
	big := !convolves && weights > max(half/2, batch*in) // then a tile has all samples
	wanted := 8
	if convolves && weights > half/2 {
		wanted = 4
	}
	if tiles < wanted && work > taskNs && ll.Forward.Outputs > lanes && (big || ll.Forward.Samples > 1) {
		t.Errorf("%s: %d tiles of %g ns", what, tiles, work)
	}
	if big && (ll.Forward.Samples != batch || ll.WeightGradient.Accumulators > 1) {
		t.Errorf("%s: %d bytes of weights are read more than once or their gradients copied", what, weights)
	}
	if part := weights / nn.Channels(s.Out) * ll.Forward.Outputs; big && part > half/2 && tiles < 64 && ll.Forward.Outputs > lanes && work > taskNs {
		t.Errorf("%s: a tile has %d bytes of weights", what, part)
	}
	activations := ll.Forward.Samples * (in + out/nn.Channels(s.Out)*ll.Forward.Outputs)
	kept := convolves && (ll.Forward.Samples+1)/2*(in+out) < 8*weights
	if bytes := activations + weights; !big && !kept && bytes > half && ll.Forward.Samples > 1 {
		t.Errorf("%s: a tile of several samples works on %d bytes", what, bytes)
	}
	merges := float64(ll.WeightGradient.Accumulators-1) * float64(3*weights/16)
	if contributions := parts(batch, ll.WeightGradient.Samples); contributions > ll.WeightGradient.Accumulators && merges*10 > nn.WorkNs(s, batch, nn.Channels(s.Out)) {
		t.Errorf("%s: merging takes %g ns", what, merges)
	}
	if ll.WeightGradient.Accumulators > parts(batch, ll.WeightGradient.Samples) {
		t.Errorf("%s: more accumulators than sums", what)
	}
}

// TestTilesOfManyFilters: vgg11 with 64 images and a cache of 2 MiB, of which filters above 512 KiB are not to be read
// by every few images. 256→256 3×3 at 8×8 has 2.36 MB of filters (W) and 4.19 MB of images (I), no half of which
// is eight times as much as the filters. Halving the images reads W again, then halving the outputs I (2W are more):
// 32 images × 128 outputs are four tiles. To halve the batch of the gradient costs 3W of
// merging: more than I, so the outputs are halved, less than the 2I that are next, so the images are, and then 6W are more than 2I:
// 32 images × 64 outputs.
// 512→512 at 4×4 has W of 9.44 MB and I of 2.10 MB: I and 2I are less than W, and 4I are less than 3W. 64→128 at 16×16 has filters of
// 295 KB, and tiles of 8 images, the eighth part of the batch.
func TestTilesOfManyFilters(t *testing.T) {
	m, err := models.ByName("vgg11")
	if err != nil {
		t.Fatal(err)
	}
	l := nn.DefaultLowering(m, 64, 2<<20, dag.Float32)
	for name, want := range map[string][2]dag.Cut{
		"features.4":  {{Samples: 8, Outputs: 128}, {Samples: 8, Outputs: 128, Accumulators: 4}},
		"features.11": {{Samples: 32, Outputs: 128}, {Samples: 32, Outputs: 64, Accumulators: 2}},
		"features.18": {{Samples: 64, Outputs: 128}, {Samples: 64, Outputs: 64, Accumulators: 1}},
	} {
		if ll := l.Of(name); ll.Forward != want[0] || ll.WeightGradient != want[1] {
			t.Errorf("%s: %+v, %+v, want %+v", name, ll.Forward, ll.WeightGradient, want)
		}
	}
}

// TestShortBatchHasSameTiles checks that names do not depend on the batch where the
// tile is the same, so that measurements and plans of one apply to the other.
func TestShortBatchHasSameTiles(t *testing.T) {
	m, _ := models.ByName("lenet5")
	lowering := nn.DefaultLowering(m, 32, 1<<20, dag.Float32)
	names := map[string]bool{}
	for _, batch := range []int{32, 11} {
		g := mustLower(t, m, nn.LowerOptions{Batch: batch, Type: dag.Float32, Samples: 32, Lowering: lowering})
		shared := 0
		for i := range g.Tasks {
			if names[g.Tasks[i].Name] {
				shared++
			}
			names[g.Tasks[i].Name] = true
		}
		if batch == 11 && shared*2 < g.NumTasks() {
			t.Errorf("%d of %d tasks of the short batch have a name of the full one", shared, g.NumTasks())
		}
	}
}

// TestOptionErrors checks that mistakes are named.
func TestOptionErrors(t *testing.T) {
	m, _ := models.ByName("dahl-cnn")
	good := nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 5}
	for want, change := range map[string]func(*nn.LowerOptions){
		"batch 0":                             func(o *nn.LowerOptions) { o.Batch = 0 },
		"of -1 samples":                       func(o *nn.LowerOptions) { o.Samples = -1 },
		"element type int32":                  func(o *nn.LowerOptions) { o.Type = dag.Int32 },
		"pixel divisor NaN":                   func(o *nn.LowerOptions) { o.Divisor = math.NaN() },
		"momentum 1.5":                        func(o *nn.LowerOptions) { o.Optimizer = nn.SGD{Momentum: 1.5} },
		"learning rate NaN":                   func(o *nn.LowerOptions) { o.Optimizer = nn.SGD{LearningRate: math.NaN()} },
		"beta2 1;":                            func(o *nn.LowerOptions) { o.Optimizer = nn.Adam{Beta2: 1} },
		`no layer "conv9"; it has [input los`: func(o *nn.LowerOptions) { o.Lowering.Layers = map[string]dag.LayerLowering{"conv9": {}} },
		`layer "fc1": samples is -2`: func(o *nn.LowerOptions) {
			o.Lowering.Layers = map[string]dag.LayerLowering{"fc1": {Forward: dag.Cut{Samples: -2}}}
		},
	} {
		opt := good
		change(&opt)
		if _, err := m.Lower(opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
