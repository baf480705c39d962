package conformance

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// TestSharedStages: a step whose samples five devices share is the step of tiles of one sample with five accumulators, to the bit, if the devices sum in
// pairs, as accumulators do, and the network has no statistics of the batch that each device sums first. Other dimensions and exchanges sum in other orders: their losses are near. Whatever runs a step gives the same bits: cores, or emulated
// GPUs beside cores. The last batch has three samples, so that two devices have none. A grid has two rows of two devices.
func TestSharedStages(t *testing.T) {
	cores := []string{"cpu.0", "cpu.1", "cpu.2", "cpu.3", "cpu.4"}
	mixed := []string{"gpu", "cpu.0", "gpu1", "gpu2", "cpu.1"}
	for _, c := range []struct {
		model string
		along dag.Dimension
		sum   dag.Exchange
		rows  int // of a grid
		where dag.Statistics
	}{
		{"digits-cnn", dag.AlongSamples, dag.Tree, 0, 0}, {"digits-cnn", dag.AlongSamples, dag.Direct, 0, 0}, {"digits-cnn", dag.AlongOutputs, dag.Ring, 0, 0}, {"digits-cnn", dag.AlongRows, dag.Ring, 0, 0}, {"digits-cnn", dag.AlongOutputs, dag.Ring, 2, 0},
		{branching, dag.AlongSamples, dag.Tree, 0, 0}, {branching, dag.AlongOutputs, dag.Direct, 0, 0}, {branching, dag.AlongRows, dag.Tree, 0, 0},
		{normalised, dag.AlongSamples, dag.Tree, 0, 0}, {normalised, dag.AlongOutputs, dag.Direct, 0, 0}, {normalised, dag.AlongRows, dag.Direct, 0, 0}, {normalised, dag.AlongOutputs, dag.Tree, 2, 0}, {branching, dag.AlongRows, dag.Direct, 2, 0},
		{normalised, dag.AlongSamples, dag.Tree, 0, dag.OnFirst}, {normalised, dag.AlongRows, dag.Ring, 0, dag.OnFirst}, {normalised, dag.AlongOutputs, dag.Ring, 2, dag.OnEach},
	} {
		if testing.Short() && (c.model == branching && c.along != dag.AlongSamples || c.model != branching && c.sum == dag.Direct && c.along != dag.AlongOutputs) {
			continue
		}
		n := newNetwork(t, c.model, dag.Float64, 1)
		n.lower(t, dag.Lowering{Default: dag.LayerLowering{Forward: dag.Cut{Samples: 1}, WeightGradient: dag.Cut{Samples: 1, Accumulators: 5}}})
		plain := n.execute(t, how{platform: machine(t, 1), policy: "eager"})
		hash := ""
		for i, devices := range [][]string{cores, mixed} {
			what := fmt.Sprintf("%s, %v shared by %v, sums %v", c.model, c.along, devices, c.sum)
			if c.rows > 0 {
				devices = devices[:4]
			}
			n.lower(t, dag.Lowering{Stages: []dag.Stage{{From: "input", Devices: devices, Along: c.along, Sum: c.sum, Replicas: c.rows, Statistics: c.where}}})
			on := machine(t, 5)
			if i == 1 {
				on = emulatedNode(t, 3)
			}
			tr := n.execute(t, how{platform: on, poison: true})
			if hash != "" && tr.hash() != hash {
				t.Errorf("%s: weights %.8s, and on cores %.8s", what, tr.hash(), hash)
			}
			hash = tr.hash()
			if c.sum == dag.Tree && c.along == dag.AlongSamples && (c.model != normalised || c.where == dag.OnFirst) && hash != plain.hash() {
				t.Errorf("%s: weights %.8s, without stages %.8s", what, hash, plain.hash())
			}
			for step, loss := range tr.losses {
				if want := plain.losses[step]; !(math.Abs(loss-want) <= 1e-12*want) {
					t.Errorf("%s: loss %v of step %d, without stages %v", what, loss, step, want)
				}
			}
		}
	}
}

// wideNetwork has gradients that are exchanged in slices: of a convolution, 67×31×3×3 elements, and of a dense layer, 71×268.
func wideNetwork(t testing.TB, dtype dag.DType, optimizer nn.Optimizer) *network {
	t.Helper()
	m := must.Get(nn.New("wide", []int{1, 8, 8}, layers.Conv2D{Filters: 31, Kernel: 3, Pad: 1}, layers.ReLU{}, layers.MaxPool{Size: 2},
		layers.Conv2D{Filters: 67, Kernel: 3}, layers.ReLU{}, layers.Flatten{}, layers.Dense{Outputs: 71}, layers.ReLU{}, layers.Dense{Outputs: 10}))(t)
	n := &network{model: m, dtype: dtype, epochs: 1, optimizer: optimizer}
	n.train = must.Get(data.Open("digits", data.Options{Limit: 97}))(t)
	n.test = n.train
	return n
}

// linked is three emulated GPUs beside two cores, with a link of its own for each pair.
func linked(t testing.TB) *platform.Platform {
	t.Helper()
	p := emulatedNode(t, 3)
	for _, pair := range [][2]platform.MemoryID{{1, 2}, {1, 3}, {2, 3}} {
		link := p.Links[0]
		link.Name = fmt.Sprintf("link%d-%d", pair[0], pair[1])
		p.Links = append(p.Links, link)
		p.Routes = append(p.Routes, platform.Route{From: pair[0], To: pair[1], Links: []platform.LinkID{platform.LinkID(len(p.Links) - 1)}})
	}
	must.Do(t, p.Complete())
	return p
}

// TestSlices: of a gradient that three devices exchange in slices s₀, s₁, s₂ of b bytes together, device k receives and sends as many bytes in a step as follow from the definition:
//
//	direct  it receives s_k from both others, and sends b - s_k
//	ring    it receives all but the slice that begins with it, s of device k - 1, and sends all but s_k, which ends with it
//
// Then it sends its slice of the updated weight to both others, and receives theirs. These are 2(3 - 1)/3·b in each direction where slices are equal. Each device has the optimiser's
// state of the slice that it updates, in a third of the bytes, and the parameters whole. States of small
// parameters, whose gradients are summed in pairs, are on the first device. A step touches as many bytes of each memory as its plan says.
func TestSlices(t *testing.T) {
	devices := []string{"gpu", "gpu1", "gpu2"}
	for _, sum := range []dag.Exchange{dag.Direct, dag.Ring} {
		n := wideNetwork(t, dag.Float32, nn.DefaultAdam())
		n.lower(t, dag.Lowering{Stages: []dag.Stage{{From: "input", Devices: devices, Sum: sum}}})
		tr := n.start(t, how{platform: linked(t), poison: true})
		s := must.Get(tr.runner.Run(t.Context(), 0, 3, true))(t)
		for k := range devices {
			network, in, out := int64(0), int64(0), int64(0)
			for _, p := range n.model.Parameters() {
				bytes := 4 * int64(p.Elems())
				slice := func(k int) int64 { return bytes / int64(p.Shape[0]) * int64(dag.ShareOf((k+3)%3, p.Shape[0], 3).Len()) }
				network += layout.Align(bytes)
				if bytes < dag.SlicedBytes {
					if k == 0 {
						network += 2 * layout.Align(bytes)
					}
					continue
				}
				network += 2 * layout.Align(slice(k))
				in, out = in+bytes-slice(k), out+2*slice(k)
				if sum == dag.Direct {
					in, out = in+2*slice(k), out+bytes-slice(k)
				} else {
					in, out = in+bytes-slice(k-1), out+bytes-slice(k)
				}
			}
			if got := tr.decision.Layouts(0)[1+k].ArenaBytes[layout.NetworkArena]; got != network {
				t.Errorf("%v: %s has %d bytes of parameters and states, want %d", sum, devices[k], got, network)
			}
			memory := platform.MemoryID(1 + k)
			gotIn, gotOut := tr.movedOfSliced(s, memory)
			if gotIn != in || gotOut != out {
				t.Errorf("%v: %s receives %d bytes and sends %d, want %d and %d", sum, devices[k], gotIn, gotOut, in, out)
			}
			high := must.Get(tr.runner.HighWater(memory))(t)
			for _, arena := range []layout.Arena{layout.NetworkArena, layout.StepArena} {
				if planned := tr.decision.Layouts(0)[memory].ArenaBytes[arena]; layout.Align(high[arena]) != planned {
					t.Errorf("%v: %s touches bytes of %v up to %d, planned are %d", sum, devices[k], arena, high[arena], planned)
				}
			}
		}
		tr.runner.Close()
	}
}

// movedOfSliced is the bytes of sliced parameters, and of their gradients, that a memory receives from other GPUs and sends to these in the middle one of three steps.
func (tr *training) movedOfSliced(s *schedule.Schedule, memory platform.MemoryID) (in, out int64) {
	for _, move := range s.Transfers {
		name := tr.prog.Graphs[0].Buffers[move.Buffer].Name
		of := slices.ContainsFunc(tr.model.Parameters(), func(p nn.Parameter) bool {
			base, _, _ := strings.Cut(strings.TrimPrefix(name, "grad."), ".acc")
			return base == p.Name && 4*int64(p.Elems()) >= dag.SlicedBytes
		})
		switch {
		case !of || move.Step != 1 || move.From == 0 || move.To == 0:
		case move.To == memory:
			in += move.Bytes
		case move.From == memory:
			out += move.Bytes
		}
	}
	return in, out
}

// TestExchangesRound: one step of a network whose weights are large enough to be exchanged in slices. Whatever the order of its sums, a weight is within the bound of
// stepErrors of the exact one. So two exchanges are at most twice that apart. Each order gives the same bits again.
func TestExchangesRound(t *testing.T) {
	for dtype, a := range map[dag.DType]arithmetic{dag.Float32: float32Sums, dag.Float64: float64Sums} {
		n := wideNetwork(t, dtype, nn.SGD{LearningRate: trajectoryRate})
		var bounds map[string][]float64
		var first map[string][]float64
		sliced := 0
		for _, sum := range []dag.Exchange{dag.Tree, dag.Direct, dag.Ring, dag.Ring} {
			stage := dag.Stage{From: "input", Devices: []string{"gpu", "gpu1", "gpu2"}, Sum: sum}
			n.lower(t, dag.Lowering{Stages: []dag.Stage{stage}})
			tr := n.start(t, how{platform: emulatedNode(t, 3)})
			before := tr.parameters()
			tr.step(t, 0)
			after := tr.parameters()
			if first == nil {
				first, bounds = after, a.stepErrors(n.model, before, tr.images(0), tr.labels(0), trajectoryRate)
			}
			different := false
			for name, w := range after {
				for i := range w {
					if d := math.Abs(w[i] - first[name][i]); !(d <= 2*bounds[name][i]) {
						t.Fatalf("%v, %v: element %d of %s is %g from the one of a tree, and may be %g", dtype, sum, i, name, d, 2*bounds[name][i])
					}
				}
				different = different || !slices.Equal(w, first[name])
			}
			if different {
				sliced++
			}
			tr.runner.Close()
		}
		if sliced < 2 {
			t.Errorf("%v: %d exchanges give other bits than a tree; nothing was exchanged in slices", dtype, sliced)
		}
	}
}

// summed is a sum of a part on each of some devices into a region, an update of it in the slices of their exchange, and a reader of all updates on each device. No task takes
// time.
func summed(t testing.TB, s *dag.Stage, shape []int) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("summed")
	for _, op := range []string{"add", "sum"} {
		b.OpCosts(op, []dag.Cost{{Key: dag.AnyDevice}})
	}
	sum := dag.Buffer{Name: "sum", Shape: shape, Type: dag.Float32}
	region := b.Buffer(sum)
	updated := b.Buffer(dag.Buffer{Name: "updated", Shape: shape, Type: dag.Float32})
	task := func(name string, device int, accesses ...dag.Access) {
		b.Task(dag.Task{Name: fmt.Sprint(name, device), Costs: []dag.Cost{{Key: dag.AnyDevice}}, Placement: &dag.Placement{Device: s.Devices[device]}, Accesses: accesses})
	}
	access := func(id dag.BufferID, box dag.Box, mode dag.Mode) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: id, Box: box}, Mode: mode}
	}
	for k := range s.Devices {
		task("part", k, access(region, nil, dag.Reduce))
	}
	if _, parts := s.Slices(&sum, -1); parts != nil {
		for k := range s.Devices {
			box := dag.Whole(shape)
			box[0] = dag.ShareOf(k, shape[0], len(s.Devices))
			task("update", k, access(updated, box, dag.Write), access(region, box, dag.Read))
		}
	} else {
		task("update", 0, access(updated, nil, dag.Write), access(region, nil, dag.Read))
	}
	for k := range s.Devices {
		task("use", k, access(updated, nil, dag.Read))
	}
	return must.Get(b.BuildExpanded(func(string) *dag.Stage { return s }))(t)
}

// TestExchangeTimes: p devices sum b bytes and all of them get the result. Each pair has a link of its own with latency α and bandwidth B in each direction, and each device takes one
// copy at a time. A device receives p - 1 slices of b/p bytes for the sum, and p - 1 updated ones. So ring and direct both take the time of a ring,
//
//	2(p - 1)(α + b/(pB))
//
// though the updated slices do not go around a ring: each comes from the device that wrote it. In pairs the sum takes ⌈log₂ p⌉ rounds, and then all devices get the result
// from the first one at once, where a tree would take as many rounds again:
//
//	(⌈log₂ p⌉ + 1)(α + b/B)
//
// Where each device has one link to a switch, the first one sends p - 1 copies over it, at α + (p - 1)b/B.
func TestExchangeTimes(t *testing.T) {
	const latency, bandwidth = 3 * time.Microsecond, 1e9 // a byte per nanosecond
	for _, p := range []int{2, 3, 5, 8} {
		for _, switched := range []bool{false, true} {
			devices := make([]platform.Device, p)
			stage := dag.Stage{}
			for k := range devices {
				devices[k] = testmachine.GPU(fmt.Sprint("d", k))
				devices[k].CopyEnginesIn, devices[k].CopyEnginesOut = 1, p
				stage.Devices = append(stage.Devices, devices[k].Name)
			}
			on := testmachine.Node(t, devices...)
			link := func(name string, latency time.Duration) platform.LinkID {
				on.Links = append(on.Links, platform.Link{Name: name, BandwidthBytesPerSec: bandwidth, Latency: latency, Sharing: platform.Duplex, PowerSource: platform.Guess})
				return platform.LinkID(len(on.Links) - 1)
			}
			for k := range p {
				up := link(fmt.Sprint("up", k), latency)
				for j := range p {
					switch r := (platform.Route{From: devices[k].Memory, To: devices[j].Memory, Links: []platform.LinkID{up}, OneWay: true}); {
					case switched && j != k:
						on.Routes = append(on.Routes, r)
					case j < k:
						r.Links, r.OneWay = []platform.LinkID{link(fmt.Sprint("link", k, "-", j), latency)}, false
						on.Routes = append(on.Routes, r)
					}
				}
			}
			must.Do(t, on.Complete())
			for sum := range dag.NumExchanges {
				stage.Sum = sum
				shape := []int{7 * p, 2560}
				slice, rounds := time.Duration(7*2560*4), time.Duration(bits.Len(uint(p-1)))
				want := 2 * time.Duration(p-1) * (latency + slice)
				if sum == dag.Tree {
					all := slice * time.Duration(p)
					want = (rounds + 1) * (latency + all)
					if switched {
						want += time.Duration(p-2) * all
					}
				}
				s := simulated(t, decided(t, program(summed(t, &stage, shape)), how{platform: on}), 0, 1)
				if s.Makespan != want {
					t.Errorf("%d devices, switched %v, %v: %v, want %v", p, switched, sum, s.Makespan, want)
				}
			}
		}
	}
}

// TestSharedPipeline: stages of a pipeline that several devices share, in all orders and on unlike devices, give the same bits, and losses near those of the step without stages. The
// second stage has other devices or the same ones, and shares another dimension.
func TestSharedPipeline(t *testing.T) {
	n := newNetwork(t, normalised, dag.Float64, 1)
	l := fixtureLowering()
	l.MicroBatches = 2 // of 3 and 2 samples
	n.lower(t, l)
	plain := n.execute(t, how{platform: machine(t, 1), policy: "eager"})
	hashes := map[dag.Dimension]string{}
	for _, c := range []struct {
		order         string
		platform      *platform.Platform
		first, second []string
		along         dag.Dimension // of the second stage
	}{
		{"heft", machine(t, 2), []string{"cpu.0", "cpu.1"}, []string{"cpu.1", "cpu.0"}, dag.AlongOutputs},
		{"1f1b", emulatedNode(t, 2), []string{"gpu", "gpu1"}, []string{"cpu.0", "cpu.1"}, dag.AlongOutputs},
		{"gpipe", emulatedNode(t, 2), []string{"gpu", "cpu.1"}, []string{"gpu", "cpu.1"}, dag.AlongOutputs},
		{"1f1b", linked(t), []string{"gpu", "gpu1"}, []string{"gpu2", "cpu.1"}, dag.AlongRows},
		{"heft", linked(t), []string{"gpu2", "gpu1"}, []string{"gpu", "cpu.0"}, dag.AlongRows},
	} {
		what := fmt.Sprintf("%s on %v, then %v along %v", c.order, c.first, c.second, c.along)
		l.Stages = []dag.Stage{{From: "input", Devices: c.first, Sum: dag.Ring}, {From: "conv3", Devices: c.second, Along: c.along}}
		n.lower(t, l)
		tr := n.execute(t, how{platform: c.platform, policy: c.order, poison: true})
		if want := hashes[c.along]; want != "" && tr.hash() != want {
			t.Errorf("%s: weights %.8s, want %.8s", what, tr.hash(), want)
		}
		hashes[c.along] = tr.hash()
		for step, loss := range tr.losses {
			if want := plain.losses[step]; !(math.Abs(loss-want) <= 1e-12*want) {
				t.Errorf("%s: loss %v of step %d, without stages %v", what, loss, step, want)
			}
		}
	}
}

// TestSharedStagesOfAnyCut: whatever dimensions layers are cut along, recomputed or not, in any number of micro-batches, and whatever devices share the stages along whatever
// dimension: the losses are near those of the step without stages.
func TestSharedStagesOfAnyCut(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	for i := range 60 {
		n := newNetwork(t, []string{"digits-cnn", branching, normalised}[i%3], dag.Float64, 1)
		l := n.mixedLowering()
		if l.MicroBatches = 1 + r.IntN(5); n.model.Name == normalised {
			l.MicroBatches = 1 + r.IntN(2) // statistics of one sample of the last map are not defined
		}
		if r.IntN(2) == 0 {
			l.Layers, l.Default.Recompute = nil, r.IntN(2) == 0
		}
		n.lower(t, l)
		plain := n.execute(t, how{platform: machine(t, 1), policy: "eager"})
		devices := []string{"cpu.0", "cpu.1", "cpu.2", "cpu.3"}
		for at := -1; at < len(n.model.Stages) && len(l.Stages) < 3; at += 2 + r.IntN(len(n.model.Stages)/2) {
			from := "input"
			if at >= 0 {
				from = n.model.Stages[at].Name
			}
			r.Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
			s := dag.Stage{From: from, Devices: slices.Clone(devices[:1+r.IntN(4)]), Sum: dag.Exchange(r.IntN(int(dag.NumExchanges))),
				Along: []dag.Dimension{dag.AlongSamples, dag.AlongOutputs, dag.AlongRows}[r.IntN(3)]}
			if s.Along != dag.AlongSamples && len(s.Devices)%2 == 0 && r.IntN(2) == 0 {
				s.Replicas = 2
			}
			l.Stages = append(l.Stages, s)
		}
		n.lower(t, l)
		tr := n.execute(t, how{platform: machine(t, 4), poison: true})
		for step, loss := range tr.losses {
			if want := plain.losses[step]; !(math.Abs(loss-want) <= 1e-11*want) {
				t.Errorf("case %d, %s, %d micro-batches, stages %+v: loss %v of step %d, without stages %v", i, n.model.Name, l.MicroBatches, l.Stages, loss, step, want)
			}
		}
	}
}
