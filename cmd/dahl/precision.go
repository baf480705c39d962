package main

import (
	"slices"

	"dahl/cmd/cli"
	"dahl/kernels"
	"dahl/platform"
	"dahl/train"
)

// precisionUsage documents --precision.
const precisionUsage = "factors of products on tensor cores: full (never rounded), tf32 or bf16 (rounded to 11 or 8 bits where that is known to be faster)"

func checkPrecision(name string) error {
	if name != "" && !slices.Contains(kernels.Precisions(), name) {
		return cli.InputErrorf("--precision %q: want %s", name, cli.OneOf(kernels.Precisions()))
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
	return train.Within(p, o.Precision, o.Variant)
}
