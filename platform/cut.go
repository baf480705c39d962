package platform

import "math"

// CutRates are the most bytes per second that can move into each part of the memories, out of it, and both ways together. part is the
// part of each memory, from 0 to parts-1. A rate is infinite where no bandwidth limits it.
//
// Theory. Whatever moves from a memory outside a part to one inside crosses some set of links that cuts the part off, and no more crosses
// them than their bandwidths together. Any such set gives a limit that holds. Taken here are one link of each given route with one end
// inside, and the wires between the part, together with the switches that are counted to it, and all else. A switch is counted to the part to which most of the
// bandwidth of its wires leads, and also to none: the smaller limit counts. Wires that end at one switch carry no more than the switch.
func (p *Platform) CutRates(part []int32, parts int) (in, out, both []float64) {
	none := make([]int32, len(p.Links))
	for l := range none {
		none[l] = -1
	}
	in, out, both = p.cutRates(part, parts, none)
	if owned := p.switchParts(part); owned != nil {
		otherIn, otherOut, otherBoth := p.cutRates(part, parts, owned)
		for i := range in {
			in[i], out[i], both[i] = min(in[i], otherIn[i]), min(out[i], otherOut[i]), min(both[i], otherBoth[i])
		}
	}
	return in, out, both
}

// switchParts counts switches to parts, by link: to the one to which more than half of the bandwidth of the switch's wires leads. Switches
// that are counted already count others. It returns nil where no switch is counted to any.
func (p *Platform) switchParts(part []int32) []int32 {
	type lead struct {
		to   LinkID
		part int32
	}
	owned := make([]int32, len(p.Links))
	for l := range owned {
		owned[l] = -1
	}
	const rounds = 4 // from leaves up
	any := false
	for range rounds {
		leads, all := map[lead]float64{}, map[LinkID]float64{}
		for i := range p.Wires {
			w := &p.Wires[i]
			rate := p.Links[w.Link].BandwidthBytesPerSec
			for e, end := range w.Ends {
				if l, ok := end.switchLink(); ok {
					all[l] += rate
					if to := p.partOf(w.Ends[1-e], part, owned); to >= 0 {
						leads[lead{l, to}] += rate
					}
				}
			}
		}
		for l, rate := range leads {
			if 2*rate > all[l.to] { // true of one part at most
				owned[l.to], any = l.part, true
			}
		}
	}
	if !any {
		return nil
	}
	return owned
}

func (p *Platform) partOf(at Port, part, owned []int32) int32 {
	if l, ok := at.switchLink(); ok {
		return owned[l]
	}
	return part[at]
}

// crossing is a direction of a link at the edge of a part, or with a switch all wires that end there.
type crossing struct {
	part     int32
	way      int // 0 in, 1 out, 2 both
	use      LinkUse
	isSwitch bool
}

// limits adds up the bandwidths at the edges of parts.
type limits struct {
	p       *Platform
	crossed map[crossing]bool
	sums    map[crossing]float64
	order   []crossing // of sums
}

// add counts a direction of a link that leads from one part to another. at is a switch at its end, or no switch.
func (s *limits) add(from, to int32, l LinkID, direction int32, at Port) {
	if from == to {
		return
	}
	use, rate := LinkUse{Link: l}, s.p.Links[l].BandwidthBytesPerSec
	switch s.p.Links[l].Sharing {
	case Duplex:
		use.Direction = direction
	case Fatpipe:
		rate = math.Inf(1)
	}
	for _, key := range []crossing{{to, 0, use, false}, {from, 1, use, false}, {from, 2, use, false}, {to, 2, use, false}} {
		if key.part < 0 || s.crossed[key] {
			continue
		}
		s.crossed[key] = true
		if end, ok := at.switchLink(); ok && s.p.Links[end].Sharing != Fatpipe {
			key.use, key.isSwitch = LinkUse{Link: end}, true
		}
		if _, known := s.sums[key]; !known {
			s.order = append(s.order, key)
		}
		s.sums[key] += rate
	}
}

func (p *Platform) cutRates(part []int32, parts int, owned []int32) (in, out, both []float64) {
	s := &limits{p: p, crossed: map[crossing]bool{}, sums: map[crossing]float64{}}
	orientation := newOrientation(p)
	for i := range p.Routes {
		r := &p.Routes[i]
		for _, ends := range [][2]MemoryID{{r.From, r.To}, {r.To, r.From}} {
			if from, to := part[ends[0]], part[ends[1]]; from != to && (ends[0] == r.From || !r.OneWay) {
				links, directions := orientation.along(r, ends[0])
				k := p.narrowest(links)
				s.add(from, to, links[k], directions[k], 0)
			}
		}
	}
	for i := range p.Wires {
		w := &p.Wires[i]
		a, b := p.partOf(w.Ends[0], part, owned), p.partOf(w.Ends[1], part, owned)
		at := min(w.Ends[0], w.Ends[1]) // a switch, if any of the ends is one
		s.add(a, b, w.Link, 0, at)
		s.add(b, a, w.Link, 1, at)
	}
	rates := [3][]float64{make([]float64, parts), make([]float64, parts), make([]float64, parts)}
	for _, key := range s.order {
		rate := s.sums[key]
		if key.isSwitch {
			rate = min(rate, p.Links[key.use.Link].BandwidthBytesPerSec)
		}
		rates[key.way][key.part] += rate
	}
	return rates[0], rates[1], rates[2]
}

// narrowest is the number of the link of least bandwidth among those that are shared, else of any.
func (p *Platform) narrowest(links []LinkID) (at int) {
	rate := func(l LinkID) float64 {
		if p.Links[l].Sharing == Fatpipe {
			return math.Inf(1)
		}
		return p.Links[l].BandwidthBytesPerSec
	}
	for k, l := range links {
		if rate(l) < rate(links[at]) {
			at = k
		}
	}
	return at
}
