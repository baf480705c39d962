package strategy

import "fmt"

// set is a set of parts, a bit each.
type set []uint64

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s set) within(t set) bool {
	for i := range s {
		if s[i]&^t[i] != 0 {
			return false
		}
	}
	return true
}

// mostIdeals bounds the ideals of a network.
const mostIdeals = 20_000

// ideals lists the sets of parts that contain all predecessors of their parts, the empty one first, none behind a larger one. The stages of a pipeline
// are differences of such sets.
func (n *network) ideals() ([]set, error) {
	words := (len(n.parts) + 63) / 64
	all := []set{make(set, words)}
	for first := 0; first < len(all); {
		known, end := map[string]bool{}, len(all)
		for _, ideal := range all[first:end] { // all of one size
			for i := range n.parts {
				if ideal.has(i) || !n.follows(i, ideal) {
					continue
				}
				larger := append(set(nil), ideal...)
				larger[i/64] |= 1 << (i % 64)
				if key := fmt.Sprint(larger); !known[key] {
					known[key] = true
					all = append(all, larger)
				}
			}
		}
		if first = end; len(all) > mostIdeals {
			return nil, fmt.Errorf("the layers can be cut into stages in more than %d ways, too many to look at all", mostIdeals)
		}
	}
	return all, nil
}

// follows reports whether a set has all that a part follows.
func (n *network) follows(of int, s set) bool {
	for _, before := range n.parts[of].before {
		if !s.has(before) {
			return false
		}
	}
	return true
}
