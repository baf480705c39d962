//go:build cuda

package train

import (
	"errors"
	"testing"

	"dahl/execute/cuda"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/platform"
	"dahl/schedule/policy"
)

// TestCUDAStreamed: on a GPU alone and beside cores, by a plan and a policy that decides at run
// time, streamed samples give the losses and weights of samples in memory to the last bit. It is
// skipped where there is no GPU.
func TestCUDAStreamed(t *testing.T) {
	if n, err := cuda.Count(); errors.Is(err, cuda.ErrNoDevice) || err == nil && n == 0 {
		t.Skip("no CUDA device")
	} else if err != nil {
		t.Fatal(err)
	}
	data := splits(t)["plain"]
	for _, c := range []struct{ devices, policy string }{{"gpu", "heft"}, {"cpu:1,gpu", "heft"}, {"cpu:1,gpu", "dmdar"}} {
		var trained [2]*Trainer
		for i, stream := range []bool{false, true} {
			p := load(t, "emulated")
			p.Devices[1].Kind = platform.CUDA
			p, err := p.Select(c.devices)
			if err != nil {
				t.Fatal(err)
			}
			d, err := OpenData(data, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			m, err := nn.New("small", []int{1, 7, 5}, layers.Conv2D{Filters: 3, Kernel: 3}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 3})
			if err != nil {
				t.Fatal(err)
			}
			policy, err := policy.ByName(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			w, err := New(m, d, p, Options{Batch: 5, Epochs: 3, Seed: 7, Shuffle: true, Policy: policy, Stream: stream, Record: 2})
			if err != nil {
				t.Fatal(err)
			}
			if trained[i], err = w.Train(t.Context()); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
		}
		if held, streamed := trained[0], trained[1]; held.WeightsHash() != streamed.WeightsHash() {
			t.Errorf("%+v: weights %.12s streamed and %.12s in memory", c, streamed.WeightsHash(), held.WeightsHash())
		}
	}
}
