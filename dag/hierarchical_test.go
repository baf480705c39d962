package dag

import (
	"fmt"
	"slices"
	"testing"

	"dahl/must"
)

// TestHierarchical runs the sums of nodes with several devices each, with numbers for buffers. Contributor i of n adds 2^i, so that a sum is 2^n - 1 only if it
// has each contribution once. Each row of the sum crosses from node to node as often as there are nodes less one, whether slices between nodes go by a ring (as many rows
// as devices) or by a tree (fewer), and also of a small sum, which goes in a tree alone. Devices without a contribution change nothing of that.
func TestHierarchical(t *testing.T) {
	for _, c := range []struct {
		nodes, perNode, rows, columns int
		without                       []int
	}{{2, 3, 7, 1 << 14, nil}, {2, 3, 5, 1 << 14, nil}, {3, 2, 11, 1 << 14, nil}, {5, 3, 4, 1 << 14, nil}, {3, 1, 5, 1 << 14, nil}, {1, 3, 5, 1 << 14, nil}, {3, 3, 13, 1 << 14, []int{0, 4}}, {3, 3, 5, 1 << 14, []int{0, 4}}, {2, 2, 5, 1 << 14, []int{2, 3}}, {2, 3, 5, 1, nil}, {5, 3, 4, 1, nil}, {3, 3, 5, 1, []int{0, 4}}} {
		n, words := c.nodes*c.perNode, fmt.Sprint(c)
		s := &Stage{Sum: Hierarchical, PerNode: c.perNode}
		b := NewBuilder("hierarchical")
		g := b.Buffer(Buffer{Name: "g", Shape: []int{c.rows, c.columns}, Type: Float32, Role: Gradient})
		all, nodes := 0, map[int]bool{}
		for i := range n {
			s.Devices = append(s.Devices, fmt.Sprint(i))
			if slices.Contains(c.without, i) {
				continue
			}
			all, nodes[i/c.perNode] = all|1<<i, true
			b.Task(Task{Name: fmt.Sprint("c", i), Accesses: []Access{{Region{g, nil}, Reduce}}, Placement: &Placement{Device: fmt.Sprint(i)}})
		}
		graph := must.Get(b.BuildExpanded(func(string) *Stage { return s }))(t)
		values, written := make([][]int, len(graph.Buffers)), make([][]int, len(graph.Buffers)) // by buffer and row; the node that wrote it
		for i := range values {
			values[i], written[i] = make([]int, c.rows), make([]int, c.rows)
		}
		crossings := 0
		for i := range graph.Tasks {
			task := &graph.Tasks[i]
			device := 0
			fmt.Sscan(task.Placement.Device, &device)
			to, rows := task.Accesses[0], Range{0, c.rows}
			if to.Box != nil {
				rows = to.Box[0]
			}
			for row := rows.Lo; row < rows.Hi; row++ {
				sum := 0
				if to.Mode == ReadWrite {
					sum = values[to.Buffer][row]
				}
				for _, a := range task.Accesses[1:] {
					sum += values[a.Buffer][row]
					if written[a.Buffer][row] != device/c.perNode {
						crossings++
					}
				}
				if len(task.Accesses) == 1 {
					fmt.Sscanf(task.Name, "c%d", &sum)
					sum = 1 << sum
				} else if to.Mode == ReadWrite && written[to.Buffer][row] != device/c.perNode {
					crossings++
				}
				values[to.Buffer][row], written[to.Buffer][row] = sum, device/c.perNode
			}
		}
		for row, sum := range values[g] {
			if sum != all {
				t.Errorf("%s: row %d is %b, want %b", words, row, sum, all)
			}
		}
		if want := c.rows * (len(nodes) - 1); crossings != want && c.without == nil {
			t.Errorf("%s: %d rows cross between nodes, want %d", words, crossings, want)
		}
	}
}
