package plots

import "time"

// A lane of a picture has at most a few thousand columns, and a run has millions of tasks.
// Drawing each task would make files of hundreds of megabytes in which later bars hide earlier
// ones. So a lane with more pieces than its columns can show is painted column by column.
//
// Theory. Each column is painted in one colour. The claim of a category (a colour, or nothing) is
// the time that it spent inside the columns so far, less the columns painted in it. The next
// column goes to the category with the greatest claim. This is error diffusion (Floyd and
// Steinberg, 1976) in one dimension: every category gets its share of the columns to within one,
// and long pieces keep their place. A column that one category fills completely resets all
// claims, so no colour shows up far from its time.

// piece is a stretch of time of one category in one lane. Pieces of a lane are ordered by start
// and do not overlap.
type piece struct {
	from, to time.Duration
	category int
	text     string // drawn inside where it fits
}

// diffuse paints lanes that share one row onto columns of equal width between 0
// and end. Time that no piece covers belongs to no run.
func diffuse(lanes [][]piece, end time.Duration, columns, categories int) []ColumnRun {
	nothing := categories
	claims := make([]int64, categories+1)
	covered := make([]int64, categories+1)
	next := make([]int, len(lanes))
	var runs []ColumnRun
	for k := range columns {
		lo, hi := columnEdge(end, k, columns), columnEdge(end, k+1, columns)
		if lo == hi { // the picture has more columns than the run has nanoseconds
			continue
		}
		capacity := int64(hi-lo) * int64(len(lanes))
		clear(covered)
		covered[nothing] = capacity
		for l, lane := range lanes {
			for next[l] < len(lane) && lane[next[l]].from < hi {
				p := &lane[next[l]]
				if inside := int64(min(p.to, hi) - max(p.from, lo)); inside > 0 {
					covered[p.category] += inside
					covered[nothing] -= inside
				}
				if p.to > hi {
					break
				}
				next[l]++
			}
		}
		winner := claim(claims, covered, capacity)
		switch last := len(runs) - 1; {
		case winner == nothing:
		case last >= 0 && runs[last].End == k && runs[last].Category == winner:
			runs[last].End = k + 1
		default:
			runs = append(runs, ColumnRun{k, k + 1, winner})
		}
	}
	return runs
}

// claim adds the contents of a column to the claims and pays one column to the greatest.
func claim(claims, covered []int64, capacity int64) int {
	winner := 0
	for c := range claims {
		if covered[c] == capacity {
			clear(claims)
			return c
		}
		claims[c] += covered[c]
		if claims[c] > claims[winner] {
			winner = c
		}
	}
	claims[winner] -= capacity
	return winner
}

// columnEdge is the time at which column k of n begins. The quotient comes first, so that the
// product cannot overflow.
func columnEdge(end time.Duration, k, n int) time.Duration {
	q, r := end/time.Duration(n), end%time.Duration(n)
	return q*time.Duration(k) + r*time.Duration(k)/time.Duration(n)
}
