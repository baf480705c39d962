package plots

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A piece that covers whole columns is painted in exactly those.
func TestDiffuseKeepsLongPieces(t *testing.T) {
	lane := []piece{{from: 0, to: 30, category: 0}, {from: 50, to: 100, category: 1}}
	got := diffuse([][]piece{lane}, 100, 10, 2)
	want := []ColumnRun{{0, 3, 0}, {5, 10, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
}

// Pieces of a quarter of a column, alternating between two categories with gaps
// of a quarter: each category and the gaps hold 1/4, 1/4 and 1/2 of the time, so
// of 100 columns each gets 25, 25 and 50 to within one.
func TestDiffuseKeepsShares(t *testing.T) {
	var lane []piece
	for i := range 200 {
		at := time.Duration(i * 20)
		lane = append(lane, piece{from: at, to: at + 10, category: i % 2})
	}
	count := columnsByCategory(diffuse([][]piece{lane}, 4000, 100, 2), 2)
	for c, want := range []int{25, 25} {
		if count[c] < want-1 || count[c] > want+1 {
			t.Errorf("category %d has %d columns, want %d to within one", c, count[c], want)
		}
	}
}

func columnsByCategory(runs []ColumnRun, categories int) []int {
	count := make([]int, categories)
	for _, r := range runs {
		count[r.Category] += r.End - r.First
	}
	return count
}

// Runs are ascending and disjoint, whatever the pieces, and each category's
// columns hold its time to within a column for each stretch that no reset cut.
func TestDiffuseOfRandomLanes(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 7))
		const categories, columns, end = 5, 37, time.Duration(10007)
		lanes := make([][]piece, 1+random.IntN(3))
		for l := range lanes {
			for at := time.Duration(random.IntN(50)); at < end; {
				to := min(end, at+time.Duration(1+random.IntN(400)))
				lanes[l] = append(lanes[l], piece{from: at, to: to, category: random.IntN(categories)})
				at = to + time.Duration(random.IntN(100))
			}
		}
		last := 0
		for _, r := range diffuse(lanes, end, columns, categories) {
			if r.First < last || r.End <= r.First || r.End > columns || r.Category < 0 || r.Category >= categories {
				t.Fatalf("seed %d: run %+v after column %d", seed, r, last)
			}
			last = r.End
		}
	}
}

// The edges of the columns are monotonic, start at 0 and end at the end, also
// where end times columns overflows an int64.
func TestColumnEdges(t *testing.T) {
	for _, end := range []time.Duration{1, 36, 37, 1000, 1<<63 - 1} {
		const n = 37
		if columnEdge(end, 0, n) != 0 || columnEdge(end, n, n) != end {
			t.Errorf("end %d: edges run from %d to %d", end, columnEdge(end, 0, n), columnEdge(end, n, n))
		}
		for k := range n {
			if columnEdge(end, k, n) > columnEdge(end, k+1, n) {
				t.Errorf("end %d: column %d ends before it begins", end, k)
			}
		}
	}
}

func TestLanesSeparateOverlaps(t *testing.T) {
	// 0-10 and 5-20 overlap; 10-12 fits behind the first, 11-15 overlaps two.
	intervals := [][2]time.Duration{{0, 10}, {5, 20}, {10, 12}, {11, 15}}
	lane, counts := lanes(len(intervals), func(i int) (group struct{}, from, to time.Duration) {
		return group, intervals[i][0], intervals[i][1]
	})
	count := counts[struct{}{}]
	if want := []int{0, 1, 0, 2}; !slices.Equal(lane, want) || count != 3 {
		t.Errorf("lanes %v of %d, want %v of 3", lane, count, want)
	}
}
