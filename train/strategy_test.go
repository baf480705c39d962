package train

import (
	"context"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// TestMemoryOfStrategies trains a network by every strategy of networks, on cores and on emulated GPUs. In the memory of each device the highest byte that
// anybody touches is the end of the last place that was planned there, in each arena. The sum of the arenas is what a run prints as reserved.
//
// Sizes are different primes. The last of the steps has fewer samples, and with them micro-batches.
func TestMemoryOfStrategies(t *testing.T) {
	m := must.Get(nn.New("primes", []int{2, 13, 11}, layers.Conv2D{Filters: 5, Kernel: 3}, layers.ReLU{}, layers.Conv2D{Filters: 3, Kernel: 2}, layers.ReLU{},
		layers.Flatten{}, layers.Dense{Outputs: 19}, layers.ReLU{}, layers.Dense{Outputs: 17}, layers.ReLU{}, layers.Dense{Outputs: 7}))(t)
	d := must.Get(OpenData("synthetic:2x13x11:47:7", 47, 0))(t)
	tried := 0
	names := []string{"data-parallel:2+tensor-parallel:2", "1f1b:3x4:stash"}
	for _, of := range strategy.All() {
		if !of.OfNetworks() || len(of.Arguments) == 5 { // megatron's step is of one device for all, so that nobody executes it
			continue
		}
		name := of.Doc().Name + ":3" // devices
		if n := len(of.Arguments); n > 1 {
			name = of.Doc().Name + ":" + map[int]string{2: "3x4", 3: "2x2x4"}[n]
		}
		names = append(names, name)
	}
	for i, name := range names {
		devices := 3
		if i == 0 {
			devices = 4
		}
		for what, p := range map[string]*platform.Platform{
			"cores": testmachine.Executable(t, devices, 0),
			"GPUs":  testmachine.Executable(t, 1, devices),
		} {
			o := Options{Batch: 11, Epochs: 1, Seed: 11, Type: dag.Float32, Strategy: must.Get(strategy.ByName(name))(t)}
			t.Run(name+" on "+what, func(t *testing.T) { touchesWhatIsPlanned(t, m, d, p, o) })
			tried++
		}
	}
	if tried < 18 {
		t.Errorf("%d trainings, want some of ten strategies", tried)
	}
}

func touchesWhatIsPlanned(t *testing.T, m *nn.Model, d Data, p *platform.Platform, o Options) {
	w := must.Get(New(m, d, p, o))(t)
	tr := must.Get(w.Start())(t)
	defer tr.Close()
	must.Do(t, tr.Run(context.Background()))
	for _, warning := range tr.Runner.Warnings() {
		t.Log(warning) // what was oversubscribed
	}
	for i := range p.Memories {
		memory := platform.MemoryID(i)
		high, planned := must.Get(tr.Runner.HighWater(memory))(t), plannedHighWater(t, w.Decision, memory)
		for a := layout.NetworkArena; a < layout.ScratchArena; a++ {
			if high[a] != planned[a] {
				t.Errorf("%s: bytes up to %d of arena %d are touched, planned are %d", p.Memories[i].Name, high[a], a, planned[a])
			}
		}
		if used, room := high[layout.ScratchArena], planned[layout.ScratchArena]; used > room {
			t.Errorf("%s: workspaces end at %d of %d", p.Memories[i].Name, used, room)
		}
		if planned[layout.StepArena] == 0 && strings.Contains(p.Memories[i].Name, "gpu") && w.Lowering.Order != "interleaved" {
			t.Errorf("%s: nothing of a step is there", p.Memories[i].Name)
		}
	}
}

// plannedHighWater is the end of what any graph uses of each arena of a memory: in that of the host all of a buffer, in that of a device what its tasks and
// transfers name of a replica, which has all columns of its rows. Of the scratch it is the size.
func plannedHighWater(t *testing.T, d *schedule.Decision, memory platform.MemoryID) (end [layout.NumArenas]int64) {
	for graph := range d.Graphs {
		l, g := d.Layouts(graph)[memory], d.Priced.Program.Graphs[graph]
		if placed := d.Graphs[graph].Placed; placed != nil {
			g = must.Get(placed.Graph())(t)
		}
		use := func(b dag.BufferID, bytes int64) {
			if l.Offset(b) >= 0 {
				end[l.Arena(b)] = max(end[l.Arena(b)], l.Offset(b)+bytes)
			}
		}
		for b := range g.Buffers {
			if memory == d.Priced.Platform.HostMemory() {
				use(dag.BufferID(b), g.Buffers[b].Bytes())
			}
		}
		for i := range g.Tasks {
			for _, a := range g.Tasks[i].Accesses {
				use(a.Buffer, bytesTo(&g.Buffers[a.Buffer], a.Box))
			}
		}
		end[layout.ScratchArena] = max(end[layout.ScratchArena], l.ArenaBytes[layout.ScratchArena])
	}
	return end
}

// bytesTo is the number of bytes of a buffer up to the last element of a box, in row-major order.
func bytesTo(b *dag.Buffer, box dag.Box) int64 {
	if box == nil {
		return b.Bytes()
	}
	last := int64(0)
	for i, extent := range b.Shape {
		last = last*int64(extent) + int64(box[i].Hi-1)
	}
	return (last + 1) * b.Type.SizeBytes()
}
