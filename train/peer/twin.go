package peer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/nn/npz"
	"dahl/platform"
	"dahl/train"
)

// Twin says to a worker which network it trains, and how.
type Twin struct {
	Device    string    `json:"device"`
	Threads   int       `json:"threads"`
	TF32      bool      `json:"tf32"`
	Type      string    `json:"dtype"`
	Batch     int       `json:"batch"`
	Input     []int     `json:"input"` // shape of a sample
	Classes   int       `json:"classes"`
	Layers    []layer   `json:"layers"`
	Divisor   float64   `json:"divisor"` // of pixels; zero means that samples are tokens
	Optimizer optimizer `json:"optimizer"`
	Loss      loss      `json:"loss"`
	ClipNorm  float64   `json:"clip_norm"` // zero means any
	Weights   string    `json:"weights"`   // file
	Data      string    `json:"data"`      // file
}

type layer struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Inputs   []int   `json:"inputs"`   // indices of layers; -1 means the samples
	In       [][]int `json:"in"`       // their shapes
	Settings any     `json:"settings"` // an nn.Layer
	// Shared maps the key of a parameter that an earlier layer has to its name in the weights.
	Shared map[string]string `json:"shared"`
}

type optimizer struct {
	Kind     string `json:"kind"`
	Settings any    `json:"settings"` // an nn.Optimizer
}

type loss struct {
	Name           string  `json:"name"` // empty means cross-entropy
	LabelSmoothing float64 `json:"label_smoothing"`
}

// dropout is the kind of layer that has no twin.
const dropout = "dropout"

// DeviceOf is the device of a worker that stands for a platform, and its threads. There is none
// for platforms of several kinds of devices, or of emulated ones.
func DeviceOf(p *platform.Platform) (device string, threads int, err error) {
	gpus := 0
	for i := range p.Devices {
		switch d := &p.Devices[i]; {
		case d.PlacedOnly:
		case d.IsProcessor():
			threads += d.Count
		case d.Kind == platform.CUDA: // the frameworks are installed with CUDA
			gpus += d.Count
		default:
			return "", 0, train.InputError{Err: fmt.Errorf("device %s is %s; other programs run on processors, or on the first GPU", d.Name, d.Kind)}
		}
	}
	switch {
	case gpus == 0:
		return platform.CPU, threads, nil
	case gpus == 1 && threads == 0:
		return platform.CUDA, 1, nil
	}
	return "", 0, train.InputError{Err: fmt.Errorf("%d cores and %d GPUs; other programs run on processors, or on one GPU", threads, gpus)}
}

// Describe describes what a workload trains. Its files are not there yet.
func Describe(w *train.Workload) (*Twin, error) {
	device, threads, err := DeviceOf(w.Platform)
	if err != nil {
		return nil, err
	}
	m, method := w.Model, w.Method()
	if w.Options.Type == dag.BFloat16 {
		return nil, train.InputError{Err: fmt.Errorf("other programs train in float32 or float64 here; leave --dtype %v out", w.Options.Type)}
	}
	if method.Loss.Ignored {
		return nil, train.InputError{Err: fmt.Errorf("network %s: other programs take a class for each label; leave ignored_labels out", m.Name)}
	}
	d := w.Data.Train
	if d.Type != dag.Uint8 && d.Type != dag.Int32 || len(d.Positions) > 1 {
		return nil, train.InputError{Err: fmt.Errorf("data %s: other programs train on pixels or tokens, with one label for each sample or each position of a sequence", d.Name)}
	}
	t := &Twin{
		Device: device, Threads: threads, TF32: w.Options.Precision == calls.TF32Precision,
		Type: w.Options.Type.String(), Batch: w.Options.Batch, Input: m.Input, Classes: m.Classes(),
		Optimizer: optimizer{method.Optimizer.Name(), method.Optimizer},
		Loss:      loss{method.Loss.Name, method.Loss.LabelSmoothing}, ClipNorm: method.ClipNorm,
	}
	if d.Type == dag.Uint8 {
		t.Divisor = d.Divisor
	}
	for i := range m.Stages {
		s := &m.Stages[i]
		if a, attends := s.Layer.(layers.Attention); s.Layer.Kind() == dropout || attends && a.Dropout > 0 {
			return nil, train.InputError{Err: fmt.Errorf("layer %s: programs draw the zeros of a dropout differently, so that it is not the same training; leave it out", s.Name)}
		}
		shared := map[string]string{}
		for _, p := range s.Params {
			if p.Of != "" {
				shared[strings.TrimPrefix(p.Name, s.StateName+".")] = p.Of
			}
		}
		t.Layers = append(t.Layers, layer{Name: s.StateName, Kind: s.Layer.Kind(), Inputs: s.Inputs, In: s.In, Settings: s.Layer, Shared: shared})
	}
	return t, nil
}

// Formats are those that can matter to a network.
func Formats(m *nn.Model) []string {
	if slices.ContainsFunc(m.Stages, func(s nn.Stage) bool { return len(s.In[0]) == 3 && len(s.Params) > 0 }) {
		return []string{Contiguous, ChannelsLast}
	}
	return []string{Contiguous}
}

// Export writes the weights, the data and the order of the samples in each epoch into a directory, for
// a worker. Of the data at most the first samples are written, in their order. Zero means all, in the
// order of the training.
func (t *Twin) Export(dir string, weights []npz.Array, w *train.Workload, most int) error {
	t.Weights, t.Data = filepath.Join(dir, "weights.npz"), filepath.Join(dir, fmt.Sprintf("data%d.npz", most))
	if err := npz.Write(t.Weights, weights); err != nil {
		return err
	}
	n, epochs := w.Data.Train.Len(), w.Options.Epochs
	if most > 0 {
		n, epochs = min(n, most), 1
	}
	arrays, err := samplesOf("", w.Data.Train, n)
	if err != nil {
		return err
	}
	if test := w.Data.Test; test != nil {
		more, err := samplesOf("test_", test, cmp.Or(min(most, test.Len()), test.Len()))
		if err != nil {
			return err
		}
		arrays = append(arrays, more...)
	}
	order := npz.Array{Name: "order", Type: dag.Int32, Shape: []int{epochs, n}}
	for epoch := range epochs {
		order.Data = append(order.Data, bytesOf(orderOf(w, n, epoch))...)
	}
	return npz.Write(t.Data, append(arrays, order))
}

// orderOf is the order of n samples in an epoch, counted from 0.
func orderOf(w *train.Workload, n, epoch int) []int32 {
	order := make([]int32, n)
	if w.Options.Shuffle && n == w.Data.Train.Len() {
		data.Shuffle(order, w.Options.Seed, epoch)
	} else {
		data.InOrder(order)
	}
	return order
}

// samplesOf are the first samples of a split and their labels.
func samplesOf(prefix string, d *data.Dataset, n int) ([]npz.Array, error) {
	order := make([]int32, n)
	data.InOrder(order)
	samples, labels := make([]byte, n*d.SampleBytes()), make([]int32, n*nn.Elems(d.Positions))
	if err := cmp.Or(d.Read(samples, order), d.ReadLabels(labels, order)); err != nil {
		return nil, fmt.Errorf("data %s: %w", d.Name, err)
	}
	return []npz.Array{
		{Name: prefix + "samples", Type: d.Type, Shape: append([]int{n}, d.Shape...), Data: samples},
		{Name: prefix + "labels", Type: dag.Int32, Shape: append([]int{n}, d.Positions...), Data: bytesOf(labels)},
	}, nil
}

// bytesOf are numbers as they lie in a file.
func bytesOf(numbers []int32) []byte {
	raw := make([]byte, 0, 4*len(numbers))
	for _, n := range numbers {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(n))
	}
	return raw
}
