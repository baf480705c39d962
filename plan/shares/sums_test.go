package shares

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

// Tiles of sums take no less than the least of their work, wherever each is best. Here they are made one by one, and so are the sums of their accumulators.
func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 4))
	near := 0
	for i := range 100 {
		p := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("gpu"))
		for k := range p.Devices {
			p.Devices[k].FlopsPerSec = map[string]float64{"float32": 1e9 * (1 + 2*r.Float64())}
			p.Devices[k].Dispatch = time.Duration(10 + r.IntN(2000)*r.IntN(2))
			p.Memories[k].BandwidthBytesPerSec = 1e9 * (1 + 2*r.Float64())
		}
		must.Do(t, p.Complete())
		s := &summed{p: p, sides: [3]int{1 + r.IntN(3), 1 + r.IntN(9), 1 + r.IntN(3)}, flops: float64(1 + r.IntN(99_000)), result: float64(1 + r.IntN(500)), read: float64(1 + r.IntN(99_000))}
		form := dag.Form{Op: "product", Type: dag.Float32, Flops: s.flops, Sides: s.sides[:], Summed: 0b110, Result: s.result, Moved: []dag.Moved{{Bytes: s.result, Depends: 0b001}, {Bytes: s.read, Depends: 0b111}}}
		m := must.Get(NewModel(NewStep(&dag.Step{Work: []dag.Work{{Name: "product", Forms: []dag.Form{form}}}, Chains: [][]dag.Link{{{Work: 0, Uniform: true}}}}), p, All(p), problem.Time, true))(t)
		s.units, s.chain = []float64{r.Float64(), r.Float64()}, 20*r.Float64()*float64(r.IntN(3))
		l := leasts{m: m, p: &Proof{Units: s.units, Chains: []float64{s.chain}}, known: make([]*big.Rat, 1)}
		got := float(must.Get(l.of(0))(t))
		least := math.Inf(1)
		for all := range s.sides[0] * s.sides[1] * s.sides[2] {
			s.cut = [3]int{1 + all%s.sides[0], 1 + all/s.sides[0]%s.sides[1], 1 + all/s.sides[0]/s.sides[1]}
			for s.accumulators = 1; s.accumulators < 9; s.accumulators++ {
				least = min(least, s.takes())
			}
		}
		if got > least*(1+1e-9) {
			t.Errorf("case %d: it takes at least %g, and tiles take %g: %+v", i, got, least, s)
		}
		if least < 1.2*got {
			near++
		}
	}
	if near < 40 {
		t.Errorf("%d of 100 are near: the test tests little", near)
	}
}

// summed is an operation that sums over two of its three sides, with multipliers.
type summed struct {
	p                   *platform.Platform
	sides, cut          [3]int
	flops, result, read float64
	accumulators        int
	units               []float64
	chain               float64
}

// parts are the shares of the parts of a side.
func (s *summed) parts(side int) (shares []float64) {
	for lo := 0; lo < s.sides[side]; lo += s.cut[side] {
		shares = append(shares, float64(min(s.cut[side], s.sides[side]-lo))/float64(s.sides[side]))
	}
	return shares
}

// best is what a task takes of units and, with a probability, of a chain on the device where that is least.
func (s *summed) best(flops, bytes, probability float64) float64 {
	least := math.Inf(1)
	for k := range s.p.Devices {
		d := &s.p.Devices[k]
		nanos := float64(d.Dispatch) + 1e9*max(flops/d.FlopsPerSec["float32"], bytes/s.p.Memories[d.Memory].BandwidthBytesPerSec)
		least = min(least, (s.units[k]+s.chain*probability)*nanos)
	}
	return least
}

// takes adds up all tasks.
func (s *summed) takes() (all float64) {
	var terms []float64
	for _, a := range s.parts(1) {
		for _, b := range s.parts(2) {
			terms = append(terms, a*b)
		}
	}
	n := min(s.accumulators, len(terms))
	for _, f := range s.parts(0) {
		blocks := make([]float64, n) // what chains come by
		for k, r := range terms {
			at, bytes := k*n/len(terms), 2*f*s.result
			if blocks[at] == 0 {
				bytes = f * s.result
			}
			blocks[at] += r
			all += s.best(s.flops*f*r, bytes+s.read*f*r, f*blocks[at])
		}
		for step := 1; step < n; step *= 2 {
			for at := 0; at+step < n; at += 2 * step {
				blocks[at] += blocks[at+step]
				all += s.best(0, 3*f*s.result, f*blocks[at])
			}
		}
	}
	return all
}
