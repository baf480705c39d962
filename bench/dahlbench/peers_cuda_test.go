//go:build cuda

package main

import (
	"math"
	"testing"

	"dahl/execute/hardware"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/train/peer"
)

// dahl's side of `bench peers --device cuda`: the losses of the first step on the GPU, in
// float32 and in TF32, are those of one core as nearly as the cell demands of PyTorch's.
func TestOurSideOnCUDA(t *testing.T) {
	if _, err := hardware.GPUs(); err != nil {
		t.Skip(err)
	}
	loss := func(u peerUnit) float64 {
		s, err := newOurSide(t.Context(), &peersOptions{}, "mlp", 13, u)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		losses, err := s.contestant(peer.ModeTrain).losses(2)
		if err != nil || len(losses) != 2 {
			t.Fatalf("losses %v, %v", losses, err)
		}
		return losses[1]
	}
	want := loss(peerUnit{Device: platform.CPU, Threads: 1, Precision: precisionFloat32})
	for precision, bound := range map[string]float64{precisionFloat32: 1e-3, calls.TF32Precision: 3e-2} {
		got := loss(peerUnit{Device: platform.CUDA, Threads: 1, Precision: precision})
		if !(math.Abs(got-want) <= bound*want) {
			t.Errorf("%s: loss %v, one core has %v", precision, got, want)
		}
	}
}
