package dag

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDependencesAgainstElementSets compares the derived edges with the
// definition, on element sets: random tasks over random boxes of one storage and
// a view of it; task t follows p if t touches an element whose last writer is p,
// or writes one that p has read since its last write.
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
		type access struct {
			elems  []int
			writes bool
		}
		var tasks []access
		for n := range 12 {
			v := rng.IntN(len(views))
			box := make(Box, len(views[v]))
			for d, e := range views[v] {
				lo := rng.IntN(e)
				box[d] = Range{lo, lo + 1 + rng.IntN(e-lo)}
			}
			mode := Mode(rng.IntN(3))
			b.Task(Task{Name: string(rune('A' + n)), Accesses: []Access{{Region{ids[v], box}, mode}}})
			tasks = append(tasks, access{elements(views[v], box), mode.Writes()})
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		writer, readers := map[int]int32{}, map[int][]int32{}
		for i, task := range tasks {
			want := map[int32]bool{}
			for _, e := range task.elems {
				if w, ok := writer[e]; ok {
					want[w] = true
				}
				if task.writes {
					for _, r := range readers[e] {
						want[r] = true
					}
					writer[e], readers[e] = int32(i), nil
				} else {
					readers[e] = append(readers[e], int32(i))
				}
			}
			got := g.Preds(TaskID(i))
			if len(got) != len(want) {
				t.Fatalf("seed %d: task %d follows %v, want %v", seed, i, got, want)
			}
			for _, p := range got {
				if !want[p] {
					t.Fatalf("seed %d: task %d follows %v, want %v", seed, i, got, want)
				}
			}
		}
	}
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
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want []int32
	}{
		{"preds of u", g.Preds(u), []int32{int32(f)}},
		{"carried preds of f", g.CarriedPreds(f), []int32{int32(u)}},
		{"carried preds of u", g.CarriedPreds(u), []int32{int32(u)}},
		{"carried preds of g", g.CarriedPreds(r), nil},
		{"reuse preds of f", g.ReusePreds(f), []int32{int32(f), int32(r)}},
		{"reuse preds of u", g.ReusePreds(u), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if !g.Carried(w) || g.Carried(y) {
		t.Error("w is carried and y is not")
	}
}
