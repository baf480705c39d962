package problem

import "dahl/platform"

// Way is how bytes go from one memory to another.
type Way struct {
	PassesHost    bool    // they go by way of the host's memory
	JoulesPerByte float64 // above the power of idle links
	LatencyNs     int64
	Engine        int32   // copy engines that they need: 2m into memory m, 2m + 1 out of it; -1 means none
	Shares        []Share // links whose bandwidth copies share

	platform *platform.Platform
	from, to platform.MemoryID
}

// Share is a link, by direction, and for how long a byte keeps it busy.
type Share struct {
	Link      int32
	NsPerByte float64
}

// Takes is how long bytes take that have all links for themselves.
func (w *Way) Takes(bytes int64) int64 { return int64(w.platform.RouteTime(w.from, w.to, bytes)) }

func newWays(p *platform.Platform) (all [][]Way) {
	for from := range platform.MemoryID(len(p.Memories)) {
		row := make([]Way, len(p.Memories))
		for to := range platform.MemoryID(len(row)) {
			w := Way{Engine: engine(p, from, to), PassesHost: p.Passes(from, to, p.HostMemory()), JoulesPerByte: p.RouteJoulesPerByte(from, to), LatencyNs: int64(p.RouteTime(from, to, 0)), platform: p, from: from, to: to}
			for _, use := range p.LinkUses(from, to) {
				if l := &p.Links[use.Link]; l.Sharing != platform.Fatpipe {
					w.Shares = append(w.Shares, Share{2*int32(use.Link) + use.Direction, float64(use.Times) * 1e9 / l.BandwidthBytesPerSec})
				}
			}
			row[to] = w
		}
		all = append(all, row)
	}
	return all
}

func engine(p *platform.Platform, from, to platform.MemoryID) int32 {
	switch in, out := p.EnginesTaken(from, to); {
	case in && from != to:
		return 2 * int32(to)
	case out && from != to:
		return 2*int32(from) + 1
	}
	return -1
}
