package bench

import (
	"testing"
	"time"

	"dahl/must"
	"dahl/nn/models"
	"dahl/plan"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platforms"
	"dahl/schedule/policy"
	"dahl/train"
)

// BenchmarkCandidate evaluates choices as a search does that knows none of them: it lowers, prices, decides by HEFT and simulates
// a steady step. Each stage is reported in milliseconds for a choice.
func BenchmarkCandidate(b *testing.B) {
	for _, of := range []struct {
		network, devices string
		batch            int
		tiles            []string
	}{
		{"lenet5", "cpu0:16,cpu1:16", 32, []string{"whole", "default", "2 samples per task", "default; conv2: 8 samples; fc1: 60 outputs"}},
		{"lenet5", "", 64, []string{"4 parts of the batch", "default", "16 samples per task"}},
		{"cifar-cnn", "cpu0:16,gpu0", 64, []string{"whole", "default", "8 samples per task"}},
		{"resnet18", "cpu0:12,gpu0,gpu1", 32, []string{"8 samples per task", "whole; 2 micro-batches"}},
	} {
		b.Run(of.network+","+of.devices, func(b *testing.B) {
			p := must.Get(platforms.Load("server"))(b)
			m := must.Get(models.ByName(of.network))(b)
			w := &train.Workload{Samples: train.Samples{Train: 1000}, Options: train.Options{OtherMachine: true, Batch: of.batch}, Model: m, Platform: p}
			must.Do(b, w.Lower())
			var tiles []tiling.Tiling
			for _, text := range of.tiles {
				tiles = append(tiles, must.Get(tiling.Parse(text))(b))
			}
			var lower, price, decide, simulate time.Duration
			b.ReportAllocs()
			for b.Loop() {
				s := must.Get(w.Space(p, "", tiles...))(b)
				for _, t := range tiles {
					choice, begin := space.Choice{Devices: of.devices, Tiles: t}, time.Now()
					must.Get(s.At(choice))(b)
					lowered := time.Now()
					priced := must.Get(s.Price(choice))(b)
					pricedAt := time.Now()
					e := must.Get(new(plan.Evaluator).Policy(b.Context(), priced, policy.HEFT, true))(b)
					decided := time.Now()
					must.Get(e.Step(b.Context(), true, 6))(b)
					lower, price, decide, simulate = lower+lowered.Sub(begin), price+pricedAt.Sub(lowered), decide+decided.Sub(pricedAt), simulate+time.Since(decided)
				}
			}
			for name, all := range map[string]time.Duration{"lower-ms": lower, "price-ms": price, "decide-ms": decide, "simulate-ms": simulate} {
				b.ReportMetric(float64(all.Microseconds())/1e3/float64(b.N*len(tiles)), name)
			}
		})
	}
}
