package certificate

import (
	"slices"
	"testing"
)

// TestSpread is the worked example of spread.go: a, four tasks of 4 ns and b on two memories that are 10 ns apart, one
// unit each. With more units at the memories the four run side by side, and one way remains. If only the
// second memory can run the four, all of them have to follow each other there, and data go there and back.
func TestSpread(t *testing.T) {
	move := []int64{10, 10}
	make4 := func(units float64, nanos ...int64) *spread {
		s := &spread{units: []float64{units, units}, nodes: []spreadNode{{nanos: []int64{0, 0}}}}
		end := spreadNode{nanos: []int64{0, 0}}
		for i := range int32(4) {
			s.nodes = append(s.nodes, spreadNode{nanos, []spreadEdge{{0, move}}})
			end.before = append(end.before, spreadEdge{i + 1, move})
		}
		s.nodes = append(s.nodes, end)
		s.weigh()
		if !s.fill() {
			t.Fatal("there are too many tasks")
		}
		return s
	}
	for _, c := range []struct {
		name  string
		units float64
		nanos []int64
		want  []int64 // by memory of a, then of b
	}{
		{"one unit each", 1, []int64{4, 4}, []int64{16, 18, 18, 16}},
		{"four units each", 4, []int64{4, 4}, []int64{4, 14, 14, 4}},
		// From the first memory there and back 20 ns, from one to the other 10.
		{"only at the second", 1, []int64{nowhere, 4}, []int64{36, 26, 26, 16}},
		// The second is twice as fast, so that its time counts twice: the four are 16. With a and b at the first it has
		// none up to 20. With one at each, 3·(length − 10) are 16, and with both at the second 2·length.
		{"twice as fast", 1, []int64{4, 2}, []int64{16, 15, 15, 8}},
	} {
		s := make4(c.units, c.nanos...)
		got := s.distance[5][0]
		for i := range got { // areas are rounded down
			if got[i] != c.want[i] && got[i] != c.want[i]-1 {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
		if slices.Contains(got, nowhere) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
