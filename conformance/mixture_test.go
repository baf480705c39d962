package conformance

import (
	"context"
	"math"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/files"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/train"
)

// twoGPUs is a machine of a core and two GPUs of 1 TF/s with links of 3 GB/s.
const twoGPUs = `name = "two-gpus"
[[memory]]
name = "ram"
capacity = "64 GB"
bandwidth = "100 GB/s"
[[memory]]
name = "hbm0"
capacity = "16 GB"
bandwidth = "1000 GB/s"
[[memory]]
name = "hbm1"
capacity = "16 GB"
bandwidth = "1000 GB/s"
[[device]]
name = "cpu"
kind = "cpu"
count = 1
memory = "ram"
speed = { float32 = "1 GF/s" }
[[device]]
name = "gpu0"
kind = "cuda"
memory = "hbm0"
speed = { float32 = "1 TF/s" }
dispatch = "1 us"
copy_engines = { in = 1, out = 1 }
[[device]]
name = "gpu1"
kind = "cuda"
memory = "hbm1"
speed = { float32 = "1 TF/s" }
dispatch = "1 us"
copy_engines = { in = 1, out = 1 }
[[link]]
name = "host0"
bandwidth = "3 GB/s"
latency = "1 us"
sharing = "duplex"
[[link]]
name = "host1"
bandwidth = "3 GB/s"
latency = "1 us"
sharing = "duplex"
[[link]]
name = "peer"
bandwidth = "3 GB/s"
latency = "1 us"
sharing = "duplex"
[[route]]
from = "ram"
to = "hbm0"
links = ["host0"]
[[route]]
from = "ram"
to = "hbm1"
links = ["host1"]
[[route]]
from = "hbm0"
to = "hbm1"
links = ["peer"]
`

const convThenDense = `name = "conv-then-dense"
input = [3, 32, 32]
[[layer]]
kind = "conv2d"
filters = 32
kernel = 3
pad = 1
[[layer]]
kind = "relu"
[[layer]]
kind = "maxpool"
size = 2
[[layer]]
kind = "conv2d"
filters = 32
kernel = 3
pad = 1
[[layer]]
kind = "relu"
[[layer]]
kind = "maxpool"
size = 2
[[layer]]
kind = "flatten"
[[layer]]
kind = "dense"
outputs = 4096
[[layer]]
kind = "relu"
[[layer]]
kind = "dense"
outputs = 10
`

// TestMixture: a convolution and a dense layer want different cuts (A. Krizhevsky, arXiv:1404.5997, 2014), and no cut of all layers
// along one dimension is as good as what the search mixes. With 64 images conv1 does 2·32·1024·27·64 = 0.113 GFLOP in each of two
// passes, conv2 2·32·256·288·64 = 0.302 and fc1 2·2048·4096·64 = 1.074 in each of three: 4.35 ms on one GPU, and 2.18 on both. fc1 has
// 33.6 MB of weights, which take 11 ms to move. So with samples, rows or columns cut, where fc1 stays whole, its passes are on one GPU,
// which works for 3.22 ms or more. With outputs cut conv2 waits for half of its input of 64·32·256 floats, 0.35 ms, and the gradient
// of that is a sum of two parts of 2.1 MB, of which one moves, 0.7 ms. With inputs cut conv1 has two such parts of its output before
// the pooling, of 8.4 MB each. Convolutions cut along samples, rows or columns move halos and 40 KB of gradients only, and fc1 along outputs moves
// half of its input of 64·2048 floats and a part of its gradient, 0.09 and 0.17 ms: in all some 2.5 ms.
func TestMixture(t *testing.T) {
	p := must.Get(platform.Parse([]byte(twoGPUs), "two-gpus.toml"))(t)
	m := must.Get(files.ParseModel([]byte(convThenDense), "conv-then-dense.toml"))(t)
	w := &train.Workload{Samples: train.Samples{Train: 64}, Options: train.Options{OtherMachine: true, Batch: 64}, Model: m, Platform: p}
	must.Do(t, w.Lower())
	// find looks for the best plan on both GPUs. It ends when one takes less than a time.
	find := func(enough float64, o best.Options, tiles ...tiling.Tiling) (*best.Result, *train.Space) {
		s := must.Get(w.Space(p, "", tiles...))(t)
		s.Devices = []string{"gpu0,gpu1"}
		if len(tiles) == 1 {
			s.Layers, s.Neighbourhoods = nil, nil // and no other tiles
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Progress = func(_ int, ns float64) {
			if ns < enough {
				cancel()
			}
		}
		found := must.Get(best.Find(ctx, &s.Space, o))(t)
		return found, s
	}
	o := best.Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: 200_000}
	quick := o
	quick.Brief = true
	least, singles := math.Inf(1), []tiling.Tiling(nil)
	for along := range dag.NumDimensions {
		single := tiling.InParts(2, along)
		found, _ := find(0, quick, single)
		least, singles = min(least, found.Value), append(singles, single)
	}
	enough := 0.85 * least
	found, s := find(enough, o, singles...)
	if found.Value >= enough || found.Makespan >= 3221*time.Microsecond {
		t.Errorf("the best mixture, %s, takes %v, and the best single cut %g s", found.Choice, found.Makespan, least)
	}
	at := must.Get(s.At(found.Choice))(t)
	conv, fc := at.Lowering.Layers["conv1"].Forward, at.Lowering.Layers["fc1"].Forward
	if conv.Samples == 64 || fc.Samples < 64 || fc.Outputs%4096 == 0 { // the former is cut along samples, the latter along outputs
		t.Errorf("conv1 has %+v, fc1 %+v", conv, fc)
	}
}
