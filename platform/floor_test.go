package platform_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"dahl/must"
	"dahl/platform"
)

// No estimate of a call with a share of some work is below all floors of the work, by any variant, at any clock, on any number of units.
func TestFloors(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 7))
	found := map[string]int{}
	for range 300 {
		p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e9 * (1 + r.Float64())}}}
		d := platform.Device{Name: "dev", Kind: platform.Emulated, Count: 1 + r.IntN(6), FlopsPerSec: map[string]float64{"float32": 1e9 * (1 + r.Float64())}, PowerSource: platform.Guess,
			Timing: time.Duration(r.IntN(2) * r.IntN(300))}
		if r.IntN(2) == 0 {
			d.Clocks = []platform.Clock{{Name: "own", Scale: 1}, {Name: "slow", Scale: 0.5}}
		}
		p.Devices = []platform.Device{d, {Name: "other", Kind: platform.CPU, Count: 1 + r.IntN(2), PowerSource: platform.Guess}}
		flops, bytes := float64(r.IntN(2)*1000), float64(100+r.IntN(1000))
		known := map[string]bool{}
		for shape := range r.IntN(9) {
			m := platform.Model{Op: "op", Variant: string(rune('a' + r.IntN(2))), Type: "float32", Device: []string{"dev", platform.Emulated}[r.IntN(2)], Shape: fmt.Sprint(shape / 2), Active: 1 + r.IntN(d.Count),
				MedianNs: 50 + 800*r.Float64(), P95Ns: 1e4, Count: 3}
			share := 0.05 + 0.95*float64(1+shape/2)/5
			m.Flops, m.MovedBytes = math.Ceil(share*flops), int64(math.Ceil(share*bytes))
			if r.IntN(4) == 0 {
				m.WarmNs, m.FarNs = 0.5*m.MedianNs, 2*m.MedianNs
			}
			if len(d.Clocks) > 0 && r.IntN(3) == 0 {
				m.Clock = "slow"
			}
			if key := fmt.Sprint(m.Variant, m.Shape, m.Active, m.Clock, m.Device); !known[key] {
				known[key] = true
				p.Models = append(p.Models, m)
			}
		}
		must.Do(t, p.Complete())
		least := 1 + r.IntN(d.Count)
		most := least + r.IntN(d.Count-least+1)
		for clock := range p.Devices[0].NumClocks() {
			floors := p.Floors("op", "float32", 0, clock, least, most, least, flops, bytes)
			for units := least; units <= most; units++ {
				on := must.Get(p.AtClocks(clock).Select(fmt.Sprint("dev:", units)))(t)
				for shape := range 8 {
					share := 0.05 + 0.95*float64(1+shape)/5
					if shape > 3 {
						share = r.Float64()
					}
					q := platform.Query{Op: "op", Variant: []string{"", "a", "b"}[r.IntN(3)], Type: "float32", Shape: fmt.Sprint(shape), Flops: math.Ceil(share * flops), MovedBytes: int64(math.Ceil(share * bytes))}
					e, ok := on.Estimate(q)
					if !ok {
						continue
					}
					found[e.Source]++
					nanos := max(1, float64(e.Duration)-float64(d.Timing))
					if e.Source == "roofline" {
						nanos = float64(e.Duration)
					}
					low := math.Inf(1)
					for _, f := range floors {
						low = min(low, f.Fixed+share*f.Nanos)
					}
					if nanos < low {
						t.Fatalf("%+v takes %g ns (%s), and no call less than %g", q, nanos, e.Source, low)
					}
				}
			}
		}
	}
	for _, source := range []string{"measured", "fit", "roofline"} {
		if found[source] < 100 {
			t.Errorf("%d estimates are %s", found[source], source)
		}
	}
}
