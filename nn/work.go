package nn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
)

// Work lists what every lowering of a step has to do, and its chains: of each weight the longest one from its first reader to its update, the longest of all first. The
// options' lowering has no meaning.
//
// A lowering fuses layers as their cuts allow: the cuts of a layer and of layers near to it say how it is fused. So Work goes through lowerings with all combinations of cuts for any two near layers. An operation
// that some of these do not have is left out, unless all with a form of another operation of the layer have it.
//
// A chain draws a sample, one row and one column for all layers, as parts of their extents, and a channel of each layer. The
// tile of this place reads the output of the tile before it. The draw is uniform for an operation if rows and columns of its input lie
// in its window, and if it reads all of the output before it.
func (m *Model) Work(ctx context.Context, opt LowerOptions) (*dag.Step, error) {
	opt.Lowering, opt.noted = dag.Lowering{}, nil
	if err := opt.complete(m); err != nil {
		return nil, fmt.Errorf("work of model %q: %w", m.Name, err)
	}
	w := workers{m: m, known: map[string]dag.Form{}, drawn: map[string]bool{}, owned: map[[2]int]bool{}}
	partings := m.partings(opt.Batch)
	if m.Epilogues() {
		for _, l := range slices.Clone(partings) {
			l.Epilogues = true
			partings = append(partings, l)
		}
	}
	if m.JoinsLoss() && (opt.Train || !opt.Outputs) {
		for _, l := range slices.Clone(partings) {
			l.JoinLoss = true
			partings = append(partings, l)
		}
	}
	for _, l := range partings {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := w.lower(opt, l)
		if err != nil {
			return nil, fmt.Errorf("work of model %q: %w", m.Name, err)
		}
		w.steps = append(w.steps, s)
	}
	if opt.totals = opt.Train; opt.totals {
		s, err := w.lower(opt, partings[0])
		if err != nil {
			return nil, fmt.Errorf("work of model %q: %w", m.Name, err)
		}
		w.steps = append(w.steps, s)
	}
	all, number := w.works()
	return &dag.Step{Work: all, Chains: w.chains(all, number)}, nil
}

// works are the operations of all steps, and behind them the followers of forms of these, with their numbers by name.
func (w *workers) works() (all []dag.Work, number map[string]int) {
	number = map[string]int{}
	base := w.steps[0]
	for _, name := range base.names {
		if !slices.ContainsFunc(w.steps, func(s *stepWork) bool { return s.noted[name] == nil }) {
			number[name] = len(all)
			all = append(all, dag.Work{Name: name, Forms: w.formsOf(name)})
		}
	}
	owned := len(all)
	for _, gradients := range []bool{true, false} { // the update belongs to the gradient of its weight
		for i := range owned {
			if isGradient := strings.HasSuffix(all[i].Name, "."+phaseBackward+stepWeight); isGradient == gradients {
				all = w.addFollowers(all, i, number, owned)
			}
		}
	}
	return all, number
}

// formsOf are the different forms of an operation.
func (w *workers) formsOf(name string) (forms []dag.Form) {
	for _, s := range w.steps {
		if f, ok := s.forms[name]; ok && !slices.ContainsFunc(forms, func(known dag.Form) bool { return sameForm(known, f) }) {
			forms = append(forms, f)
		}
	}
	return forms
}

// addFollowers adds the operations of a layer that all steps with a form of one of its works have. It leaves out operations of other works, and
// sums of gradients of several readers.
func (w *workers) addFollowers(all []dag.Work, of int, number map[string]int, owned int) []dag.Work {
	name := all[of].Name
	layer := w.steps[0].whole[name].Labels.Layer
	for k := range all[of].Forms {
		var follow []string
		first := true
		for _, s := range w.steps {
			if !sameForm(all[of].Forms[k], s.forms[name]) {
				continue
			}
			if first {
				follow = slices.DeleteFunc(slices.Clone(s.names), func(other string) bool {
					i, known := number[other]
					return s.whole[other].Labels.Layer != layer || strings.Contains(other, phaseBackward+".add.") || known && (i < owned || !w.owned[[2]int{of, i}])
				})
			}
			first = false
			follow = slices.DeleteFunc(follow, func(other string) bool { return s.noted[other] == nil })
		}
		var also []int
		for _, other := range follow {
			if _, known := number[other]; !known {
				number[other] = len(all)
				all = append(all, dag.Work{Name: other, Forms: w.formsOf(other), Sometimes: true})
			}
			w.owned[[2]int{of, number[other]}] = true
			also = append(also, number[other])
		}
		all[of].Forms[k].Also = also
	}
	return all
}

// partings are lowerings that fuse layers in different ways, the one with whole layers first. Of any two layers that are near, each is
// parted from others and the other is not, or both, or none, since the binary digits of their colours differ in one place.
func (m *Model) partings(batch int) (all []dag.Lowering) {
	colours, most := m.colours()
	sets := []func(i int) bool{func(int) bool { return false }, func(int) bool { return true }}
	for bit := 1; bit <= most; bit *= 2 {
		sets = append(sets, func(i int) bool { return colours[i]&bit == 0 }, func(i int) bool { return colours[i]&bit != 0 })
	}
	for _, parted := range sets {
		for by := 1; by < 4; by++ { // forward passes, input gradients, or both
			for cut := range 4 { // weight gradients, forward passes, or both
				if by < 3 && cut != 0 && cut != 3 {
					continue
				}
				l := dag.Lowering{Layers: map[string]dag.LayerLowering{}}
				for i := range m.Stages {
					s := &m.Stages[i]
					ll := dag.LayerLowering{InputGradient: dag.Cut{Samples: batch}}
					if parted(i) && by&1 != 0 {
						ll.Forward.Inputs = max(1, Channels(s.In[0])-1)
					}
					if parted(i) && by&2 != 0 {
						ll.InputGradient.Outputs = max(1, Channels(s.Out)-1)
					}
					of := m.pooled(i)
					if cut&1 != 0 {
						ll.WeightGradient.Samples, ll.WeightGradient.Inputs = max(1, batch-1), max(1, Channels(s.In[0])-1)
						ll.WeightGradient.Rows, ll.WeightGradient.Columns = max(1, of[1]-1), max(1, of[2]-1)
					}
					if cut&2 != 0 {
						ll.Forward.Rows, ll.Forward.Columns = max(1, of[1]-1), max(1, of[2]-1)
						if len(s.Out) == 2 { // what an attention computes together
							ll.InputGradient.Rows = ll.Forward.Rows
						}
						if ll.Forward.Samples = max(1, batch-1); batch == 1 {
							ll.Forward.Outputs = max(1, Channels(s.Out)-1)
						}
					}
					l.Layers[s.Name] = ll
				}
				all = append(all, l)
			}
		}
	}
	return all
}

// pooled is the least extents of a stage and of the two behind it, one of which may be a pooling of the same group.
func (m *Model) pooled(i int) (of [3]int) {
	of = extents(m.Stages[i].Out)
	near := []int{i}
	for range 2 {
		for _, j := range near {
			for _, r := range m.Stages[j].readers {
				if out := m.Stages[r.stage].Out; len(out) == 3 {
					of[1], of[2] = min(of[1], out[1]), min(of[2], out[2])
				}
				near = append(near, r.stage)
			}
		}
	}
	return of
}

// colours gives different numbers to layers of which one reads the other, directly or by way of two others. No cut of another layer
// decides how a layer is fused.
func (m *Model) colours() (colours []int, most int) {
	const way = 3
	colours = make([]int, len(m.Stages))
	for i := range m.Stages {
		near := []int{i}
		for range way {
			for _, j := range near {
				for _, k := range m.Stages[j].Inputs {
					if k != ModelInput && !slices.Contains(near, k) {
						near = append(near, k)
					}
				}
			}
		}
		for slices.ContainsFunc(near[1:], func(j int) bool { return colours[j] == colours[i] }) {
			colours[i]++
		}
		most = max(most, colours[i])
	}
	return colours, most
}

// workers finds the work of steps. It knows the forms that it has seen.
type workers struct {
	m     *Model
	steps []*stepWork // of all partings
	known map[string]dag.Form
	drawn map[string]bool
	owned map[[2]int]bool // the second work is in Also of the first
}

// stepWork is the operations of one lowering.
type stepWork struct {
	l     *lowerer
	names []string
	noted map[string]*noted
	whole map[string]dag.Task
	forms map[string]dag.Form
}

func (w *workers) lower(opt LowerOptions, lowering dag.Lowering) (*stepWork, error) {
	var all []noted
	opt.noted, opt.dry, opt.Lowering = &all, true, lowering
	l := &lowerer{m: w.m, opt: opt, hyper: none, varies: map[dag.BufferID]bool{}}
	if err := l.group(); err != nil {
		return nil, err
	}
	if err := l.tile(); err != nil {
		return nil, err
	}
	s := &stepWork{l: l, noted: map[string]*noted{}, whole: map[string]dag.Task{}, forms: map[string]dag.Form{}}
	for i := range all {
		n := &all[i]
		whole, err := n.tile(n.sides, wholeOf(n.sides))
		if err != nil {
			return nil, err
		}
		if opt.Prepared && l.runsOnce(&whole) { // in no step
			continue
		}
		name, _, _ := strings.Cut(whole.Name, "[")
		for s.noted[name] != nil {
			name += " again"
		}
		s.names, s.noted[name], s.whole[name] = append(s.names, name), n, whole
		key := fmt.Sprint(whole.Op, whole.Type, whole.Shape, n.sides)
		f, ok := w.known[key]
		if !ok {
			f = n.form(&whole)
			w.known[key] = f
		}
		s.forms[name] = f
	}
	return s, nil
}

// vary marks what a task of a prepared step writes, unless the task runs once.
func (l *lowerer) vary(t *dag.Task) {
	if !l.opt.Prepared || l.b.Err() != nil || l.runsOnce(t) {
		return
	}
	for _, a := range t.Accesses {
		if a.Mode.Writes() {
			l.varies[l.storage(a.Buffer)] = true
		}
	}
}

// runsOnce reports of a task of a prepared step whether parameters alone decide what it writes, as [dag.Graph.Once] does of a graph.
func (l *lowerer) runsOnce(t *dag.Task) bool {
	return slices.ContainsFunc(t.Accesses, func(a dag.Access) bool { return a.Mode.Reads() }) &&
		!slices.ContainsFunc(t.Accesses, func(a dag.Access) bool {
			return l.varies[l.storage(a.Buffer)] || l.b.BufferAt(a.Buffer).Role == dag.Input
		})
}

// tile is a tile of an operation with its work.
func (o *noted) tile(sides []side, ranges []dag.Range) (dag.Task, error) {
	task := o.part(sides, ranges)
	task.Type = o.l.arithmetic(task.Accesses)
	if err := o.l.m.kernels.Complete(&task, o.l.b.BufferAt); err != nil {
		return task, err
	}
	for i := range task.Accesses {
		if a := &task.Accesses[i]; a.Mode == dag.Reduce { // the first of a sum writes
			task.MovedBytes -= accessed(o.l, a)
		}
	}
	return task, nil
}

// accessed is the size of an access.
func accessed(l *lowerer, a *dag.Access) int64 {
	b := l.b.BufferAt(a.Buffer)
	if a.Box == nil {
		return b.Bytes()
	}
	return a.Box.Elems() * b.Type.SizeBytes()
}

// form is the least work of the tiles of an operation. Flops and bytes are sums of products over sides. Windows at the border may have
// less than their share, and so may tiles without the bias, behind the first of a sum. So each side is looked at by itself, and the
// least ratios of all sides are multiplied: what is little for tiles at the border of rows is little at the border of columns, so that the mean
// of the products is no less than the product of the means.
func (o *noted) form(whole *dag.Task) dag.Form {
	f := dag.Form{Op: whole.Op, Type: whole.Type, Flops: whole.Flops}
	sum := int64(0)
	for i := range whole.Accesses {
		a := &whole.Accesses[i]
		bytes := accessed(o.l, a)
		if a.Mode == dag.ReadWrite {
			bytes *= 2
		}
		sum += bytes
		f.Moved = append(f.Moved, dag.Moved{Bytes: float64(bytes)})
	}
	byOperand := sum == whole.MovedBytes
	if !byOperand { // the operation gathers some of an operand
		f.Moved = []dag.Moved{{Bytes: float64(whole.MovedBytes)}}
	}
	updates := slices.ContainsFunc(whole.Accesses, func(a dag.Access) bool { return a.Mode.Writes() && o.l.b.BufferAt(a.Buffer).Role == dag.Parameter })
	for i := range o.sides {
		switch s := &o.sides[i]; {
		case s.cuttable:
			if s.dim < 0 {
				f.Summed |= 1 << len(f.Sides)
				if byOperand {
					f.Result = float64(accessed(o.l, &whole.Accesses[0]))
				}
			}
			o.cutAlong(&f, i, whole, byOperand)
		case s.along == dag.AlongSamples && !updates: // each micro-batch has some
			for k := range f.Moved {
				f.Moved[k].Depends |= 1 << len(f.Sides)
			}
		default:
			continue
		}
		f.Sides = append(f.Sides, o.sides[i].extent)
	}
	return f
}

// cutAlong looks at the tiles that are cut along one side.
func (o *noted) cutAlong(f *dag.Form, of int, whole *dag.Task, byOperand bool) {
	s := o.sides[of]
	least, flops := slices.Repeat([]float64{1}, len(f.Moved)), 1.0 // per share, relative to the whole
	depends := make([]bool, len(f.Moved))
	o.eachTile(of, func(t *dag.Task, share float64) {
		if whole.Flops > 0 {
			flops = min(flops, t.Flops/whole.Flops/share)
		}
		for i := range f.Moved {
			part := 0.0
			switch {
			case !byOperand && whole.MovedBytes > 0:
				part = float64(t.MovedBytes) / float64(whole.MovedBytes)
			case byOperand && i < len(t.Accesses):
				part = float64(accessed(o.l, &t.Accesses[i])) / float64(accessed(o.l, &whole.Accesses[i]))
			}
			depends[i] = depends[i] || part < 1
			least[i] = min(least[i], part/share)
		}
	})
	const rounding = 1 - 1e-14
	f.Flops *= flops * rounding
	for i := range f.Moved {
		if m := &f.Moved[i]; depends[i] || s.extent == 1 {
			m.Bytes *= least[i] * rounding
			m.Depends |= 1 << len(f.Sides)
		}
	}
}

// eachTile visits tiles that are cut along one side, each with its share of the operation.
func (o *noted) eachTile(of int, visit func(t *dag.Task, share float64)) {
	s := o.sides[of]
	sides, ranges := slices.Clone(o.sides), wholeOf(o.sides)
	for i := range sides {
		sides[i].size = sides[i].extent
	}
	for _, size := range s.sizes() {
		sides[of].size = size
		var parts []dag.Range
		sides[of].each(func(r dag.Range) { parts = append(parts, r) })
		const ends = 4 // parts of equal size in the middle are alike
		for k, r := range parts {
			if k >= ends && k < len(parts)-ends {
				continue
			}
			ranges[of] = r
			if t, err := o.tile(sides, ranges); err == nil { // else lowerings with such parts have another form
				visit(&t, float64(r.Len())/float64(s.extent))
			}
		}
	}
}

// sizes are the sizes of parts for which work per share may be least. Windows have the most of them. Any other size has more work per share
// than one of the two next to it.
func (s *side) sizes() (all []int) {
	if s.along == dag.AlongRows || s.along == dag.AlongColumns {
		const few = 3
		for n := 1; n < s.extent; n++ {
			if n <= few || n >= s.extent-few || n == dag.CeilDiv(s.extent, 2) {
				all = append(all, n)
			}
		}
		return all
	}
	inBlock := []int{1, dag.CeilDiv(s.block, 2)}
	if s.whole {
		inBlock = nil
	}
	for _, n := range append(inBlock, s.block, dag.CeilDiv(s.extent, 2)) {
		if n < s.extent && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}
