package data

import (
	"math"

	"dahl/nn/random"
)

// InOrder fills order with 0, 1, 2, …, the order of the data.
func InOrder(order []int32) {
	for i := range order {
		order[i] = int32(i)
	}
}

// Shuffle fills order with the permutation of 0 … len(order)-1 that belongs to the seed and the
// epoch. It is the Fisher–Yates shuffle (Durstenfeld, CACM 7, 1964) with draws from a
// counter-based stream per epoch. So any epoch can be computed without those before it.
func Shuffle(order []int32, seed uint64, epoch int) {
	InOrder(order)
	// The epoch is mixed into the key's upper half by its own stream. So the streams of seed s,
	// epoch e+1 and of seed s+1, epoch e differ.
	s := random.NewStream(random.NewStream(seed, "epoch").Uint64(uint64(epoch)), "shuffle")
	for i := len(order) - 1; i > 0; i-- {
		j := s.Below(uint64(i), uint64(i)+1)
		order[i], order[j] = order[j], order[i]
	}
}

// Shuffle fills order with the samples of an epoch, as the function of that name has them. Parts of a text begin at
// other characters in each epoch.
func (d *Dataset) Shuffle(order []int32, seed uint64, epoch int) {
	Shuffle(order, seed, epoch)
	if d.OnlyRead() {
		round := int32(epoch % (math.MaxInt32 / d.Len()))
		for i := range order {
			order[i] += round * int32(d.Len())
		}
	}
}

// BatchCount is the number of batches of at most batch samples that n samples
// make; the last may be short.
func BatchCount(n, batch int) int {
	if batch < 1 {
		panic("data: a batch has at least one sample")
	}
	return (n + batch - 1) / batch
}

// Batch returns the indices of the samples of batch k, a part of order.
func Batch(order []int32, batch, k int) []int32 {
	lo := k * batch
	return order[lo:min(lo+batch, len(order))]
}
