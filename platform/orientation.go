package platform

import "slices"

// orientation knows which way a route crosses each of its links, so that the two
// directions of a duplex link do not share their bandwidth.
//
// A link has no ends of its own. They come from the first route that consists of that link alone.
// On a longer route one walks from the memory at its start through links with known ends, and
// from the memory at its end backwards. If neither walk reaches a link, routes to a memory of
// higher index cross it forwards. If such a route names the link again, it is crossed the other
// way each time, as on the way up to a switch and down again.
type orientation struct {
	ends [][2]MemoryID // by link; -1: not known
}

// newOrientation finds the ends of the links from the routes.
func newOrientation(p *Platform) *orientation {
	o := &orientation{ends: make([][2]MemoryID, len(p.Links))}
	for l := range o.ends {
		o.ends[l] = [2]MemoryID{-1, -1}
	}
	for _, r := range p.Routes {
		if len(r.Links) == 1 && o.ends[r.Links[0]][0] < 0 {
			o.ends[r.Links[0]] = [2]MemoryID{min(r.From, r.To), max(r.From, r.To)}
		}
	}
	return o
}

// along returns the links of a route from one of its ends, in order, with the direction of each
// crossing, 0 or 1.
func (o *orientation) along(r *Route, from MemoryID) (links []LinkID, directions []int32) {
	links, to := r.Links, r.To
	if from != r.From {
		links, to = slices.Clone(r.Links), r.From
		slices.Reverse(links)
	}
	directions = make([]int32, len(links))
	turned := map[LinkID]int32{} // direction of the next crossing of a link
	for i, l := range links {
		if from > to {
			directions[i] = 1
		}
		directions[i] ^= turned[l]
		turned[l] ^= 1
	}
	known := len(links)
	for i, at := 0, from; i < len(links); i++ {
		e := o.ends[links[i]]
		if at != e[0] && at != e[1] || e[0] < 0 {
			known = i
			break
		}
		directions[i] = 0
		if at == e[1] {
			directions[i] = 1
		}
		at = e[0] + e[1] - at
	}
	for i, at := len(links)-1, to; i > known; i-- {
		e := o.ends[links[i]]
		if at != e[0] && at != e[1] || e[0] < 0 {
			break
		}
		directions[i] = 1
		if at == e[1] {
			directions[i] = 0
		}
		at = e[0] + e[1] - at
	}
	return links, directions
}
