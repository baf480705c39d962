package conformance

import (
	"fmt"
	"math"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/train"
)

// pairwise is a machine of GPUs with a link between each two of them, which take one copy in each direction at a time. Links to the host are free.
func pairwise(t testing.TB, gpus int, latency time.Duration, bandwidth, flops float64) *platform.Platform {
	t.Helper()
	const free = 1e18
	devices := []platform.Device{testmachine.CPU(1)}
	for k := range gpus {
		d := testmachine.GPU(fmt.Sprint("gpu", k))
		d.CopyEnginesIn, d.CopyEnginesOut = 1, gpus
		devices = append(devices, d)
	}
	p := testmachine.Node(t, devices...)
	p.Links[0].BandwidthBytesPerSec, p.Links[0].Sharing = free, platform.Fatpipe
	for i := range p.Devices {
		p.Devices[i].FlopsPerSec = map[string]float64{"float32": flops, "float64": flops}
	}
	for i := range p.Memories {
		p.Memories[i].BandwidthBytesPerSec = free
	}
	for k := range gpus {
		for j := range k {
			p.Links = append(p.Links, platform.Link{Name: fmt.Sprint("link", k, "-", j), BandwidthBytesPerSec: bandwidth, Latency: latency, Sharing: platform.Duplex, PowerSource: platform.Guess})
			p.Routes = append(p.Routes, platform.Route{From: devices[1+k].Memory, To: devices[1+j].Memory, Links: []platform.LinkID{platform.LinkID(len(p.Links) - 1)}})
		}
	}
	must.Do(t, p.Complete())
	return p
}

// strategic is a workload that a strategy lowers, with decisions.
func strategic(t testing.TB, m *nn.Model, p *platform.Platform, batch int, name string) *train.Workload {
	t.Helper()
	w := &train.Workload{Model: m, Platform: p, Options: train.Options{Batch: batch, OtherMachine: true, Strategy: must.Get(strategy.ByName(name))(t)}}
	must.Do(t, w.Lower())
	must.Do(t, w.Choose())
	return w
}

// TestStrategyFormulas: where computing takes no time, a step takes the messages of the formula, and where messages take none, the slowest share. With p devices and
// an exchange of b bytes in time E(b) = 2(p - 1)(α + b/(pB)), in float32, 60 samples and layers without biases:
//
// With r replicas of n devices, and p = r·n, each replica has 60/r samples, and r devices exchange the gradients of each n-th of the weights.
//
//	one    weights of 120×2560: E(4·120·2560). In pairs 2⌈log₂ p⌉(α + b/B) by the formula, and (⌈log₂ p⌉ + 1)(α + b/B) here, since each device has
//	       a link to the first one, and all get the sum at once.
//	pairs  layers of 1030, 2050, 1030 and 10 outputs are cut along outputs, inputs, outputs, inputs. The results of the second one are summed, and so are the gradients
//	       of these results: 2·E(4·60·2050) + E(4·60·10) with the results of the last one.
//	rows   the convolutions read rows of one and of 64 channels on the other side of each border, and the second one also a row of one channel backward:
//	       (α + 4·60·64·30/B) + 2(α + 4·60·30/B), twice with three devices, whose second one has two borders. Weights of the convolutions and of the dense layer: E(4·9·128) + E(4·10). In addition the images come in parts of samples, and so do
//	       the pooled results and their gradients: of 4·60·30·30 bytes a device sends the p-th part but for its own share to each other one, three times.
//	both   the dense layers have inputs of 62·8·8 and 310 values, E(4·60·62·64) + E(4·60·310), and the convolutions E(4·9·(64 + 64·62)). The sums of gradients of
//	       62·8·8 values are complete in slices of features, and go on in parts of samples, (p - 1)(α + 4·60·62·64/(p²B)) more.
//
//	grid   layers of 1030, 2050 and 5 outputs are cut along outputs, inputs, outputs: 2·E(4·60/r·2050) over n devices for the results of the second one and their gradients, and
//	       E(4·2050·1030/n) over r devices. Weights of 3·1030 and 5·2050 elements are too small for slices: the first replica gets them whole, and sends them whole to the others.
//
// The bytes between devices are 2(p - 1)b for an exchange of b bytes.
func TestStrategyFormulas(t *testing.T) {
	const α, bandwidth, batch = 1e-6, 1e8, 60
	dense := func(outputs int) nn.Layer { return layers.Dense{Outputs: outputs, NoBias: true} }
	conv := func(filters int) nn.Layer { return layers.Conv2D{Filters: filters, Kernel: 3, Pad: 1, NoBias: true} }
	network := func(name string, input []int, of ...nn.Layer) *nn.Model {
		m := must.Get(nn.New(name, input, of...))(t)
		m.Defaults.Optimizer = nn.SGD{LearningRate: 0.1}
		return m
	}
	one := network("one", []int{1, 1, 2560}, layers.Flatten{}, dense(120))
	pairs := network("pairs", []int{1, 1, 3}, layers.Flatten{}, dense(1030), dense(2050), dense(1030), dense(10))
	grid := network("grid", []int{1, 1, 3}, layers.Flatten{}, dense(1030), dense(2050), dense(5))
	rows := network("rows", []int{1, 30, 30}, conv(64), conv(1), layers.GlobalAvgPool{}, layers.Flatten{}, dense(10))
	both := network("both", []int{1, 8, 8}, conv(64), conv(62), layers.Flatten{}, dense(310), dense(10))
	message := func(bytes float64) float64 { return α + bytes/bandwidth }
	for _, c := range []struct {
		model            *nn.Model
		name             string
		p                float64
		exchanged        []float64 // bytes
		formula, besides float64   // in addition to exchanges; not in the formula
		replicas, each   float64   // each of p devices; bytes of weights that as many devices exchange as there are replicas. 0 is one replica.
	}{
		{one, "data-parallel:2", 2, []float64{4 * 120 * 2560}, 0, 0, 0, 0}, {one, "data-parallel:3:direct", 3, []float64{4 * 120 * 2560}, 0, 0, 0, 0}, {one, "zero1:5", 5, []float64{4 * 120 * 2560}, 0, 0, 0, 0},
		{one, "data-parallel:4:tree", 4, nil, 4 * message(4*120*2560), -message(4 * 120 * 2560), 0, 0},
		{pairs, "tensor-parallel:2", 2, []float64{4 * 60 * 2050, 4 * 60 * 2050, 4 * 60 * 10}, 0, 0, 0, 0}, {pairs, "tensor-parallel:5", 5, []float64{4 * 60 * 2050, 4 * 60 * 2050, 4 * 60 * 10}, 0, 0, 0, 0},
		{rows, "spatial:2", 2, []float64{4 * 9 * 128, 4 * 10}, message(4*60*64*30) + 2*message(4*60*30), 3 * message(4*60*900/4), 0, 0},
		{rows, "spatial:3", 3, []float64{4 * 9 * 128, 4 * 10}, 2 * (message(4*60*64*30) + 2*message(4*60*30)), 3 * 2 * message(4*60*900/9), 0, 0},
		{both, "owt:2", 2, []float64{4 * 60 * 62 * 64, 4 * 60 * 310, 4 * 9 * (64 + 64*62)}, 0, message(4 * 60 * 62 * 64 / 4), 0, 0},
		{both, "owt:5", 5, []float64{4 * 60 * 62 * 64, 4 * 60 * 310, 4 * 9 * (64 + 64*62)}, 0, 4 * message(4*60*62*64/25), 0, 0},
		{grid, "tensor-parallel:2+data-parallel:2", 2, []float64{4 * 30 * 2050, 4 * 30 * 2050}, 0, 0, 2, 4 * (3*1030 + 1030*2050 + 5*2050) / 2},
		{grid, "zero1:3+tensor-parallel:2", 2, []float64{4 * 20 * 2050, 4 * 20 * 2050}, 0, 0, 3, 4 * (3*1030 + 1030*2050 + 5*2050) / 2},
		{grid, "data-parallel:2+tensor-parallel:3", 3, []float64{4 * 30 * 2050, 4 * 30 * 2050}, 0, 0, 2, 4 * (3*1030 + 1030*2050 + 5*2050) / 3},
	} {
		c.replicas = max(1, c.replicas)
		gpus := int(c.p * c.replicas)
		w := strategic(t, c.model, pairwise(t, gpus, time.Microsecond, bandwidth, 1e18), batch, c.name)
		bytes := 0.0
		for _, b := range c.exchanged {
			c.formula += 2 * (c.p - 1) * message(b/c.p)
			bytes += 2 * (c.p - 1) * b * c.replicas
		}
		if c.each > 0 {
			c.formula += 2 * (c.replicas - 1) * message(c.each/c.replicas)
			bytes += 2 * (c.replicas - 1) * c.each * c.p
		}
		step, _ := w.StepOf()
		if math.Abs(step.Seconds-c.formula) > 1e-6 {
			t.Errorf("%s: the formula says %v s, want %v", c.name, step.Seconds, c.formula)
		}
		first, three := simulated(t, w.Decision, 0, 1), simulated(t, w.Decision, 0, 3)
		period := (three.Makespan - first.Makespan).Seconds() / 2
		if want := c.formula + c.besides; math.Abs(period-want) > want/100 {
			t.Errorf("%s: steps take %v s, want %v", c.name, period, want)
		}
		moved := 0.0
		for _, tr := range first.Transfers {
			if tr.From != 0 && tr.To != 0 {
				moved += float64(tr.Bytes)
			}
		}
		if c.besides == 0 && math.Abs(moved-bytes) > bytes/100 {
			t.Errorf("%s: %v bytes between devices, want %v", c.name, moved, bytes)
		}

		w = strategic(t, c.model, pairwise(t, gpus, 0, 1e18, 1e9), batch, c.name)
		step, _ = w.StepOf()
		if seconds := simulated(t, w.Decision, 0, 1).Makespan.Seconds(); math.Abs(seconds-step.Slowest) > 1e-4*seconds {
			t.Errorf("%s: with free messages a step takes %v s, and the slowest share %v", c.name, seconds, step.Slowest)
		}
	}
}

// TestStrategiesTrain: whatever strategy lowers a network, the losses are of the plain step, but for the order of sums. A pipeline alone is the plain step to the bit,
// with its micro-batches. A
// strategy gives the same bits again, however many units there are besides.
func TestStrategiesTrain(t *testing.T) {
	n := newNetwork(t, "digits-cnn", dag.Float64, 1)
	lowering := func(p *platform.Platform, name string) dag.Lowering {
		w := &train.Workload{Model: n.model, Platform: p, Options: train.Options{Batch: fixtureBatch, Type: dag.Float64, OtherMachine: true, Strategy: must.Get(strategy.ByName(name))(t)}}
		must.Do(t, w.Lower())
		return *w.Lowering
	}
	n.lower(t, dag.Lowering{})
	plain := n.execute(t, how{platform: machine(t, 1)})
	for i, name := range []string{"data-parallel:2", "data-parallel:5:tree", "zero1:3", "tensor-parallel:2", "tensor-parallel:3:direct", "spatial:3", "owt:4", "gpipe:2x3", "1f1b:3x5", "interleaved:2x2x4",
		"tensor-parallel:2+1f1b:2x5", "data-parallel:2+tensor-parallel:2", "data-parallel:2+spatial:2", "data-parallel:2:tree+gpipe:2x2", "data-parallel:2+tensor-parallel:2+1f1b:2x5", "1f1b:2x2+zero1:2"} {
		if testing.Short() && i%3 > 0 {
			continue
		}
		hash := ""
		least := max(5, must.Get(strategy.ByName(name))(t).Split.Needs())
		for _, cores := range []int{least, least + 1} {
			on := machine(t, cores)
			l := lowering(on, name)
			n.lower(t, l)
			got := n.execute(t, how{platform: on, policy: l.Order, poison: true})
			if hash != "" && got.hash() != hash {
				t.Errorf("%s on %d cores: weights %.8s, before %.8s", name, cores, got.hash(), hash)
			}
			hash = got.hash()
			for step, loss := range got.losses {
				if want := plain.losses[step]; !(math.Abs(loss-want) <= 1e-12*want) {
					t.Errorf("%s: loss %v of step %d, without stages %v", name, loss, step, want)
				}
			}
			if cores == least && !l.Stages[0].Shared() {
				l.Stages, l.Order = nil, ""
				n.lower(t, l)
				if want := n.execute(t, how{platform: on}).hash(); hash != want {
					t.Errorf("%s: weights %.8s, without stages %.8s", name, hash, want)
				}
			}
		}
	}
}
