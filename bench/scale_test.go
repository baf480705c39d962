package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/models"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
	"dahl/train"
)

// flatGPUs is a host with n equal GPUs, each with a duplex link to one switch that limits nothing.
func flatGPUs(tb testing.TB, n int) *platform.Platform {
	tb.Helper()
	p := &platform.Platform{Name: "flat", Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 200e9, Host: true}},
		Devices: []platform.Device{{Name: "cpu", Kind: platform.CPU, Count: 1, FlopsPerSec: map[string]float64{"float32": 50e9}, PowerSource: platform.Guess}}}
	link := func(name string) platform.LinkID {
		p.Links = append(p.Links, platform.Link{Name: name, BandwidthBytesPerSec: 25e9, Latency: 2 * time.Microsecond, Sharing: platform.Duplex, PowerSource: platform.Guess})
		return platform.LinkID(len(p.Links) - 1)
	}
	links := []platform.LinkID{link("pcie")}
	for i := range n {
		m := platform.MemoryID(len(p.Memories))
		p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprint("hbm", i), CapacityBytes: 80e9, BandwidthBytesPerSec: 2000e9})
		p.Devices = append(p.Devices, platform.Device{Name: fmt.Sprint("gpu", i), Kind: platform.CUDA, Count: 1, Memory: m, FlopsPerSec: map[string]float64{"float32": 20e12},
			Dispatch: 2 * time.Microsecond, CopyEnginesIn: 1, CopyEnginesOut: 1, PowerSource: platform.Guess})
		links = append(links, link(fmt.Sprint("link", i)))
		for from := range m {
			p.Routes = append(p.Routes, platform.Route{From: from, To: m, Links: []platform.LinkID{links[from], links[m]}})
		}
	}
	must.Do(tb, p.Complete())
	return p
}

// BenchmarkScale is the data-parallel step of resnet50 on many GPUs, from the network to the schedule.
func BenchmarkScale(b *testing.B) {
	for _, n := range []int{8, 16, 32, 64, 100, 150, 200, 400, 1000} {
		b.Run(fmt.Sprintf("resnet50/%d", n), func(b *testing.B) {
			p := flatGPUs(b, n)
			m := must.Get(models.ByName("resnet50"))(b)
			var lower, price, decide, run time.Duration
			tasks, copies := 0, 0
			for b.Loop() {
				w := &train.Workload{Samples: train.Samples{Train: 8 * n}, Model: m, Platform: p,
					Options: train.Options{OtherMachine: true, Batch: 8 * n, Type: dag.Float32, Strategy: must.Get(strategy.ByName(fmt.Sprintf("data-parallel:%d", n)))(b)}}
				begin := time.Now()
				must.Do(b, w.Lower())
				lowered := time.Now()
				priced := must.Get(schedule.Price(w.Program, p, w.Target()))(b)
				pricedAt := time.Now()
				d := must.Get(priced.Decide(schedule.Choice{Policy: policy.HEFT}))(b)
				decided := time.Now()
				s := must.Get(simulate.Run(context.Background(), d, 0, 1, simulate.Options{}))(b)
				lower, price, decide, run = lower+lowered.Sub(begin), price+pricedAt.Sub(lowered), decide+decided.Sub(pricedAt), run+time.Since(decided)
				tasks, copies = len(s.Spans), len(s.Transfers)
				b.ReportMetric(s.Makespan.Seconds(), "makespan-s")
			}
			for name, all := range map[string]time.Duration{"lower-s": lower, "price-s": price, "decide-s": decide, "simulate-s": run} {
				b.ReportMetric(all.Seconds()/float64(b.N), name)
			}
			b.ReportMetric(float64(tasks), "tasks")
			b.ReportMetric(float64(copies), "copies")
		})
	}
}
