package strategy

import (
	"slices"

	"dahl/dag"
)

// shareBySpeed divides the samples of a stage among unlike devices, so that the slowest one takes the least time by the times of layers. Devices that take equally
// long keep equal parts.
func (s *Split) shareBySpeed(n *Network, l *dag.Lowering, seats []Seat) error {
	if s.Devices < 2 || s.Replicas > 1 || s.Images != dag.AlongSamples {
		return nil
	}
	alone := *l
	alone.Stages, alone.Stash = nil, false
	layers, times, err := n.Times(alone, seats)
	if err != nil {
		return err
	}
	samples := max(1, n.Batch/max(1, s.MicroBatches)) // of a micro-batch
	seatOf := map[string]int{}
	for i := range seats {
		seatOf[seats[i].Name] = i
	}
	at := -1
	for i := range l.Stages {
		stage := &l.Stages[i]
		seconds := make([]float64, len(stage.Devices))
		for first := at + 1; first < len(layers) && (i+1 == len(l.Stages) || layers[first] != l.Stages[i+1].From); first++ {
			at = first
			for k, device := range stage.Devices {
				seconds[k] += times[first][seatOf[device]]
			}
		}
		if stage.Along == dag.AlongSamples && len(seconds) > 1 && slices.Min(seconds) < slices.Max(seconds) {
			stage.Shares = sharesOfSamples(seconds, samples)
		}
	}
	return nil
}

// sharesOfSamples gives each device a number of samples, at least one, so that the greatest product with its seconds is least. Nil means that there are fewer samples
// than devices.
func sharesOfSamples(seconds []float64, samples int) []int {
	if samples < len(seconds) {
		return nil
	}
	shares := slices.Repeat([]int{1}, len(seconds))
	for range samples - len(seconds) {
		next := 0
		for k := range shares {
			if float64(shares[k]+1)*seconds[k] < float64(shares[next]+1)*seconds[next] {
				next = k
			}
		}
		shares[next]++
	}
	return shares
}
