package tiling

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
)

// The numbers of the network as a whole, in the order of texts, before numbers of layers: "whole; 2 micro-batches; joined loss". They
// stand in the place of a dimension, and zero is never said.
const (
	microBatches dag.Dimension = iota
	joinedLoss                 // 1
	recomputed                 // how many of the layers that may be
)

// numNetwork is how many there are.
const numNetwork = recomputed + 1

func (c *change) networkText() string {
	switch c.of {
	case microBatches:
		return fmt.Sprint(c.value, " micro-batches")
	case recomputed:
		return counted(c.value, "recomputed layer")
	}
	return "joined loss"
}

func parseNetworkChange(text string) (c change, ok bool) {
	digits, _, _ := strings.Cut(text, " ")
	value, err := strconv.Atoi(digits)
	if err != nil {
		value = 1
	}
	for of := range numNetwork {
		if c = (change{number: number{of: of}, value: value}); c.networkText() == text {
			return c, true
		}
	}
	return c, false
}

// mostOf is the greatest number of the network as a whole.
func (n *Network) mostOf(of dag.Dimension) int {
	switch {
	case of == microBatches:
		return n.Batch
	case of == recomputed:
		return len(n.Recomputable)
	case n.JoinsLoss:
		return 1
	}
	return 0
}

// changeNetwork gives the network as a whole a number.
func (n *Network) changeNetwork(l *dag.Lowering, c *change) error {
	least := 1
	if c.of == microBatches {
		least = 2
	}
	if c.value < least || c.value > n.mostOf(c.of) {
		return fmt.Errorf("a network with a batch of %d cannot have %s", n.Batch, c)
	}
	switch c.of {
	case microBatches:
		l.MicroBatches = c.value
	case joinedLoss:
		l.JoinLoss = true
	case recomputed:
		l.Recompute = n.Recomputable[:c.value]
	}
	return nil
}

// ofNetwork are the numbers of the network as a whole.
func (t Tiling) ofNetwork() (all []change) {
	for _, c := range t.changes.list() {
		if c.layer == "" {
			all = append(all, c)
		}
	}
	return all
}

// OfNetwork is the text of the numbers of the network as a whole, as in "joined loss; 48 recomputed layers"; empty where it has none.
func (t Tiling) OfNetwork() string {
	var texts []string
	for _, c := range t.ofNetwork() {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, separator)
}

// withNetwork is the tiling with another number of the network as a whole; zero, or one micro-batch, is not said.
func (t Tiling) withNetwork(of dag.Dimension, value int) Tiling {
	all := slices.DeleteFunc(t.ofNetwork(), func(c change) bool { return c.of == of })
	if value > 1 || value == 1 && of != microBatches {
		all = append(all, change{number: number{of: of}, value: value})
	}
	slices.SortFunc(all, func(a, b change) int { return int(a.of - b.of) })
	return t.with("", all)
}

// wholeNetwork adds the tilings with half or twice a number of the network as a whole. A joined loss and recomputation save bytes alone, so
// that only tilings with one of them have such neighbours. Recomputation begins with an eighth of the layers.
func (n *neighbours) wholeNetwork() {
	have := []int{microBatches: max(n.lowering.MicroBatches, 1), joinedLoss: 0, recomputed: len(n.lowering.Recompute)}
	if !n.lowering.JoinLoss && len(n.lowering.Recompute) == 0 {
		have = have[:microBatches+1]
	}
	for of, value := range have {
		most := n.mostOf(dag.Dimension(of))
		values := []int{value / 2, 2 * value}
		switch {
		case dag.Dimension(of) == joinedLoss && n.lowering.JoinLoss:
			values = []int{0}
		case dag.Dimension(of) == joinedLoss:
			values = []int{1}
		case value == 0:
			values = []int{dag.CeilDiv(most, eighth)}
		}
		for _, to := range values {
			if to <= most {
				n.all = append(n.all, n.tiling.withNetwork(dag.Dimension(of), to))
			}
		}
	}
	n.all = slices.DeleteFunc(n.all, func(t Tiling) bool { return t == n.tiling })
}

// eighth divides the recomputable layers, of which a search tries an eighth, a quarter, a half or all.
const eighth = 8

// Smaller lists tilings like one with fewer bytes to keep, those with the least work to do again first: the loss joined with the last layer, some layers
// recomputed, both, and then in ever more micro-batches. It lists none of a tiling that has such a number.
func (n *Network) Smaller(t Tiling) (all []Tiling) {
	if t.Kind == 0 || len(t.ofNetwork()) > 0 {
		return nil
	}
	add := func(of Tiling) {
		if of != t && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	add(t.withNetwork(joinedLoss, n.mostOf(joinedLoss)))
	least := t
	for parts := eighth; parts > 0; parts /= 2 {
		least = t.withNetwork(recomputed, dag.CeilDiv(len(n.Recomputable), parts))
		add(least)
	}
	least = least.withNetwork(joinedLoss, n.mostOf(joinedLoss))
	add(least)
	for micro := 2; micro <= n.Batch; micro *= 2 {
		add(least.withNetwork(microBatches, micro))
	}
	return all
}
