package words

import (
	"strings"
	"testing"

	"dahl/energy"
	"dahl/plan"
)

// TestManyUnlikeNames: a row of many links with unlike names has the first and says that there are others.
func TestManyUnlikeNames(t *testing.T) {
	n := &plan.Nodes{Nodes: []plan.NodeUse{{Name: "n0"}, {Name: "n1"}}}
	for _, name := range []string{"nvlink", "pcie", "ib", "rail"} {
		n.Network = append(n.Network, plan.NetworkUse{Name: name, Basis: energy.Unavailable})
	}
	var out strings.Builder
	PrintNodes(&out, n)
	if text := out.String(); !strings.Contains(text, "nvlink and others ") || strings.Contains(text, "pcie") || !strings.Contains(text, "n0,n1") && !strings.Contains(text, "n0…n1") {
		t.Error(text)
	}
}
