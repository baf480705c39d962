package kernels

import (
	"fmt"
	"slices"
	"strings"

	"dahl/naming"
)

// table is the table of operations, with a line for each combination of attributes. Nothing changes it.
var table = stated(slices.Concat([]Kernel{
	feed, fetch, feedImages,
	load, loadNHWC, loadLabels,
	toNHWC, toNCHW, toHWIO, toHWOI, toOIHW,
}, composed(), []Kernel{
	relu, reluDx,
	maxpool, maxpoolDx,
	avgpool, avgpoolDx,
	globalavgpool, globalavgpoolDx,
	moments, batchNorm, batchNormSums, batchNormGate, batchNormDx,
	batchNormStats, batchNormRunning, batchNormFold, batchNormDw,
	dropoutKeys, dropout,
	softmaxXent, softmaxXentEval,
	mse, mseEval,
	mean, count, add, sum, copied,
	squares, clipNorm, sgd, adam,
}, functionKernels()))

// composed are the lines of all operations with attributes.
func composed() (all []Kernel) {
	for _, c := range compositions() {
		all = append(all, c.kernels()...)
	}
	return all
}

// Kernels is the table of operations, as a copy.
func Kernels() []Kernel {
	all := make([]Kernel, len(table))
	for i := range table {
		all[i] = table[i].clone()
	}
	return all
}

// KernelByName copies a line of the table of operations. For many lookups, keep the result of
// [Kernels].
func KernelByName(op string) (*Kernel, error) {
	k, ok := lookup(op)
	if !ok {
		known := make([]string, len(table))
		for i := range table {
			known[i] = table[i].Op
		}
		return nil, naming.Unknown("operation", op, known)
	}
	c := k.clone()
	return &c, nil
}

// CheckVariant refuses a name that no kernel has; kernels without the named variant run their
// fastest.
func CheckVariant(name string) error {
	known := VariantNames()
	if slices.Contains(known, name) {
		return nil
	}
	return fmt.Errorf("%q: no kernel has it; there are %s%s", name, strings.Join(known, ", "), naming.DidYouMean(name, known))
}

// VariantNames are the names of all variants of all kernels, sorted.
func VariantNames() (list []string) {
	for i := range table {
		for _, v := range table[i].Variants {
			list = append(list, v.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// lookup finds a line of the table itself.
func lookup(op string) (*Kernel, bool) {
	for i := range table {
		if table[i].Op == op {
			return &table[i], true
		}
	}
	return nil, false
}

func (k *Kernel) clone() Kernel {
	c := *k
	c.Operands, c.Params, c.Variants = slices.Clone(k.Operands), slices.Clone(k.Params), slices.Clone(k.Variants)
	for i := range c.Operands {
		o := &c.Operands[i]
		o.Modes, o.Values.Often = slices.Clone(o.Modes), slices.Clone(o.Values.Often)
	}
	for i := range c.Variants {
		c.Variants[i].Types = slices.Clone(c.Variants[i].Types)
	}
	return c
}
