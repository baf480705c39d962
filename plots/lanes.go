package plots

import "time"

// lanes assigns intervals, ordered by start, to the first free lane, so that those of one lane do
// not overlap. It returns the lane of each interval and the number of lanes. This is the greedy
// colouring of an interval graph. It uses only as many lanes as intervals ever overlap.
func lanes(n int, interval func(i int) (from, to time.Duration)) (lane []int, count int) {
	lane = make([]int, n)
	var freeAt []time.Duration
	for i := range n {
		from, to := interval(i)
		k := 0
		for k < len(freeAt) && freeAt[k] > from {
			k++
		}
		if k == len(freeAt) {
			freeAt = append(freeAt, 0)
		}
		freeAt[k], lane[i] = to, k
	}
	return lane, len(freeAt)
}
