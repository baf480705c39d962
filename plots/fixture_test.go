package plots

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

const us = time.Microsecond

// twoDevices is a platform of cpu.0 and cpu.1 on "ram" and "gpu" on "hbm".
func twoDevices() *platform.Platform {
	return &platform.Platform{
		Name:     "two devices",
		Memories: []platform.Memory{{Name: "ram", CapacityBytes: 24e9}, {Name: "hbm", CapacityBytes: 8e9}},
		Devices: []platform.Device{
			{Name: "cpu", Kind: "cpu", Count: 2, Memory: 0, IdleWatts: 2, Busy: platform.BusyPower{UnitWatts: 9}},
			{Name: "gpu", Kind: "cuda", Count: 1, Memory: 1, IdleWatts: 20, Busy: platform.BusyPower{UnitWatts: 120}},
		},
		Links:   []platform.Link{{Name: "pcie", BandwidthBytesPerSec: 1e9, Latency: 10 * us, IdleWatts: 1, BusyWatts: 3}},
		Routes:  []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}},
		Workers: []platform.Worker{{Name: "cpu.0", Device: 0, Index: 0}, {Name: "cpu.1", Device: 0, Index: 1}, {Name: "gpu", Device: 1}},
	}
}

// manyCores is a platform of n workers on one memory.
func manyCores(n int) *platform.Platform {
	p := &platform.Platform{
		Name:     "cores",
		Memories: []platform.Memory{{Name: "ram"}},
		Devices:  []platform.Device{{Name: "cpu", Kind: "cpu", Count: n, IdleWatts: 2, Busy: platform.BusyPower{UnitWatts: 9}}},
	}
	for i := range n {
		p.Workers = append(p.Workers, platform.Worker{Name: fmt.Sprintf("cpu.%d", i), Index: i})
	}
	return p
}

// tinyGraph is one training step of ten tasks over two sample tiles: conv, relu
// and dense forward, loss, then the gradients of the weights and the update.
func tinyGraph(t testing.TB) *dag.Graph {
	b := dag.NewBuilder("tiny")
	buffer := func(name string, role dag.Role, shape ...int) dag.BufferID {
		home := ""
		if role == dag.Parameter || role == dag.Input {
			home = "ram"
		}
		return b.Buffer(dag.Buffer{Name: name, Shape: shape, Type: dag.Float32, Role: role, Home: home})
	}
	x, h, y := buffer("x", dag.Input, 2, 5000), buffer("h", dag.Activation, 2, 5000), buffer("y", dag.Activation, 2, 5000)
	z, dw := buffer("z", dag.Activation, 2, 300), buffer("grad.fc1.weight", dag.Gradient, 2, 7000)
	w := buffer("fc1.weight", dag.Parameter, 7000)
	tile := func(buf dag.BufferID, i int, mode dag.Mode) dag.Access {
		box := dag.Box{{Lo: i, Hi: i + 1}, {Lo: 0, Hi: b.BufferAt(buf).Shape[1]}}
		return dag.Access{Region: dag.Region{Buffer: buf, Box: box}, Mode: mode}
	}
	all := func(buf dag.BufferID, mode dag.Mode) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: buf}, Mode: mode}
	}
	task := func(layer, phase, op string, i int, accesses ...dag.Access) {
		b.Task(dag.Task{Name: fmt.Sprintf("%s.%s[%d]", layer, phase, i), Op: op, Type: dag.Float32, Shape: "s",
			Labels: dag.Labels{Layer: layer, Phase: phase}, Accesses: accesses, Flops: 1e6, MovedBytes: 4000})
	}
	for i := range 2 {
		task("conv1", "forward", "conv2d", i, tile(h, i, dag.Write), tile(x, i, dag.Read))
		task("relu1", "forward", "relu", i, tile(y, i, dag.Write), tile(h, i, dag.Read))
		task("fc1", "forward", "dense", i, tile(z, i, dag.Write), tile(y, i, dag.Read), all(w, dag.Read))
		task("fc1", "backward", "dense.dw", i, tile(dw, i, dag.Write), tile(z, i, dag.Read), tile(y, i, dag.Read))
	}
	task("loss", "forward", "mean", 0, all(z, dag.Read))
	task("fc1", "update", "sgd", 0, all(w, dag.ReadWrite), all(dw, dag.Read))
	return must.Get(b.Build())(t)
}

// tinyRun is two steps of tinyGraph, the second sample tile on the GPU. The
// factor stretches all durations, for a second run that differs.
func tinyRun(t testing.TB, world schedule.World, factor float64) *Run {
	g := tinyGraph(t)
	cost := map[string]time.Duration{"conv2d": 230 * us, "relu": 40 * us, "dense": 110 * us, "dense.dw": 150 * us, "mean": 20 * us, "sgd": 60 * us}
	place := func(task dag.TaskID, _ []time.Duration) platform.WorkerID {
		switch name := g.Tasks[task].Name; {
		case name[len(name)-2] == '1':
			return 2
		case g.Tasks[task].Op == "mean":
			return 1
		}
		return 0
	}
	p := &schedule.Problem{Graph: g, Platform: twoDevices(), Steps: 2}
	s := listSchedule(p, place, func(task dag.TaskID) time.Duration {
		return time.Duration(float64(cost[g.Tasks[task].Op]) * factor)
	})
	s.World, s.Policy = world, "heft"
	return &Run{Problem: p, Schedule: s, Power: modelledPower(t, p, s), Grounds: "modelled, watts guessed", ReservedBytes: []int64{150_000, 120_000},
		Part: "steps 5 to 6 of 7, in epoch 2 of 3", FirstStep: 5}
}

// largeRun is a network of 20 layers over many tiles, about n tasks in all, on
// workers of one kind.
func largeRun(t testing.TB, n, workers, steps int, seed uint64) *Run {
	const layers = 20
	tiles := n / steps / layers
	b := dag.NewBuilder("large")
	var before dag.BufferID
	for l := range layers {
		buf := b.Buffer(dag.Buffer{Name: fmt.Sprintf("act%d", l), Shape: []int{tiles, 1000}, Type: dag.Float32, Role: dag.Activation})
		w := b.Buffer(dag.Buffer{Name: fmt.Sprintf("layer%d.weight", l), Shape: []int{1000}, Type: dag.Float32, Role: dag.Parameter, Home: "ram"})
		for i := range tiles {
			box := dag.Box{{Lo: i, Hi: i + 1}, {Lo: 0, Hi: 1000}}
			accesses := []dag.Access{{Region: dag.Region{Buffer: buf, Box: box}, Mode: dag.Write}}
			if l > 0 {
				wide := dag.Box{{Lo: max(0, i-1), Hi: min(tiles, i+2)}, {Lo: 0, Hi: 1000}}
				accesses = append(accesses, dag.Access{Region: dag.Region{Buffer: before, Box: wide}, Mode: dag.Read})
			}
			mode := dag.Read
			if i == tiles-1 {
				mode = dag.ReadWrite
			}
			accesses = append(accesses, dag.Access{Region: dag.Region{Buffer: w}, Mode: mode})
			b.Task(dag.Task{Name: fmt.Sprintf("layer%d.forward[%d]", l, i), Op: []string{"conv2d", "relu", "maxpool", "dense"}[l%4], Shape: fmt.Sprint(l),
				Labels: dag.Labels{Layer: fmt.Sprintf("layer%d", l), Phase: "forward"}, Accesses: accesses})
		}
		before = buf
	}
	g := must.Get(b.Build())(t)
	p := &schedule.Problem{Graph: g, Platform: manyCores(workers), Steps: steps}
	random := rand.New(rand.NewPCG(seed, 2))
	place := func(_ dag.TaskID, free []time.Duration) platform.WorkerID {
		best := 0
		for w := range free {
			if free[w] < free[best] {
				best = w
			}
		}
		return platform.WorkerID(best)
	}
	s := listSchedule(p, place, func(task dag.TaskID) time.Duration {
		layer := int(task) / tiles
		return time.Duration(20+13*(layer%4)*(layer%4)+random.IntN(30)) * us
	})
	s.World, s.Policy = schedule.Simulated, "eager"
	return &Run{Problem: p, Schedule: s, Power: modelledPower(t, p, s)}
}

// comparedRuns is what a caller says of two runs: a line and the numbers of operations.
func comparedRuns() *Compared {
	return &Compared{Text: "what is compared, and how far it is off", Kernels: Operation{"sum of all", 3, 90e-6, 100e-6},
		Operations: []Operation{{"conv2d", 2, 70e-6, 80e-6}, {"copy ram to vram", 1.5, 25e-6, 21e-6}, {"sgd", 1, 20e-6, 20e-6}}}
}
