package dag

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/must"
)

// TestDependencesAgainstElementSets compares the derived edges with the
// definition, on element sets: random tasks over random boxes of one storage and
// its views, run for two steps; task t follows p if t touches an element whose
// last writer is p, or writes one that p has read since its last write. Edges
// from step to step are carried if some element is read before it is written. If not, and there are
// several copies of the storage, the same edges reach as many steps back.
func TestDependencesAgainstElementSets(t *testing.T) {
	shapes := [][][]int{{{2, 3, 5}, {2, 15}}, {{6, 7}, {2, 3, 7}, {42}}, {{4, 1, 3}, {2, 6}, {12}}}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		views := shapes[rng.IntN(len(shapes))]
		b := NewBuilder("random")
		ids := []BufferID{b.Buffer(Buffer{Name: "a", Shape: views[0], Type: Float32})}
		for i, v := range views[1:] {
			ids = append(ids, b.View(string(rune('b'+i)), ids[0], v...))
		}
		var tasks []elementTask
		for n := range 12 {
			v := rng.IntN(len(views))
			box := randomBox(rng, views[v])
			mode := Mode(rng.IntN(4))
			b.Task(Task{Name: string(rune('A' + n)), Accesses: []Access{{Region{ids[v], box}, mode}}})
			tasks = append(tasks, elementTask{elements(views[v], box), mode})
		}
		g := must.Get(b.Build())(t)
		within, across, carried := twoSteps(tasks)
		if g.Carried(ids[0]) != carried {
			t.Fatalf("seed %d: carried is %v", seed, !carried)
		}
		for i := range tasks {
			id := TaskID(i)
			between, none := g.ReusePreds(id, 1), g.CarriedPreds(id)
			if carried {
				between, none = none, between
			}
			if !sameSet(g.Preds(id), within[i]) || !sameSet(between, across[i]) || len(none) > 0 {
				t.Fatalf("seed %d: task %d follows %v, and %v and %v of the step before; want %v and %v",
					seed, i, g.Preds(id), between, none, within[i], across[i])
			}
		}
		copies := slices.Repeat([]int32{1}, len(ids))
		copies[0] = 2 + int32(seed%3)
		several, err := g.WithVersions(copies)
		if (err == nil) != (g.WrittenStorages()[0] && !carried) {
			t.Fatalf("seed %d: %d copies: %v; carried is %v", seed, copies[0], err, carried)
		}
		if err != nil {
			continue
		}
		if err := several.Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range tasks {
			id := TaskID(i)
			if !sameSet(several.Preds(id), within[i]) || len(several.ReusePreds(id, 1)) > 0 || !sameSet(several.ReusePreds(id, copies[0]), across[i]) {
				t.Fatalf("seed %d: with %d copies task %d follows %v, %v and %v; want %v, none and %v", seed, copies[0], i,
					several.Preds(id), several.ReusePreds(id, 1), several.ReusePreds(id, copies[0]), within[i], across[i])
			}
		}
	}
}

type elementTask struct {
	elems []int
	mode  Mode
}

// twoSteps applies the definition to two consecutive steps: by task, whom it
// follows within its step and across the boundary.
func twoSteps(tasks []elementTask) (within, across []map[int32]bool, carried bool) {
	n := len(tasks)
	writer, readers := map[int]int{}, map[int][]int{}
	var readFirst, written bool
	for at := range 2 * n {
		task := tasks[at%n]
		sets := [2]map[int32]bool{{}, {}} // by the step of the predecessor
		for _, e := range task.elems {
			w, ok := writer[e]
			readFirst = readFirst || !ok && (task.mode == Read || task.mode == ReadWrite)
			follow := readers[e]
			if !task.mode.Writes() {
				follow = nil
			}
			if ok {
				follow = append(follow[:len(follow):len(follow)], w)
			}
			for _, p := range follow {
				sets[p/n][int32(p%n)] = true
			}
			if task.mode.Writes() {
				writer[e], readers[e], written = at, nil, true
			} else {
				readers[e] = append(readers[e], at)
			}
		}
		if at < n {
			within = append(within, sets[0])
		} else {
			across = append(across, sets[0])
		}
	}
	return within, across, readFirst && written
}

func sameSet(list []int32, set map[int32]bool) bool {
	for _, v := range list {
		if !set[v] {
			return false
		}
	}
	return len(list) == len(set) && slices.IsSorted(list)
}

// elements lists the row-major indices of a box.
func elements(shape []int, box Box) []int {
	all := []int{0}
	for d, e := range shape {
		var next []int
		for _, base := range all {
			for i := box[d].Lo; i < box[d].Hi; i++ {
				next = append(next, base*e+i)
			}
		}
		all = next
	}
	return all
}

func TestCarriedEdges(t *testing.T) {
	// w is read by f and then updated by u: u(k) precedes f(k+1) and u(k+1); f(k)
	// precedes u(k) only, within the step. y is rewritten: g(k), its reader,
	// precedes f(k+1).
	b := NewBuilder("step")
	w := b.Buffer(Buffer{Name: "w", Shape: []int{3}, Type: Float32, Role: Parameter})
	y := b.Buffer(Buffer{Name: "y", Shape: []int{5}, Type: Float32})
	f := b.Task(Task{Name: "f", Accesses: []Access{{Region{w, nil}, Read}, {Region{y, nil}, Write}}})
	r := b.Task(Task{Name: "g", Accesses: []Access{{Region{y, nil}, Read}}})
	u := b.Task(Task{Name: "u", Accesses: []Access{{Region{w, nil}, ReadWrite}}})
	g := must.Get(b.Build())(t)
	for _, c := range []struct {
		what      string
		got, want []int32
	}{
		{"preds of u", g.Preds(u), []int32{int32(f)}},
		{"carried preds of f", g.CarriedPreds(f), []int32{int32(u)}},
		{"carried preds of u", g.CarriedPreds(u), []int32{int32(u)}},
		{"carried preds of g", g.CarriedPreds(r), nil},
		{"reuse preds of f", g.ReusePreds(f, 1), []int32{int32(f), int32(r)}},
		{"reuse preds of u", g.ReusePreds(u, 1), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if !g.Carried(w) || g.Carried(y) {
		t.Error("w is carried and y is not")
	}
}
