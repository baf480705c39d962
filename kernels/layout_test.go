package kernels_test

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

// TestHWIOGivesBoth: hwio with a second result gives what hwio and hwoi give.
func TestHWIOGivesBoth(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 59))
	both, _ := kernels.KernelByName("hwio")
	turned, _ := kernels.KernelByName("hwoi")
	for _, e := range [][3]int{{1, 1, 1}, {5, 3, 2}, {37, 17, 3}, {67, 3, 5}} { // filters, channels, window
		w, hwio, hwoi := []int{e[0], e[1], e[2], e[2]}, []int{e[2], e[2], e[1], e[0]}, []int{e[2], e[2], e[0], e[1]}
		for margin := range 2 {
			s := kerneltest.New(both, dag.Float32, [][]int{hwio, w, hwoi}, kerneltest.FirstModes(both), nil, margin)
			s.Fill(rng)
			weights := s.Values(1)
			for v := range both.Variants {
				if !both.Variants[v].RunsHere() {
					continue
				}
				one := kerneltest.New(both, dag.Float32, [][]int{hwio, w}, kerneltest.FirstModes(both)[:2], nil, margin)
				other := kerneltest.New(turned, dag.Float32, [][]int{hwoi, w}, kerneltest.FirstModes(turned), nil, margin)
				for _, c := range []*kerneltest.Case{one, other} {
					c.Set(1, func(j int) float64 { return weights[j] })
				}
				s.Run(&both.Variants[v])
				one.Run(&both.Variants[v])
				other.Run(&turned.Variants[v])
				compareBits(t, both.Variants[v].Name, s.Values(0), one.Values(0))
				compareBits(t, both.Variants[v].Name, s.Values(2), other.Values(0))
			}
		}
	}
}
