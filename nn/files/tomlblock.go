package files

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dahl/nn"
	"dahl/nn/layers"
	"dahl/platform/tomlfile"
)

// A model file may give layers that occur again and again a name, in [[block]]: a kind, the keys that differ from use to
// use, and layers. A layer of that kind stands for these layers. Their names have the use's in front, as in
// "layer1.0.conv1". A text in the place of a number is a key of the block. Inputs are names within the block, or "input", what the use
// reads, and weights_of is a name within the block; and later layers read the last layer of a use by the use's name. A use with repeat = 3 stands for
// three in a row, of which each reads the one before it. The names of their layers begin with "NAME.0", "NAME.1" and "NAME.2".

// maxBlockLayers bounds what a short file with blocks may stand for.
const maxBlockLayers = 1 << 14

const repeatKey = "repeat"

// layerBlock is a [[block]].
type layerBlock struct {
	kind   string
	keys   []string
	layers []*tomlfile.Table
}

// layerReader lists the layers of a file.
type layerReader struct {
	blocks []layerBlock
	layers []nn.Layer
	from   []string          // by layer: the path of its table
	ends   map[string]string // by name of a block's use: the name of its last layer
}

// blocksOf reads all [[block]].
func blocksOf(root *tomlfile.Table) (all []layerBlock) {
	for _, t := range root.Tables("block") {
		t.Need("kind", `"basic"`)
		b := layerBlock{kind: t.Text("kind"), keys: t.Texts("keys"), layers: t.Tables("layer")}
		_, err := layers.ByName(b.kind)
		taken := slices.ContainsFunc(all, func(other layerBlock) bool { return other.kind == b.kind })
		switch {
		case err == nil || taken:
			t.Fail("kind", b.kind, "is a kind of layer already; write another")
		case len(b.layers) == 0:
			t.File.FailAt(t.Path, t.Owner, "layer is missing; write layers, { kind = …, name = … }")
		}
		for _, key := range b.keys {
			if slices.Contains([]string{"kind", "name", "input", repeatKey}, key) {
				t.Fail("keys", key, "every layer has it; write another")
			}
		}
		t.Done("kind, keys, layer")
		all = append(all, b)
	}
	return all
}

// read adds the layer of a table, or the layers that it stands for.
func (r *layerReader) read(t *tomlfile.Table) {
	kind, _ := t.Keys["kind"].(string)
	if i := slices.IndexFunc(r.blocks, func(b layerBlock) bool { return b.kind == kind && kind != "" }); i >= 0 {
		r.use(&r.blocks[i], t)
		return
	}
	layer := layerOf(t, r.blocks)
	if n, ok := layer.(nn.Named); ok {
		for i, name := range n.Inputs {
			if end, used := r.ends[name]; used {
				n.Inputs[i] = end
			}
		}
	}
	r.add(layer, t.Path)
}

func (r *layerReader) add(l nn.Layer, path string) {
	r.layers, r.from = append(r.layers, l), append(r.from, path)
}

// use adds the layers of a block.
func (r *layerReader) use(b *layerBlock, t *tomlfile.Table) {
	t.Take("kind")
	t.Need("name", `"layer1"`)
	name, input, values := t.Text("name"), r.inputOf(t), map[string]any{}
	for _, key := range b.keys {
		t.Need(key, "a value for the block")
		values[key], _ = t.Take(key)
	}
	_, repeats := t.Keys[repeatKey]
	times := t.Count(repeatKey, 1, maxBlockLayers, 1)
	t.Done(strings.Join(append([]string{"kind, name, input, " + repeatKey}, b.keys...), ", "))
	for i := range times {
		of := name
		if repeats {
			of = fmt.Sprintf("%s.%d", name, i)
		}
		last := r.once(b, t, of, input, values)
		if t.File.Err != nil {
			return
		}
		input = last
	}
	if r.ends == nil {
		r.ends = map[string]string{}
	}
	r.ends[name] = input
}

// once adds the layers of a block a single time, and returns the name of the last one.
func (r *layerReader) once(b *layerBlock, t *tomlfile.Table, name, input string, values map[string]any) (last string) {
	for _, from := range b.layers {
		own := &tomlfile.Table{File: from.File, Path: from.Path, Owner: t.Owner + ": " + from.Owner, Keys: maps.Clone(from.Keys)}
		own.Need("name", `"conv1"`)
		for key, v := range own.Keys {
			if text, isText := v.(string); isText && !slices.Contains([]string{"kind", "name", nn.WeightsOf}, key) && slices.Contains(b.keys, text) {
				own.Keys[key] = values[text]
			}
		}
		n, ok := layerOf(own, nil).(nn.Named)
		if len(r.layers) == maxBlockLayers {
			t.File.FailAt(t.Path, t.Owner, fmt.Sprintf("more than %d layers with those of blocks", maxBlockLayers))
		}
		if !ok || t.File.Err != nil {
			return ""
		}
		n.Name = name + "." + n.Name
		if n.Inputs == nil && last == "" {
			n.Inputs = []string{input}
		} else {
			n.Inputs = slices.Clone(n.Inputs)
			for i, of := range n.Inputs {
				if n.Inputs[i] = name + "." + of; of == nn.InputName {
					n.Inputs[i] = input
				}
			}
		}
		for i := range n.Shares {
			n.Shares[i] = name + "." + n.Shares[i]
		}
		last = n.Name
		r.add(n, from.Path)
	}
	return last
}

// inputOf is the name of what a block's use reads: the layer that it names, or the one before it.
func (r *layerReader) inputOf(t *tomlfile.Table) string {
	name := nn.InputName
	if _, named := t.Keys["input"]; named {
		inputs := t.Texts("input")
		if len(inputs) != 1 {
			t.Fail("input", inputs, "want one name; a block reads one layer")
			return ""
		}
		name = inputs[0]
	} else if before := len(r.layers) - 1; before >= 0 {
		n, _ := r.layers[before].(nn.Named)
		if name = n.Name; name == "" {
			t.File.FailAt(t.Path, t.Owner, `the layer before it has no name; write one there, or write input = ["…"]`)
		}
	}
	if end, used := r.ends[name]; used {
		return end
	}
	return name
}
