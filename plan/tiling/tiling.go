package tiling

import (
	"cmp"
	"encoding/binary"
	"slices"

	"dahl/dag"
)

// Tiling says how the layers of a network are cut: all of them in one way, and some numbers of single layers otherwise.
// Tilings are comparable. The zero Tiling belongs to a program without a network.
type Tiling struct {
	Base
	changes changes
}

// Base is one way to cut all layers.
type Base struct {
	Kind Kind
	// Number is the samples per task of [Network.Layer], or the number of parts.
	Number int
	Along  dag.Dimension // of parts
	// WholeSums leaves the weight gradients whole that are so in the default, instead of
	// splitting them like their layers: a split sum has its parts at once, and the task of a whole sum can subtract it from the weights.
	WholeSums bool
}

// Kind is a kind of ways to cut all layers.
type Kind uint8

// The kinds. Zero means that there is nothing to cut.
const (
	Default Kind = 1 + iota // what the devices suggest
	Whole                   // a task for all samples of a layer
	Samples                 // samples per task
	Parts                   // layers in parts along a dimension, for as many devices with memories of their own
)

// Of is the tiling that cuts all layers in one way.
func Of(b Base) Tiling { return Tiling{Base: b} }

// InParts is the tiling with layers in a number of parts along a dimension.
func InParts(number int, along dag.Dimension) Tiling {
	return Of(Base{Kind: Parts, Number: number, Along: along})
}

// change is a number in which a tiling differs from its base.
type change struct {
	layer string // "" means a number of the network as a whole
	number
	value int // zero means all
}

// changes are a list in the order of layers and numbers, packed so that it can be compared.
type changes string

func pack(all []change) changes {
	var b []byte
	for _, c := range all {
		b = binary.AppendUvarint(b, uint64(len(c.layer)))
		b = append(b, c.layer...)
		b = append(b, byte(c.pass), byte(c.of))
		b = binary.AppendUvarint(b, uint64(c.value))
	}
	return changes(b)
}

func (cs changes) list() (all []change) {
	for rest := []byte(cs); len(rest) > 0; {
		length, n := binary.Uvarint(rest)
		end := n + int(length)
		c := change{layer: string(rest[n:end]), number: number{dag.Pass(rest[end]), dag.Dimension(rest[end+1])}}
		value, n := binary.Uvarint(rest[end+2:])
		c.value = int(value)
		all, rest = append(all, c), rest[end+2+n:]
	}
	return all
}

// with is the tiling with other changes of a layer than it has, in the order of numbers.
func (t Tiling) with(layer string, of []change) Tiling {
	all := t.changes.list()
	from, found := slices.BinarySearchFunc(all, layer, func(c change, layer string) int { return cmp.Compare(c.layer, layer) })
	to := from
	for found && to < len(all) && all[to].layer == layer {
		to++
	}
	t.changes = pack(slices.Replace(all, from, to, of...))
	return t
}
