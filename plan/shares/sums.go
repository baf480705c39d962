package shares

// Sum is a class of sums by their numbers of terms and accumulators.
type Sum struct {
	Terms        int // tiles that add to a result, at least
	Accumulators int // of a result, at least
	Adding       int // tiles that read an accumulator, at least
	// Late is the part of the time of all tiles of a result that a chain has in the mean, at least. It is the time of late tiles of blocks, with
	// the Part of the work.
	Late, Part float64
}

// A sum may be cut in terms. In the order of the program the terms of a result are cut in blocks, one for each accumulator. The first tile of a
// block writes its accumulator, and each other tile adds to it after the one before. Then operations "add" sum the accumulators up, one fewer
// than there are, and each chain has the last of them.
//
// A chain draws a term of a result with the probability of its share r of the sum. It has the tile of this term and all
// tiles behind it in its block. So it has a tile with the probability W of the result's, where W adds up r of the tile and of all tiles of
// its block before it. Weighted with r, W has a mean of half of the sum of the squares of all r and of the shares of all blocks. With R terms and A
// accumulators that is at least (1/A + 1/R)/2.
//
// Each tile of a result may run on another device. If a result has the share q of all, a tile takes λ·(fixed/q + (1 − r)·again + r·nanos) of units and
// W·μ·(fixed + q·r·nanos) of a chain. Here again is the time of the bytes of all results, where bytes decide how long tiles take, and else 0. Since W ≥ r, these costs
// are no less than costs that are linear in r. The least over devices of linear functions is concave. So it is no less than 1 − r times its value for r = 0, the least of λ·(fixed/q + again), and r times
// its value g(W) for r = 1. Likewise g(W) ≥ (1 − W/M)·g(0) + W/M·g(M) up to any M. So all tiles of a result take no less than R − 1 times the
// least of λ·(fixed/q + again), and (1 − Part)·g(0) + Part·g(M) with Part = Late/M. To read an accumulator takes another λ·again.
//
// A block has at most R/A + 1 terms. Terms along a side are equal but for the last one of each micro-batch, so that one has at most three times its part: W is at most
// M = 3^sides·(1/A + 1/R), and at most 1.

// termsOf and accumulatorsOf are the least numbers of the classes of each.
var termsOf, accumulatorsOf = []int{2, 3, 4, 5, 6, 7, 9, 13, 17, 33, 65, 129}, []int{1, 2, 3, 4, 5, 6, 7, 9, 13, 17, 33, 65, 129}

// sums are the classes of results that have several terms.
func (f *form) sums() (all []Sum) {
	extents, uneven := 1.0, 1.0
	for s, extent := range f.Sides {
		if f.Summed>>s&1 == 1 {
			extents, uneven = extents*float64(extent), 3*uneven
		}
	}
	for i, terms := range termsOf {
		most := extents
		if i+1 < len(termsOf) {
			most = min(most, float64(termsOf[i+1]-1))
		}
		for k, accumulators := range accumulatorsOf {
			mostAccumulators := most
			if k+1 < len(accumulatorsOf) {
				mostAccumulators = min(most, float64(accumulatorsOf[k+1]-1))
			}
			if float64(max(terms, accumulators)) <= most {
				least := max(terms, accumulators)
				late := (1/mostAccumulators + 1/most) / 2 * (1 - 1e-12)
				part := late / min(1, uneven*(1/float64(accumulators)+1/float64(least)))
				all = append(all, Sum{least, accumulators, int(max(0, float64(least)-mostAccumulators)), late, part * (1 - 1e-12)})
			}
		}
	}
	return all
}
