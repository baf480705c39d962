package schedule

import (
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/naming"
	"dahl/platform"
)

// CheckGiven refuses costs in a graph for a device that the platform does not have. They would
// change nothing, and most are misspelt names. A kind without a device is allowed, since one
// graph may have costs for several machines.
func CheckGiven(g *dag.Graph, p *platform.Platform) error {
	known := []string{dag.AnyDevice}
	for _, k := range platform.Kinds() {
		known = append(known, k.Name)
	}
	for i := range p.Devices {
		known = append(known, p.Devices[i].Name)
	}
	for t := range g.Tasks {
		for _, c := range g.Tasks[t].Costs {
			if name, _, _ := dag.SplitCostKey(c.Key); !slices.Contains(known, name) {
				slices.Sort(known)
				return fmt.Errorf("task %q has a cost for %q, which is neither a device of platform %q nor a kind of devices; there are %s%s",
					g.Tasks[t].Name, name, p.Name, strings.Join(slices.Compact(known), ", "), naming.DidYouMean(name, known))
			}
		}
	}
	return nil
}
