package strategy

import (
	"fmt"
	"maps"
	"strings"

	"dahl/dag"
	"dahl/naming"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// megatron is the product in which large language models are trained: t devices share each layer ([tensorParallel]), d rows of them have replicas and split the optimiser
// ([zero1]), and p such groups are a pipeline ([interleaved]). All devices of a group do the same, so that the lowering has the first device of each ([dag.Fold]). What a group
// exchanges is a task of this device, and nothing else runs on it meanwhile.
var megatron = Strategy{
	doc: schedule.Doc{
		Name: megatronName, Sentence: "weights in parts on tensor devices, replicas of these that split the optimiser, and a pipeline of such groups with some stages each; predicted by one device of each group",
		Paper: "V. Korthikanti et al., Reducing activation recomputation in large transformer models, MLSys 2023",
	},
	Arguments: []string{"tensor", "data", "pipeline", "stages-each", "micro-batches"}, Words: []string{wholePositions},
	Says: "(m·v + p - 1) times the slowest of v stages on each of p groups, for m micro-batches, with all exchanges of a group",
	split: func(n []int) Split {
		s := Split{Order: policy.OneForwardOneBackward.Doc().Name, Stages: n[2], Each: n[3], MicroBatches: n[4], Fold: dag.Fold{Tensor: n[0], Data: n[1]}}
		if s.Each > 1 {
			s.Order = policy.Interleaved.Doc().Name
		}
		return s
	},
}

// wholePositions is the word for [dag.Fold.Whole].
const megatronName, wholePositions = "megatron", "whole"

// foldedName is the name of a strategy with a fold.
func (s *Split) foldedName() string {
	text := fmt.Sprintf("%s:%dx%dx%dx%dx%d", megatronName, s.Fold.Tensor, s.Fold.Data, s.Stages, s.Each, s.MicroBatches)
	if s.Fold.Whole {
		text += ":" + wholePositions
	}
	return text + s.firsts()
}

// folded is the lowering of one device of each group of a fold. Stages have equally many of the blocks that the network repeats.
func (s *Split) folded(n *Network, seats []Seat) (l dag.Lowering, err error) {
	if l = n.Default; !n.Fixed {
		l = n.Whole(0)
	}
	l.Layers = maps.Clone(l.Layers)
	l.MicroBatches, l.Order, l.Fold = s.MicroBatches, s.Order, s.Fold
	from := s.From
	if blocks := n.blocks(); from == nil {
		stages := s.Stages * s.Each
		if len(blocks)%stages > 0 || len(blocks) < stages {
			return l, fmt.Errorf("%s of layers in %s; want as many in each, or %s and the first layers", naming.Count(len(blocks), "block"), naming.Count(stages, "stage"), At)
		}
		for i := 1; i < stages; i++ {
			from = append(from, blocks[i*len(blocks)/stages])
		}
	}
	for i, first := range append([]string{n.Layers[0].Name}, from...) {
		l.Stages = append(l.Stages, dag.Stage{From: first, Device: seats[i%s.Stages*s.Fold.Devices()].Name})
	}
	return l, nil
}

// blocks are the first layers of the blocks that a network repeats: of "h.0.ln_1", "h.0.attn", "h.1.ln_1" the first one and the last one.
func (n *Network) blocks() (firsts []string) {
	before := ""
	for i := range n.Layers {
		block := blockOf(n.Layers[i].Name)
		if block != before && block != "" {
			firsts = append(firsts, n.Layers[i].Name)
		}
		before = block
	}
	return firsts
}

// blockOf is the name of a layer up to its first number. Empty means that there is none.
func blockOf(layer string) string {
	words := strings.Split(layer, ".")
	for i, word := range words[:len(words)-1] {
		if strings.Trim(word, "0123456789") == "" && word != "" {
			return strings.Join(words[:i+1], ".")
		}
	}
	return ""
}
