package words

import (
	"fmt"
	"io"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/energy"
	"dahl/naming"
	"dahl/plan"
)

// maxNodeRows bounds the printed rows of nodes, and the printed rows of the network. The summary has all.
const maxNodeRows = 16

// PrintNodes prints the work of each node, and the joules of the network between nodes. Neighbours with equal numbers share a row,
// such as n0…n7. It prints nothing for one machine.
func PrintNodes(out io.Writer, n *plan.Nodes) {
	if n == nil {
		return
	}
	fmt.Fprintf(out, "\n%-14s %11s %10s %8s %10s %10s %10s\n", "node", "workers", "tasks/step", "busy", "in/step", "out/step", "J/step")
	printRows(out, len(n.Nodes), func(i int) (name, cells string) {
		u := &n.Nodes[i]
		return u.Name, fmt.Sprintf("%11s %10s %8s %10s %10s %10s", fmt.Sprintf("%d of %d", u.Workers, u.Of), cli.ThreeDigits(u.Tasks), cli.ShowShare(u.Busy),
			cli.ShortBytes(int64(u.InBytes)), cli.ShortBytes(int64(u.OutBytes)), joulesText(u.Joules, u.Basis))
	})
	if len(n.Network) > 0 {
		fmt.Fprintf(out, "%-45s %10s %21s\n", "switch, or link between nodes", "bytes/step", "J/step")
		printRows(out, len(n.Network), func(i int) (name, cells string) {
			u := &n.Network[i]
			return u.Name, fmt.Sprintf("%41s %21s", cli.ShortBytes(int64(u.Bytes)), joulesText(u.Joules, u.Basis))
		})
	}
}

// maxFolded bounds the ranges of names in a row.
const maxFolded = 3

// printRows prints n rows of a name and its cells. Neighbours with equal cells share a row.
func printRows(out io.Writer, n int, row func(i int) (name, cells string)) {
	for i, printed := 0, 0; i < n; printed++ {
		if printed == maxNodeRows {
			fmt.Fprintf(out, "and %s more: %s has all\n", naming.Thousands(n-i), record.SummaryFile)
			return
		}
		first, cells := row(i)
		names := []string{first}
		for i++; i < n; i++ {
			name, same := row(i)
			if same != cells {
				break
			}
			names = append(names, name)
		}
		folded := naming.Folded(names, 1, "…")
		if len(folded) > maxFolded {
			folded = []string{folded[0] + " and others"}
		}
		fmt.Fprintf(out, "%-14s %s\n", strings.Join(folded, ","), cells)
	}
}

func joulesText(joules float64, basis energy.Basis) string {
	if basis == energy.Unavailable {
		return "-"
	}
	return cli.ShortJoules(joules)
}
