package platform

import "slices"

// orientation knows which way a route crosses each of its links, so that the two
// directions of a duplex link do not share their bandwidth.
//
// A link has no ends of its own. They come from the first route of that link alone.
// On a longer route one walks from the memory at its start through links with known ends, and
// from the memory at its end backwards. If neither walk reaches a link, routes to a memory of
// higher index cross it forwards. If such a route names the link again, it is crossed the other
// way each time, as on the way up to a switch and down again.
type orientation [][2]MemoryID // by link: its ends; -1 means not known

// newOrientation finds the ends of the links from the routes.
func newOrientation(p *Platform) orientation {
	ends := slices.Repeat(orientation{{-1, -1}}, len(p.Links))
	for _, r := range p.Routes {
		if len(r.Links) == 1 && ends[r.Links[0]][0] < 0 {
			ends[r.Links[0]] = [2]MemoryID{min(r.From, r.To), max(r.From, r.To)}
		}
	}
	return ends
}

// cross walks through a link from a memory, forwards (0) or backwards (1); ok is false where the
// memory is not known to be at its end.
func (o orientation) cross(l LinkID, at MemoryID) (next MemoryID, direction int32, ok bool) {
	switch e := o[l]; at {
	case e[0]:
		return e[1], 0, true
	case e[1]:
		return e[0], 1, true
	}
	return at, 0, false
}

// along returns the links of a route from one of its ends, in order, with the direction of each
// crossing, 0 or 1.
func (o orientation) along(r *Route, from MemoryID) (links []LinkID, directions []int32) {
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
	known := 0
	for at := from; known < len(links); known++ {
		next, direction, ok := o.cross(links[known], at)
		if !ok {
			break
		}
		directions[known], at = direction, next
	}
	for i, at := len(links)-1, to; i > known; i-- {
		next, direction, ok := o.cross(links[i], at)
		if !ok {
			break
		}
		directions[i], at = 1-direction, next
	}
	return links, directions
}
