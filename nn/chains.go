package nn

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"dahl/dag"
)

// path is operations of a lowering, from the first reader of a weight to its writer.
type path struct {
	names []string
	// windows and rest say whether each tile of a drawn place reads the output of the tile of the drawn place before it: along
	// rows and columns, and along all else.
	windows, rest bool
}

// mostChains is the number of weights with chains.
const mostChains = 8

// chains are the chains of weights, the longest one first, by the works that all paths of a weight have. Behind them are works that only some lowerings have.
func (w *workers) chains(all []dag.Work, number map[string]int) (chains [][]dag.Link) {
	base := w.steps[0]
	weights := base.weights()
	names := slices.Sorted(maps.Keys(weights))
	lengths := map[string]int{}
	for _, name := range names {
		lengths[name] = len(base.longest(weights[name]))
	}
	slices.SortStableFunc(names, func(a, b string) int { return lengths[b] - lengths[a] })
	n := min(len(names), mostChains)
	for i := range n { // short and long ones
		weight := names[i*len(names)/n]
		paths := make([]path, len(w.steps))
		for k, s := range w.steps {
			paths[k] = w.path(s, weight)
		}
		if chain := w.links(paths, all, number); len(chain) > 0 {
			chains = append(chains, chain)
		}
	}
	return chains
}

// links are the works of all paths, and the works of all paths with a form from which these follow. If rows or columns of a window are not where the draw has them, no operation with such
// sides is drawn uniformly. If anything else is not, none is.
func (w *workers) links(paths []path, all []dag.Work, number map[string]int) (links []dag.Link) {
	for _, name := range paths[0].names {
		if work, ok := number[name]; ok && !all[work].Sometimes {
			if on, uniform := w.on(paths, name, func(*stepWork) bool { return true }); on {
				links = append(links, dag.Link{Work: work, Uniform: uniform})
			}
		}
	}
	for work := range all {
		if !all[work].Sometimes {
			continue
		}
		owner := slices.IndexFunc(all, func(o dag.Work) bool {
			return slices.ContainsFunc(o.Forms, func(f dag.Form) bool { return slices.Contains(f.Also, work) })
		})
		if owner < 0 {
			continue
		}
		forms := slices.DeleteFunc(slices.Clone(all[owner].Forms), func(f dag.Form) bool { return !slices.Contains(f.Also, work) })
		on, uniform := w.on(paths, all[work].Name, func(s *stepWork) bool {
			return slices.ContainsFunc(forms, func(f dag.Form) bool { return sameForm(f, s.forms[all[owner].Name]) })
		})
		if on {
			links = append(links, dag.Link{Work: work, Uniform: uniform})
		}
	}
	return links
}

// sameForm reports whether a form is another one, whatever follows.
func sameForm(f, g dag.Form) bool {
	f.Also, g.Also = nil, nil
	return reflect.DeepEqual(f, g)
}

// on reports whether the paths of some steps all have an operation, and whether it is drawn uniformly in all of them. Of an attention the tile of a
// position with itself is drawn, and so no tile of other pairs.
func (w *workers) on(paths []path, name string, some func(*stepWork) bool) (on, uniform bool) {
	on, uniform = true, true
	for i, s := range w.steps {
		if p := &paths[i]; some(s) {
			on = on && slices.Contains(p.names, name)
			uniform = uniform && on && p.rest && !slices.ContainsFunc(s.noted[name].sides, func(s side) bool {
				return s.cuttable && (s.isWindow() && !p.windows || s.meets && s.extent > 1)
			})
		}
	}
	return on, uniform
}

func (s *side) isWindow() bool { return s.along == dag.AlongRows || s.along == dag.AlongColumns }

// weights are the weights of all layers by their names.
func (s *stepWork) weights() map[string]dag.BufferID {
	all := map[string]dag.BufferID{}
	for _, n := range s.l.nodes {
		if len(n.Params) > 0 {
			all[s.l.b.BufferAt(n.weights[0]).Name] = n.weights[0]
		}
	}
	return all
}

// at is an operation of a path, by its number, and the access by which it reads from the one before it.
type at struct{ operation, access int }

// longest is the path of a weight with most operations.
func (s *stepWork) longest(parameter dag.BufferID) []at {
	most, from, by := make([]int, len(s.names)), make([]int, len(s.names)), make([]int, len(s.names))
	writers := map[dag.BufferID][]int{} // by storage
	end := -1
	for t, name := range s.names {
		task := s.whole[name]
		from[t] = -1
		for i := range task.Accesses {
			a := &task.Accesses[i]
			if !a.Mode.Reads() {
				continue
			}
			of := s.storage(a.Buffer)
			if of == parameter && task.Labels.Phase == phaseForward {
				most[t] = max(most[t], 1)
			}
			for _, u := range writers[of] {
				if most[u] > 0 && most[u] >= most[t] && s.writes(u, of, a) {
					most[t], from[t], by[t] = most[u]+1, u, i
				}
			}
		}
		for _, a := range task.Accesses {
			if of := s.storage(a.Buffer); a.Mode.Writes() && of == parameter && most[t] > 0 {
				end = t
			} else if role := s.l.b.BufferAt(of).Role; a.Mode.Writes() && (role == dag.Activation || role == dag.Gradient || role == dag.Workspace) {
				writers[of] = append(writers[of], t)
			}
		}
	}
	var path []at
	for t := end; t >= 0; t = from[t] {
		path = append(path, at{t, by[t]})
	}
	slices.Reverse(path)
	return path
}

// storage is the buffer that a buffer is a view of, or itself.
func (s *stepWork) storage(id dag.BufferID) dag.BufferID {
	for s.l.b.BufferAt(id).ViewOf != none {
		id = s.l.b.BufferAt(id).ViewOf
	}
	return id
}

// writes reports whether an operation writes some of what an access reads, as far as both see the storage in one shape.
func (s *stepWork) writes(operation int, storage dag.BufferID, read *dag.Access) bool {
	task := s.whole[s.names[operation]]
	return slices.ContainsFunc(task.Accesses, func(a dag.Access) bool {
		if !a.Mode.Writes() || s.storage(a.Buffer) != storage {
			return false
		}
		for d := range a.Box {
			if len(a.Box) == len(read.Box) && (a.Box[d].Hi <= read.Box[d].Lo || read.Box[d].Hi <= a.Box[d].Lo) {
				return false
			}
		}
		return true
	})
}

// path is the longest path of a weight.
func (w *workers) path(s *stepWork, weight string) path {
	p := path{windows: true, rest: true}
	parameter, ok := s.weights()[weight]
	if !ok {
		return p
	}
	for i, a := range s.longest(parameter) {
		name := s.names[a.operation]
		if i > 0 {
			windows, rest := w.follows(s, p.names[i-1], name, a.access)
			p.windows, p.rest = p.windows && windows, p.rest && rest
		}
		p.names = append(p.names, name)
	}
	return p
}

// follows reports whether each tile of a drawn place reads by an access the output of the tile of the drawn place before it.
func (w *workers) follows(s *stepWork, before, name string, access int) (windows, rest bool) {
	o, task := s.noted[name], s.whole[name]
	read := &task.Accesses[access]
	rest = slices.ContainsFunc(s.whole[before].Accesses, func(a dag.Access) bool {
		return a.Mode.Writes() && s.storage(a.Buffer) == s.storage(read.Buffer) && accessed(s.l, &a) == accessed(s.l, read)
	})
	windows = true
	for i := range o.sides {
		side := &o.sides[i]
		if !side.cuttable {
			continue
		}
		key := fmt.Sprint(task.Op, task.Shape, o.sides, i, access)
		drawn, known := w.drawn[key]
		if !known {
			drawn = o.drawn(i, &task, access)
			w.drawn[key] = drawn
		}
		windows, rest = windows && (drawn || !side.isWindow()), rest && (drawn || side.isWindow())
	}
	return windows, rest
}

// drawn reports whether a tile with one element of a side reads the element of the draw along this side: the same part of the
// extent of the operand. Every tile reads all of an operand that does not depend on the side.
func (o *noted) drawn(of int, whole *dag.Task, access int) bool {
	sides, ranges := slices.Clone(o.sides), wholeOf(o.sides)
	for i := range sides {
		sides[i].size = sides[i].extent
	}
	boxOf := func(a *dag.Access) dag.Box {
		if a.Box == nil {
			return dag.Whole(o.l.b.BufferAt(a.Buffer).Shape)
		}
		return a.Box
	}
	all, n := boxOf(&whole.Accesses[access]), sides[of].extent
	sides[of].size = 1
	const ends = 16 // of a side without windows the tiles between are alike
	for k := range n {
		if !sides[of].isWindow() && k >= ends && k < n-ends {
			continue
		}
		ranges[of] = dag.Range{Lo: k, Hi: k + 1}
		t := o.part(sides, ranges)
		if access >= len(t.Accesses) {
			return false
		}
		for d, r := range boxOf(&t.Accesses[access]) {
			extent := all[d].Len()
			if lo, hi := all[d].Lo+k*extent/n, all[d].Lo+dag.CeilDiv((k+1)*extent, n); r.Len() < extent && (r.Lo > lo || r.Hi < hi) {
				return false
			}
		}
	}
	return true
}
