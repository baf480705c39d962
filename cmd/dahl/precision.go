package main

import (
	"cmp"
	"slices"

	"dahl/kernels"
	"dahl/platform"
)

// precisionUsage documents --precision.
const precisionUsage = "factors of products on tensor cores: full (never rounded), tf32 or bf16 (rounded to 11 or 8 bits where that is known to be faster)"

func checkPrecision(name string) error {
	if name != "" && !slices.Contains(kernels.Precisions(), name) {
		return inputErrorf("--precision %q: want %s", name, oneOf(kernels.Precisions()))
	}
	return nil
}

// within is the platform without the models of variants that round more than --precision
// allows, so that none is chosen for being fast. What --variant names and what a plan says
// runs whatever its precision.
func (o *options) within(p *platform.Platform) (*platform.Platform, error) {
	if err := checkPrecision(o.Precision); err != nil || o.Plan != "" {
		return p, err
	}
	allowed := slices.DeleteFunc(slices.Clone(p.Models), func(m platform.Model) bool {
		k, err := kernels.KernelByName(m.Op)
		if err != nil || m.Variant == o.Variant {
			return false
		}
		v, ok := k.Variant(m.Variant)
		return ok && !v.Within(cmp.Or(o.Precision, kernels.FullPrecision))
	})
	if len(allowed) == len(p.Models) {
		return p, nil
	}
	q := *p
	q.Models = allowed
	return &q, asInput(q.Complete())
}
