package platform

import (
	"math"
	"testing"
	"time"

	"dahl/must"
)

// twoKinds is a cpu of four cores and a GPU, each with a memory.
func twoKinds(models ...Model) *Platform {
	return &Platform{
		Memories: []Memory{{Name: "ram", BandwidthBytesPerSec: 40e9}, {Name: "hbm", BandwidthBytesPerSec: 1e12}},
		Devices: []Device{
			{Name: "big", Kind: "cpu", Count: 4, Memory: 0, FlopsPerSec: map[string]float64{"float32": 10e9}},
			{Name: "gpu0", Kind: "cuda", Count: 1, Memory: 1, FlopsPerSec: map[string]float64{"float32": 1e12, "float64": 5e11}},
		},
		Models: models,
	}
}

func model(variant, device, shape string, active int, medianNs float64) Model {
	return Model{Op: "dense", Variant: variant, Type: "float32", Device: device, Shape: shape, Active: active, MedianNs: medianNs}
}

func TestEstimateMeasured(t *testing.T) {
	p := twoKinds(
		model("ref", "cpu", "a", 4, 900), model("go", "cpu", "a", 1, 100), model("go", "cpu", "a", 3, 300.25), model("go", "cpu", "a", 7, 700),
		model("go", "cpu", "b", 2, 50), model("go", "cpu", "b", 6, 60), // equally near to 4: the larger
		model("go", "cpu", "c", 1, 70), model("go", "cpu", "c", 4, 80),
		model("go", "cuda", "a", 1, 7), model("go", "gpu0", "a", 1, 9), // the name wins over the kind
	)
	p.Models[2].Joules, p.Models[7].WarmNs, p.Models[7].FarNs = 0.5, 60, 95
	for _, c := range []struct {
		name string
		q    Query
		want Estimate
	}{
		{"fastest, nearest to four busy, rounded up", Query{Op: "dense", Type: "float32", Shape: "a"}, Estimate{Duration: 301, Joules: 0.5, Variant: "go"}},
		{"with caches, alone only near", Query{Op: "dense", Type: "float32", Shape: "c"}, Estimate{Duration: 80, Busy: CacheTimes{60, 80, 95}, Alone: CacheTimes{70, 70, 70}, Variant: "go"}},
		{"pinned", Query{Op: "dense", Variant: "ref", Type: "float32", Shape: "a"}, Estimate{Duration: 900, Variant: "ref"}},
		{"two as near", Query{Op: "dense", Type: "float32", Shape: "b"}, Estimate{Duration: 60, Variant: "go"}},
		{"device before kind", Query{Op: "dense", Type: "float32", Shape: "a", Device: 1}, Estimate{Duration: 9, Variant: "go"}},
	} {
		c.want.Source = "measured"
		if got, ok := p.Estimate(c.q); !ok || got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, ok, c.want)
		}
	}
}

// By itself ref takes 90 ns and go 100, so ref is chosen; inside steps ref was seen
// to take 500, and that is what it is expected to take. go's 40 inside steps is no
// reason to choose it: ref may have had worse neighbours.
func TestEstimateInStep(t *testing.T) {
	p := twoKinds(model("ref", "big", "a", 4, 90), model("go", "big", "a", 4, 100))
	p.Models[0].StepNs, p.Models[1].StepNs = 500, 40
	want := Estimate{Duration: 500, Variant: "ref", InSteps: true, Source: "measured"}
	if got, ok := p.Estimate(Query{Op: "dense", Type: "float32", Shape: "a"}); !ok || got != want {
		t.Errorf("got %+v, %v; want %+v", got, ok, want)
	}
}

// One of four cores moves bytes at a quarter of 40 GB/s.
func TestEstimateRoofline(t *testing.T) {
	p := twoKinds(model("go", "cpu", "a", 4, 100))
	for _, c := range []struct {
		name string
		q    Query
		want time.Duration
		ok   bool
	}{
		{"compute bound: 1e6/10e9 s", Query{Type: "float32", Flops: 1e6, MovedBytes: 1000}, 100_000, true},
		{"memory bound: 1e6/10e9 s", Query{Type: "float32", Flops: 1000, MovedBytes: 1e6}, 100_000, true},
		{"no arithmetic needs no speed", Query{Type: "float64", MovedBytes: 10}, 1, true},
		{"float64 has no speed", Query{Type: "float64", Flops: 1}, 0, false},
		{"whole numbers run as float32", Query{Type: "int32", Flops: 1e6}, 100_000, true},
		{"the GPU has its memory for itself", Query{Type: "float64", Device: 1, MovedBytes: 1e6}, 1000, true},
		{"a variant without a model", Query{Variant: "avx2", Type: "float32", Flops: 1e6}, 0, false},
		{"no work", Query{Type: "float32"}, 0, true},
	} {
		c.q.Op = "relu"
		got, ok := p.Estimate(c.q)
		if ok != c.ok || got.Duration != c.want || ok && (got.Source != "roofline" || got.Variant != "") {
			t.Errorf("%s: got %+v, %v; want %v", c.name, got, ok, c.want)
		}
	}
	// A variant with one model only has no fit: the roofline, under its name.
	e, ok := p.Estimate(Query{Op: "dense", Variant: "go", Type: "float32", Shape: "z", Flops: 1e6})
	if !ok || e.Source != "roofline" || e.Variant != "go" || e.Duration != 100_000 {
		t.Errorf("too few shapes for a fit: %+v, %v", e, ok)
	}
}

func TestEstimateFit(t *testing.T) {
	var models []Model
	for i, work := range []float64{10, 20, 40} { // t = 1000 + 3·flops exactly
		m := model("go", "cpu", string(rune('a'+i)), 4, 1000+3*work)
		m.Flops = work
		models = append(models, m)
		slow := m
		slow.Variant, slow.MedianNs = "ref", 2*m.MedianNs
		models = append(models, slow)
	}
	p := twoKinds(models...)
	e, ok := p.Estimate(Query{Op: "dense", Type: "float32", Shape: "z", Flops: 100})
	if !ok || e.Source != "fit" || e.Variant != "go" || e.Duration < 1300 || e.Duration > 1301 || e.RelError > 1e-9 {
		t.Errorf("got %+v, %v; want 1300 ns by the fit of go", e, ok)
	}
}

func TestRoundUpNs(t *testing.T) {
	for ns, want := range map[float64]time.Duration{0: 0, 0.001: 1, 1: 1, 1.5: 2, 1e300: Unreachable, math.Inf(1): Unreachable} {
		if got := roundUpNs(ns); got != want {
			t.Errorf("%g ns rounds to %d, want %d", ns, got, want)
		}
	}
}

// TestVariantOfTheWhole: on four units b is the faster variant of the call (80 against 90), alone
// a is (50 against 60). Whatever units are selected, b is chosen, with its own time for so many.
// Lines through the shapes x, y and z say the same of a call of 80 F that was not measured.
func TestVariantOfTheWhole(t *testing.T) {
	var models []Model
	for i, shape := range []string{"x", "y", "z"} {
		for _, m := range []Model{model("a", "cpu", shape, 1, 50), model("a", "cpu", shape, 4, 90), model("b", "cpu", shape, 1, 60), model("b", "cpu", shape, 4, 80)} {
			times := float64(int(1) << i)
			m.Flops, m.MedianNs = 10*times, m.MedianNs*times
			models = append(models, m)
		}
	}
	p := twoKinds(models...)
	p.Name, p.Memories, p.Devices = "m", p.Memories[:1], p.Devices[:1]
	must.Do(t, p.Complete())
	for units, ns := range map[int]time.Duration{1: 60, 2: 60, 3: 80, 4: 80, 9: 80} { // 2 is nearer to 1 than to 4
		q, err := p.WithCores(units)
		if err == nil && units > 1 {
			q, err = q.WithCores(units)
		}
		if err != nil {
			t.Fatal(err)
		}
		for shape, times := range map[string]time.Duration{"x": 1, "other": 8} {
			e, ok := q.Estimate(Query{Op: "dense", Type: "float32", Shape: shape, Flops: float64(10 * times)})
			if !ok || e.Variant != "b" || e.Duration < ns*times || e.Duration > ns*times+1 {
				t.Errorf("%s on %d units: %+v; want variant b and %v", shape, units, e, ns*times)
			}
		}
	}
}
