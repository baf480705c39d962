package weights

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/nn/npz"
)

// TestSpellings: the names and shapes of a block as nanoGPT, a compiled nanoGPT, and both files of Hugging Face have them. The product of
// attention is square, and turned where the others are.
func TestSpellings(t *testing.T) {
	network := map[string][]int{
		"transformer.wte.weight": {7, 2}, "transformer.h.0.ln_1.weight": {2}, "transformer.h.0.attn.c_attn.weight": {6, 2},
		"transformer.h.0.attn.c_proj.weight": {2, 2}, "transformer.h.0.mlp.c_fc.weight": {8, 2}, "transformer.h.0.mlp.c_proj.weight": {2, 8},
	}
	for _, c := range []struct {
		spelling       Spelling
		compiled, bare bool
	}{
		{Spelling{}, false, false},
		{Spelling{Strip: compiledPrefix}, true, false},
		{Spelling{ByInput: true}, false, false},
		{Spelling{Prefix: gptPrefix, ByInput: true}, false, true},
	} {
		file := map[string][]int{}
		for name, shape := range network {
			if c.compiled {
				name = compiledPrefix + name
			}
			if c.bare {
				name = name[len(gptPrefix):]
			}
			if c.spelling.ByInput && len(shape) == 2 && name[len(name)-10:] != "wte.weight" {
				shape = []int{shape[1], shape[0]}
			}
			file[name] = shape
		}
		got := SpellingOf(file, network)
		if got != c.spelling {
			t.Errorf("%v is spelled %+v, want %+v", file, got, c.spelling)
		}
		read, turns := map[string][]int{}, 0
		for name, shape := range file {
			a := npz.Array{Name: name, Shape: shape}
			turned, err := got.Respell(&a, network)
			if err != nil {
				t.Error(err)
			}
			if turned {
				turns++
			}
			read[a.Name] = a.Shape
		}
		if !maps.EqualFunc(read, network, slices.Equal) || turns != map[bool]int{true: 4}[c.spelling.ByInput] {
			t.Errorf("%+v: read as %v, %d of them turned", got, read, turns)
		}
		if _, err := got.Respell(&npz.Array{Name: "h.0.attn.bias", Shape: []int{1, 1, 4, 4}}, network); !errors.Is(err, npz.ErrSkip) {
			t.Errorf("a mask is taken: %v", err)
		}
	}
}

// TestTranspose: 2×3 numbers become 3×2.
func TestTranspose(t *testing.T) {
	a := npz.NewArray("w", dag.Float64, []int{2, 3}, []float64{1, 2, 3, 4, 5, 6})
	a.Shape = []int{3, 2}
	if Transpose(&a); !slices.Equal(a.Float64s(), []float64{1, 4, 2, 5, 3, 6}) {
		t.Errorf("turned to %v", a.Float64s())
	}
}

// TestJoins: the queries, keys and values of a Llama and of a bare BERT are joined, of which 5 + 2 + 2 rows are 9. Other sums of rows are refused, and what a file lacks in part is not joined.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		prefix, layer string
		parts         [3]string
	}{
		{"model.layers.0", ".self_attn.qkv_proj.weight", [3]string{".self_attn.q_proj.weight", ".self_attn.k_proj.weight", ".self_attn.v_proj.weight"}},
		{"encoder.layer.3", ".attention.self.qkv.weight", [3]string{".attention.self.query.weight", ".attention.self.key.weight", ".attention.self.value.weight"}},
	} {
		for rows, want := range map[int]int{2: 1, 3: -1, 0: 0} { // of the values; 0 stands for none
			name, before := c.prefix+c.layer, ""
			if c.prefix[0] == 'e' {
				before = "bert."
			}
			network, file := map[string][]int{before + name: {9, 7}}, map[string][]int{}
			for i, n := range []int{5, 2, rows} {
				if n > 0 {
					file[c.prefix+c.parts[i]] = []int{n, 7}
				}
			}
			s := Spelling{Prefix: before}
			got, err := s.Joins(file, network)
			if (err != nil) != (want < 0) || len(got) != max(want, 0) || want == 1 && (len(got[before+name]) != 3 || network[before+c.prefix+c.parts[0]][0] != 5) {
				t.Errorf("%s with %d rows of values: %v, %v", name, rows, got, err)
			}
		}
	}
	parts := []*npz.Array{}
	for _, v := range []float64{1, 2, 3} {
		a := npz.NewArray("part", dag.Float32, []int{1, 2}, []float64{v, 10 * v})
		parts = append(parts, &a)
	}
	if a := Join("all", []int{3, 2}, parts...); !slices.Equal(a.Float64s(), []float64{1, 10, 2, 20, 3, 30}) {
		t.Errorf("joined to %v", a.Float64s())
	}
}
