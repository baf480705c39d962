package kernels

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unique"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/naming"
)

// Table has the operations of a program: of this package, and others that its layers bring. It does not change.
// Nil means the operations of this package alone.
type Table struct {
	kernels []Kernel
	byOp    map[string]*Kernel
}

// NewTable is the operations of this package and others. Each of these has a name of its own,
// operands, and a first variant "ref" for both float types.
func NewTable(others ...Kernel) (*Table, error) {
	t := &Table{kernels: Kernels(), byOp: map[string]*Kernel{}}
	for i := range others {
		k := &others[i]
		switch {
		case k.Op == "":
			return nil, fmt.Errorf("operation %d has no name", i+1)
		case len(k.Operands) == 0 || len(k.Variants) == 0:
			return nil, fmt.Errorf("operation %q lacks operands or variants", k.Op)
		case k.Variants[0].Name != "ref" || k.Variants[0].Run32 == nil || k.Variants[0].Run64 == nil:
			return nil, fmt.Errorf("operation %q: the first variant is %q, want \"ref\" with Run32 and Run64", k.Op, k.Variants[0].Name)
		}
		c := k.clone()
		c.Base = cmp.Or(c.Base, c.Op)
		var err error
		if c.statement, err = k.parse(); err != nil {
			return nil, fmt.Errorf("operation %q: %w", k.Op, err)
		}
		for v := range c.Variants {
			c.Variants[v] = widened(c.Variants[v])
		}
		t.kernels = append(t.kernels, c)
	}
	for i := range t.kernels {
		k := &t.kernels[i]
		if t.byOp[k.Op] != nil {
			return nil, fmt.Errorf("there are two operations %q; give one another name", k.Op)
		}
		t.byOp[k.Op] = k
	}
	return t, nil
}

// Lookup finds an operation, which nobody changes.
func (t *Table) Lookup(op string) (*Kernel, bool) {
	if t == nil {
		return lookup(op)
	}
	k, ok := t.byOp[op]
	return k, ok
}

// Validate is [Validate] for the operations of the table.
func (t *Table) Validate(s *calls.Spec) error {
	_, err := t.validSpace(s)
	return err
}

func (t *Table) validSpace(s *calls.Spec) (*Space, error) {
	k, ok := t.Lookup(s.Op)
	if !ok {
		return nil, fmt.Errorf("unknown operation %q", s.Op)
	}
	return k.validSpace(s)
}

// SpaceOf is the iteration space of a call of an operation of the table, or what is wrong with its
// shapes.
func (t *Table) SpaceOf(s *calls.Spec) (*Space, error) {
	k, ok := t.Lookup(s.Op)
	if !ok {
		return nil, fmt.Errorf("unknown operation %q", s.Op)
	}
	return k.space(s)
}

// Add is [Add] for the operations of the table.
func (t *Table) Add(b *dag.Builder, task dag.Task) dag.TaskID {
	if b.Err() != nil {
		return 0
	}
	if err := t.Complete(&task, b.BufferAt); err != nil {
		b.Fail(err)
		return 0
	}
	return b.Task(task)
}

// Complete gives a task of an operation of the table its shape and its work, or says what is wrong with the task.
func (t *Table) Complete(task *dag.Task, buffer func(dag.BufferID) dag.Buffer) error {
	p, err := t.validSpace(calls.SpecOf(task, buffer))
	if err != nil {
		return fmt.Errorf("task %q: %w", task.Name, err)
	}
	task.Flops, task.MovedBytes = p.work()
	task.Shape = unique.Make(p.spec.Key()).Value() // so that equal keys of a big graph are one string
	return nil
}

// table is the table of operations, with a line for each combination of attributes. Nothing changes it.
var table = stated(slices.Concat([]Kernel{
	feed, fetch, feedImages, feedLabels,
	load, loadNHWC, loadRows, loadLabels,
	toNHWC, toNCHW, toHWIO, toHWOI, toOIHW,
}, composed(), []Kernel{
	relu, reluDx,
	maxpool, maxpoolDx,
	avgpool, avgpoolDx,
	globalavgpool, globalavgpoolDx,
	moments, batchNorm, batchNormSums, batchNormGate, batchNormDx,
	momentsTotal, momentsMerge, batchNormStats, batchNormRunning, batchNormFold, batchNormTotal, batchNormDw,
	rotaryTable, rotary, attention, attentionMerge, attentionAlong, attentionDx, attentionDq, attentionDkv, attentionDrop, attentionDropDx, attentionDropDq, attentionDropDkv,
	layerNormDw,
	dropoutKeys, dropoutRows, dropout,
	embedding, embeddingDw, positions, positionsDw, shift, marks,
	softmaxXent, softmaxXentEval,
	xentSums, xentMerge, xent, xentDx, xentDw,
	mse, mseEval,
	mean, count, counted, add, sum, multiplied, copied,
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
	k, ok := byOp()[op]
	return k, ok
}

// byOp has the lines of the table by their names.
var byOp = sync.OnceValue(func() map[string]*Kernel {
	all := map[string]*Kernel{}
	for i := range table {
		all[table[i].Op] = &table[i]
	}
	return all
})

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
