package schedule

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// TestLikeDevicesShareColumns: with three equal GPUs, one of a longer dispatch, and one for which a task has a cost of its own, costs are those of the same
// devices when each has another size of its second-level cache. That changes no time by work and roofline, and is another one in each device of the second platform, so that no two
// share a column there.
func TestLikeDevicesShareColumns(t *testing.T) {
	machine := func(unlike bool) *platform.Platform {
		p := &platform.Platform{Name: "alike", Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e9}},
			Devices: []platform.Device{{Name: "cpu", Kind: platform.CPU, Count: 2, FlopsPerSec: map[string]float64{"float32": 1e9}}}}
		for i := range 5 {
			p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprint("hbm", i), BandwidthBytesPerSec: 7e9})
			p.Devices = append(p.Devices, platform.Device{Name: fmt.Sprint("gpu", i), Kind: platform.CUDA, Count: 1, Memory: platform.MemoryID(1 + i), Unreachable: true,
				FlopsPerSec: map[string]float64{"float32": 11e9}})
		}
		p.Devices[4].Dispatch = 13
		for d := range p.Devices {
			p.Devices[d].PowerSource = platform.Guess
			if unlike {
				p.Devices[d].L2Bytes = int64(1 + d)
			}
		}
		must.Do(t, p.Complete())
		return p
	}
	b := dag.NewBuilder("tasks")
	for i, place := range []string{"", "cpu", "gpu0", "gpu2", "cuda", "gpu3", "gpu4", "gpu1"} {
		for k, costs := range [][]dag.Cost{nil, {{Key: "gpu4", Ns: 17}, {Key: dag.AnyDevice, Ns: 19}}} {
			task := dag.Task{Name: fmt.Sprint(i, k), Op: "f", Type: dag.Float32, Flops: 1000, MovedBytes: 500, Costs: costs}
			if place != "" {
				task.Placement = &dag.Placement{Device: place}
			}
			b.Task(task)
		}
	}
	g := must.Get(b.Build())(t)
	shared, each := must.Get(unboundCosts(g, machine(false)))(t), must.Get(unboundCosts(g, machine(true)))(t)
	if columns := len(shared.ByClass[0]); columns != 4 || len(each.ByClass[0]) != 6 {
		t.Errorf("%d columns; want 4: processor, gpu0 to gpu2, gpu3, gpu4", columns)
	}
	for task := range dag.TaskID(len(g.Tasks)) {
		for d := range platform.DeviceID(6) {
			got, runs := shared.Of(task, d)
			want, should := each.Of(task, d)
			if got != want || runs != should {
				t.Errorf("task %s on device %d: %v, %v; want %v, %v", g.Tasks[task].Name, d, got, runs, want, should)
			}
		}
	}
}
