package platform

// Orientation knows which way a route crosses each of its links, so that the two
// directions of a duplex link do not share their bandwidth.
//
// A link has no ends of its own: they are taken from the first route that is that
// link alone. On a longer route one walks from the memory at the start through
// links with known ends, and likewise from the memory at the end backwards; a
// link that neither walk reaches is crossed forwards by routes to a memory of
// higher index.
type Orientation struct {
	ends [][2]MemoryID // by link; -1: not known
}

// NewOrientation takes the ends of the links from the routes.
func NewOrientation(p *Platform) *Orientation {
	o := &Orientation{ends: make([][2]MemoryID, len(p.Links))}
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

// Along gives 0 or 1 for each link of a route.
func (o *Orientation) Along(from, to MemoryID, links []LinkID) []int32 {
	directions := make([]int32, len(links))
	for i := range directions {
		if from > to {
			directions[i] = 1
		}
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
	return directions
}
