package dag

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/must"
)

// TestAtomBoxes: over random boxes of a storage and its views, the boxes of the atoms
// of an access cover exactly the elements of its region, each once; those of a region
// that is a box of the returned shape are that one box. Where all views have the same rows,
// those of the atoms are those of the elements.
func TestAtomBoxes(t *testing.T) {
	shapes := [][][]int{{{2, 3, 5}, {2, 15}}, {{6, 7}, {2, 3, 7}, {42}}, {{4, 1, 3}, {12}}, {{1, 5, 1}, {5}}, {{1}, {}}, {{5, 1, 7, 3}}}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		views := shapes[rng.IntN(len(shapes))]
		b := NewBuilder("random")
		b.Buffer(Buffer{Name: "another", Shape: []int{3}, Type: Float32})
		ids := []BufferID{b.Buffer(Buffer{Name: "a", Shape: views[0], Type: Float32})}
		for i, v := range views[1:] {
			ids = append(ids, b.View(string(rune('b'+i)), ids[0], v...))
		}
		for n := range 7 {
			v := rng.IntN(len(views))
			b.Task(Task{Name: string(rune('A' + n)), Accesses: []Access{{Region{ids[v], randomBox(rng, views[v])}, Read}}})
		}
		g := must.Get(b.Build())(t)
		for task := range g.Tasks {
			a := g.Tasks[task].Accesses[0]
			want := map[int]bool{}
			for _, e := range elements(g.Buffers[a.Buffer].Shape, a.Box) {
				want[e] = true
			}
			shape, boxes := g.AtomBoxes(shuffled(rng, g.Atoms(TaskID(task), 0)))
			got, covered := map[int]bool{}, 0
			for _, box := range boxes {
				for _, e := range elements(shape, box) {
					got[e] = true
					covered++
				}
			}
			if !maps.Equal(got, want) || covered != len(want) {
				t.Fatalf("seed %d: %v of shape %v became %v of shape %v", seed, a.Box, g.Buffers[a.Buffer].Shape, boxes, shape)
			}
			if slices.Equal(shape, g.Buffers[a.Buffer].Shape) && len(boxes) > 1 {
				t.Fatalf("seed %d: box %v became %v", seed, a.Box, boxes)
			}
			if slices.ContainsFunc(views, func(v []int) bool { return len(v) == 0 || v[0] == 1 || v[0] != views[0][0] }) {
				continue // some view has other rows
			}
			size := int(g.Buffers[a.Buffer].Elems()) / views[0][0]
			first, last := slices.Min(slices.Collect(maps.Keys(want)))/size, slices.Max(slices.Collect(maps.Keys(want)))/size
			if rows := g.AtomRows(g.Atoms(TaskID(task), 0)); rows != (Range{first, last + 1}) {
				t.Fatalf("seed %d: %v of shape %v is rows %v", seed, a.Box, g.Buffers[a.Buffer].Shape, rows)
			}
		}
	}
}

// TestAtomBoxesMerge: a 5×7 storage is cut into 3×3 cells by the middle box 1:3 × 2:5.
// All cells but the middle one are the rows above and below, and what lies beside it:
// merged along columns first these are 4 boxes.
func TestAtomBoxesMerge(t *testing.T) {
	b := NewBuilder("ring")
	a := b.Buffer(Buffer{Name: "a", Shape: []int{1, 5, 7}, Type: Float32})
	middle := b.Task(Task{Name: "middle", Accesses: []Access{{Region{a, Box{{0, 1}, {1, 3}, {2, 5}}}, Write}}})
	whole := b.Task(Task{Name: "whole", Accesses: []Access{{Region{a, nil}, Read}}})
	g := must.Get(b.Build())(t)
	hole := g.Atoms(middle, 0)[0]
	var ring []int32
	for _, atom := range g.Atoms(whole, 0) {
		if atom != hole {
			ring = append(ring, atom)
		}
	}
	shape, boxes := g.AtomBoxes(ring)
	want := []string{"0:1,0:1,0:7", "0:1,1:3,0:2", "0:1,1:3,5:7", "0:1,3:5,0:7"}
	if len(shape) != 3 || len(boxes) != len(want) {
		t.Fatalf("boxes %v of shape %v, want %v", boxes, shape, want)
	}
	for i := range want {
		if boxes[i].String() != want[i] {
			t.Errorf("box %d is %v, want %s", i, boxes[i], want[i])
		}
	}
}

func shuffled(rng *rand.Rand, atoms []int32) []int32 {
	all := append([]int32(nil), atoms...)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
