package weights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dahl/nn/npz"
)

// joined are dense layers of dahl, each with the layers of Hugging Face's models whose rows it has, one behind the other: of BERT, of Llama and of ViT.
var joined = map[string][3]string{
	".attention.self.qkv.":      {".attention.self.query.", ".attention.self.key.", ".attention.self.value."},
	".attention.attention.qkv.": {".attention.attention.query.", ".attention.attention.key.", ".attention.attention.value."},
	".self_attn.qkv_proj.":      {".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj."},
}

// Joins lists the parameters of a network that a file has in parts, with the names of these. Both have shapes by name. The shapes of the parts are added to the network's.
func (s *Spelling) Joins(file, network map[string][]int) (map[string][]string, error) {
	inFile := map[string][]int{}
	for name, shape := range file {
		inFile[s.name(name)] = shape
	}
	all := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(network)) {
		for layer, of := range joined {
			if !strings.Contains(name, layer) || inFile[name] != nil {
				continue
			}
			rows, parts := 0, []string(nil)
			for _, part := range of {
				part = strings.Replace(name, layer, part, 1)
				shape := inFile[part]
				if len(shape) == 0 || !slices.Equal(shape[1:], network[name][1:]) {
					parts = nil
					break
				}
				rows, parts = rows+shape[0], append(parts, part)
			}
			if parts == nil {
				continue
			}
			if want := network[name][0]; rows != want {
				return nil, fmt.Errorf("arrays %s have %d rows together, parameter %s has %d", strings.Join(parts, ", "), rows, name, want)
			}
			for _, part := range parts {
				network[part] = inFile[part]
			}
			all[name] = parts
		}
	}
	return all, nil
}

// Join puts the rows of arrays behind each other.
func Join(name string, shape []int, parts ...*npz.Array) *npz.Array {
	a := npz.Array{Name: name, Type: parts[0].Type, Shape: shape}
	for _, p := range parts {
		a.Data = append(a.Data, p.Data...)
	}
	return &a
}
