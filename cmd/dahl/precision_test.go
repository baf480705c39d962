package main

import (
	"slices"
	"strings"
	"testing"

	"dahl/cmd/dahl/flags"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
)

// TestPrecisionOfVariants: every variant that multiplies on tensor cores, which its name says, rounds its factors, and no other
// does. TF32 keeps 11 bits, bfloat16 8. Devices have such products from capability 8.0 on.
func TestPrecisionOfVariants(t *testing.T) {
	for _, k := range kernels.Kernels() {
		for _, v := range k.Variants {
			full, tf32, bf16 := v.Within(calls.FullPrecision), v.Within(calls.TF32Precision), v.Within(calls.BF16Precision)
			rounds := strings.HasSuffix(v.Name, "tf32") || v.Name == "bf16"
			if full == rounds || tf32 == (v.Name == "bf16") || !bf16 || rounds && v.Capability < 80 {
				t.Errorf("%s %s is within full %v, tf32 %v, bf16 %v", k.Op, v.Name, full, tf32, bf16)
			}
		}
	}
}

// TestWithin: of the models of a dense layer stay those of the variants that --precision
// allows, what --variant names, and all where a plan says what runs.
func TestWithin(t *testing.T) {
	gpu := platform.Device{Name: "gpu", Kind: "cuda", Count: 1, Memory: 0}
	p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram"}}, Devices: []platform.Device{gpu}}
	all := []string{"cuda", "tf32", "bf16", "cublas", "cublas-tf32"}
	for _, v := range all {
		p.Models = append(p.Models, platform.Model{Op: "dense", Variant: v, Device: "gpu", Type: "float32", Shape: "5x7", MedianNs: 1000, P95Ns: 1000, Count: 1, Active: 1})
	}
	for _, c := range []struct {
		o    flags.Options
		want []string
	}{
		{flags.Options{}, []string{"cuda", "cublas"}},
		{flags.Options{Precision: "full"}, []string{"cuda", "cublas"}},
		{flags.Options{Precision: "full", Variant: "bf16"}, []string{"cuda", "bf16", "cublas"}},
		{flags.Options{Precision: "tf32"}, []string{"cuda", "tf32", "cublas", "cublas-tf32"}},
		{flags.Options{Precision: "bf16"}, all},
		{flags.Options{Plan: "plan.json"}, all},
	} {
		q := must.Get(c.o.Prepared(p))(t)
		var got []string
		for _, m := range q.Models {
			got = append(got, m.Variant)
		}
		if !slices.Equal(got, c.want) || len(p.Models) != len(all) {
			t.Errorf("%+v: models of %v, want %v", c.o, got, c.want)
		}
	}
	if _, err := (&flags.Options{Precision: "fp8"}).Prepared(p); err == nil {
		t.Error("precision fp8 is accepted")
	}
}
