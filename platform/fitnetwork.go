package platform

import (
	"math"
	"slices"

	"dahl/platform/fit"
)

// MeasuredWay is how long copies take between two memories, both ways alike.
type MeasuredWay struct {
	From, To MemoryID
	Fit      fit.Copies
}

// WithWays returns a platform on whose links measured ways take as long as their fits say. The links of a way keep their proportions:
// their latencies are multiplied by one number, and their bandwidths by another one. Where the file gives a way no latency, its wires
// share the measured one evenly. A link of several ways gets the median. Links of no way stay as they are, and so does the bandwidth of a
// switch that is not the slowest part of a way.
func (p *Platform) WithWays(ways []MeasuredWay) (*Platform, error) {
	latencies, speeds := make([][]float64, len(p.Links)), make([][]float64, len(p.Links))
	for _, w := range ways {
		way := p.path(w.From, w.To)
		links := slices.DeleteFunc(slices.Clone(way.links), func(l LinkID) bool { return way.latency == 0 && p.Links[l].Switch })
		for _, l := range links {
			latency := float64(w.Fit.Latency) / float64(len(links))
			if way.latency > 0 {
				latency = float64(w.Fit.Latency) * (float64(p.Links[l].Latency) / float64(way.latency))
			}
			latencies[l] = append(latencies[l], latency)
			if math.IsInf(w.Fit.BytesPerSec, 1) {
				continue
			}
			faster, own := w.Fit.BytesPerSec/way.bytesPerSec, p.Links[l].BandwidthBytesPerSec
			if p.Links[l].Switch && own > way.bytesPerSec {
				faster = max(faster, 1) // all of its flows together are not what was measured
			}
			speeds[l] = append(speeds[l], own*faster)
		}
	}
	q := *p
	q.Links = slices.Clone(p.Links)
	for l := range q.Links {
		if n := len(latencies[l]); n > 0 {
			slices.Sort(latencies[l])
			q.Links[l].Latency = roundUpNs(latencies[l][n/2])
		}
		if n := len(speeds[l]); n > 0 {
			slices.Sort(speeds[l])
			q.Links[l].BandwidthBytesPerSec = speeds[l][n/2]
		}
	}
	return &q, q.Complete()
}
