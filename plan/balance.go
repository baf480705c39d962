package plan

import "math"

// Balance cuts a chain into parts so that the longest part takes the least time. Times are by element and by place; part k is in
// place k modulo their number. It returns the first element of each part, and nil where there are fewer elements than parts. Of equal cuts it
// takes the one that ends its first part earliest.
//
// The least maximum of k parts from element i on is, over all ends j of the first of these,
//
//	best(i, k) = min max(time of i to j, best(j, k - 1))
//
// which takes n²·p steps for n elements and p parts.
func Balance(times [][]float64, parts int) []int {
	n := len(times)
	if parts < 1 || n < parts {
		return nil
	}
	best, next := make([][]float64, parts+1), make([][]int, parts+1) // by number of parts left and first element
	for k := range best {
		best[k], next[k] = make([]float64, n+1), make([]int, n+1)
		for i := range best[k] {
			best[k][i] = math.Inf(1)
		}
	}
	best[0][n] = 0
	for k := 1; k <= parts; k++ {
		place := (parts - k) % len(times[0])
		for i := n - k; i >= 0; i-- {
			next[k][i] = i + 1
			sum := 0.0
			for j := i + 1; j <= n-k+1; j++ {
				sum += times[j-1][place]
				if longest := max(sum, best[k-1][j]); longest < best[k][i] {
					best[k][i], next[k][i] = longest, j
				}
			}
		}
	}
	var firsts []int
	for k, i := parts, 0; k > 0; k-- {
		firsts = append(firsts, i)
		i = next[k][i]
	}
	return firsts
}
