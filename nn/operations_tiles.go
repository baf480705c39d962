package nn

import (
	"cmp"
	"strconv"

	"dahl/dag"
)

// tiler finds the different tiles of an operation.
type tiler struct {
	*noted
	sides        []side
	parts        []parts // by side
	accumulators int
	all          []dag.Tile
	known        map[string]int // of all, by what [dag.Task] prices depend on
}

// parts are the parts of a side. Parts of a class differ only in their places.
type parts struct {
	of    []int       // the class of each part
	first []dag.Range // of each class
	count []int       // of each class
}

// partsOf finds the parts of a side. A part of rows or columns has its share of a halo or of a padding, and other parts differ by whether
// they are the first of a sum or of a block.
func (t *tiler) partsOf(of int) (p parts) {
	s, classes := &t.sides[of], map[string]int{}
	if s.size >= s.extent && s.shares == nil {
		return parts{of: []int{0}, first: []dag.Range{{Hi: s.extent}}, count: []int{1}}
	}
	s.each(func(r dag.Range) {
		key := ""
		if s.isWindow() && meets(t.sides) {
			key = strconv.Itoa(r.Lo) // what a part of windows meets depends on its place
		} else if s.along == dag.AlongRows || s.along == dag.AlongColumns {
			ranges := wholeOf(t.sides)
			ranges[of] = r
			task := t.part(t.sides, ranges)
			key = t.shapeOf(&task)
		}
		key += strconv.FormatBool(r.Lo == 0) + strconv.FormatBool(r.Lo%s.block == 0) + strconv.Itoa(r.Len())
		class, ok := classes[key]
		if !ok {
			class = len(p.first)
			classes[key] = class
			p.first, p.count = append(p.first, r), append(p.count, 0)
		}
		p.of = append(p.of, class)
		p.count[class]++
	})
	return p
}

// shapeOf is the shape key of a task, with its present modes of accesses.
func (t *tiler) shapeOf(task *dag.Task) string {
	return dag.ShapeKey(len(task.Accesses), func(i int) ([]int, dag.Mode) {
		a := &task.Accesses[i]
		if a.Box == nil {
			return t.l.b.BufferAt(a.Buffer).Shape, a.Mode
		}
		shape := make([]int, len(a.Box))
		for d, r := range a.Box {
			shape[d] = r.Len()
		}
		return shape, a.Mode
	}, task.Params)
}

// tiles visits the classes of the parts of the result, and of each the terms of its sum.
func (t *tiler) tiles() ([]dag.Tile, error) {
	t.known = map[string]int{}
	classes := make([]int, len(t.sides))
	var along func(side, count int) error
	along = func(side, count int) error {
		if side == len(t.sides) {
			terms, sum := t.terms(classes)
			accumulators := max(1, min(t.accumulators, sum))
			for _, term := range terms {
				if err := t.addTerm(classes, term, count); err != nil {
					return err
				}
			}
			return t.addMerges(classes, terms[0], count, accumulators)
		}
		if t.sides[side].dim < 0 {
			return along(side+1, count)
		}
		for class, n := range t.parts[side].count {
			classes[side] = class
			if err := along(side+1, count*n); err != nil {
				return err
			}
		}
		return nil
	}
	err := along(0, 1)
	return t.all, err
}

// term is a class of terms of a sum: the classes of the parts over which it sums.
type term struct {
	classes []int // by side; of the result's sides 0
	begins  bool  // it writes an accumulator; else it adds to one
	count   int
}

// terms lists the different terms of the sum of some parts of the result, the first one first, and their number, as [dag.Expand] gives accumulators to them.
func (t *tiler) terms(result []int) (all []term, sum int) {
	each := t.eachTerm(result)
	sum = len(each)
	accumulators := max(1, min(t.accumulators, sum))
	known, key := map[string]int{}, []byte(nil)
	for k, classes := range each {
		begins := k == 0 || (k-1)*accumulators/sum != k*accumulators/sum
		key = strconv.AppendBool(key[:0], begins)
		for _, class := range classes {
			key = strconv.AppendInt(append(key, ' '), int64(class), 10)
		}
		at, ok := known[string(key)]
		if !ok {
			at = len(all)
			known[string(key)] = at
			all = append(all, term{classes: classes, begins: begins})
		}
		all[at].count++
	}
	return all, sum
}

// eachTerm lists the terms of the sum of some parts of the result that are tasks: by side the class of each.
func (t *tiler) eachTerm(result []int) (all [][]int) {
	sum := 1
	for i := range t.sides {
		if t.sides[i].dim < 0 {
			sum *= len(t.parts[i].of)
		}
	}
	for k := range sum {
		classes, rest := make([]int, len(t.sides)), k
		for i := len(t.sides) - 1; i >= 0; i-- {
			if t.sides[i].dim < 0 {
				n := len(t.parts[i].of)
				classes[i] = t.parts[i].of[rest%n]
				rest /= n
			}
		}
		if meets(t.sides) && len(t.part(t.sides, t.rangesOf(result, term{classes: classes})).Accesses) == 0 {
			continue
		}
		all = append(all, classes)
	}
	return all
}

// rangesOf is a part of each class.
func (t *tiler) rangesOf(result []int, of term) []dag.Range {
	ranges := make([]dag.Range, len(t.sides))
	for i := range t.sides {
		class := result[i]
		if t.sides[i].dim < 0 {
			class = of.classes[i]
		}
		ranges[i] = t.parts[i].first[class]
	}
	return ranges
}

// addTerm adds the tasks of a term of some parts of the result.
func (t *tiler) addTerm(result []int, of term, count int) error {
	task, err := t.tile(t.sides, t.rangesOf(result, of))
	if err != nil {
		return err
	}
	reduces := false
	for i := range task.Accesses {
		a := &task.Accesses[i]
		if a.Mode != dag.Reduce {
			continue
		}
		if reduces, a.Mode = true, dag.Write; !of.begins {
			a.Mode = dag.ReadWrite
			task.MovedBytes += accessed(t.l, a)
		}
	}
	if reduces {
		task.Shape = t.shapeOf(&task)
	}
	t.count(task, count*of.count)
	return nil
}

// addMerges adds the tasks that add accumulators up.
func (t *tiler) addMerges(result []int, first term, count, accumulators int) error {
	if accumulators == 1 {
		return nil
	}
	task := t.part(t.sides, t.rangesOf(result, first))
	for _, regions := range task.Merged() {
		b := t.l.b.BufferAt(regions[0].Buffer)
		merge := dag.Task{Name: b.Name + ".merge", Op: cmp.Or(task.Merge, "add"), Type: b.Type, Labels: labelsOf(task.Labels.Layer, phaseReduce)}
		for _, mode := range []dag.Mode{dag.ReadWrite, dag.Read} {
			for _, r := range regions {
				merge.Accesses = append(merge.Accesses, dag.Access{Region: r, Mode: mode})
			}
		}
		if err := t.l.m.kernels.Complete(&merge, t.l.b.BufferAt); err != nil {
			return err
		}
		t.count(merge, count*(accumulators-1))
	}
	return nil
}

// count adds tasks to those that are like them.
func (t *tiler) count(task dag.Task, count int) {
	key := task.Labels.Phase + " " + task.Op + " " + task.Shape
	at, ok := t.known[key]
	if !ok {
		at = len(t.all)
		t.known[key] = at
		t.all = append(t.all, dag.Tile{Task: task})
	}
	t.all[at].Count += count
}
