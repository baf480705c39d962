package dag

import (
	"fmt"
	"slices"
	"testing"

	"dahl/must"
)

// TestExchanges runs the sums of three devices with texts for numbers, for each slice of a region of 3×2¹⁴ numbers of four bytes, which is large enough. A contributor writes its name, an addition puts its
// source in parentheses, and the place of the task comes behind the sum. Device 1 has two contributors, of one accumulator. The region has the sum of device 0 at first.
func TestExchanges(t *testing.T) {
	for _, c := range []struct {
		sum  Exchange
		want [3]string // by slice
	}{
		// Slice k begins with device k, which adds the parts of k + 1 and k + 2. The last of these additions writes the region, or adds to it.
		{Direct, [3]string{"c0+(c1+c3)@0+(c2)@0", "c0+(c1+c3+(c2)@1)@1", "(c1+c3)+(c2+(c0)@2)@2"}},
		// It goes from device k + 1 to k + 2 and then to k.
		{Ring, [3]string{"c0+(c2+(c1+c3)@2)@0", "c0+(c2)@0+(c1+c3)@1", "(c2)+(c1+c3+(c0)@1)@2"}},
		{Tree, [3]string{"c0+(c1+c3)@0+(c2)@0", "c0+(c1+c3)@0+(c2)@0", "c0+(c1+c3)@0+(c2)@0"}},
	} {
		s := &Stage{Devices: []string{"0", "1", "2"}, Sum: c.sum}
		b := NewBuilder("exchange")
		g := b.Buffer(Buffer{Name: "g", Shape: []int{3, 1 << 14}, Type: Float32, Role: Gradient})
		for i, device := range []string{"0", "1", "2", "1"} {
			b.Task(Task{Name: fmt.Sprint("c", i), Accesses: []Access{{Region{g, nil}, Reduce}}, Placement: &Placement{Device: device}})
		}
		graph := must.Get(b.BuildExpanded(func(string) *Stage { return s }))(t)
		values := map[BufferID]*[3]string{}
		for i := range graph.Buffers {
			values[BufferID(i)] = &[3]string{}
		}
		for i := range graph.Tasks {
			task := &graph.Tasks[i]
			for slice := range 3 {
				a := task.Accesses
				if box := a[0].Box; box != nil && !slices.Contains([]Range{{slice, slice + 1}, {0, 3}}, box[0]) {
					continue
				}
				to, at := &values[a[0].Buffer][slice], "@"+task.Placement.Device
				switch {
				case len(a) == 1 && a[0].Mode == Write:
					*to = task.Name
				case len(a) == 1:
					*to += "+" + task.Name
				case task.Op == "add":
					*to += "+(" + values[a[1].Buffer][slice] + ")" + at
				default:
					*to = "(" + values[a[1].Buffer][slice] + ")+(" + values[a[2].Buffer][slice] + ")" + at
				}
			}
		}
		if *values[g] != c.want {
			t.Errorf("%v: %q, want %q", c.sum, *values[g], c.want)
		}
	}
}

// TestSharesOfDevices: the shares of n devices cover an extent one after the other, and differ by one at most.
func TestSharesOfDevices(t *testing.T) {
	for extent := 1; extent < 20; extent++ {
		for n := 1; n < 9; n++ {
			at := 0
			for k := range n {
				r := ShareOf(k, extent, n)
				if r.Lo != at || r.Len() < extent/n || r.Len() > (extent+n-1)/n {
					t.Fatalf("share %d of %d devices in %d is %v, and begins at %d", k, n, extent, r, at)
				}
				at = r.Hi
			}
			if at != extent {
				t.Fatalf("%d devices have %d elements of %d", n, at, extent)
			}
		}
	}
}
