package simulate

// The classes of a network with flows are a heap by the end of the first flow. A class knows its place, since its end
// changes with its rate.

// sift puts a class where its end belongs, and adds one that is not there.
func (n *network) sift(c *class) {
	if c.place < 0 {
		c.place = len(n.ends)
		n.ends = append(n.ends, c)
	}
	for c.place > 0 && c.end < n.ends[(c.place-1)/2].end {
		n.swap(c.place, (c.place-1)/2)
	}
	for {
		child := 2*c.place + 1
		if child+1 < len(n.ends) && n.ends[child+1].end < n.ends[child].end {
			child++
		}
		if child >= len(n.ends) || n.ends[child].end >= c.end {
			return
		}
		n.swap(c.place, child)
	}
}

// remove takes a class out.
func (n *network) remove(c *class) {
	at, last := c.place, len(n.ends)-1
	n.swap(at, last)
	n.ends = n.ends[:last]
	c.place = -1
	if at < last {
		n.sift(n.ends[at])
	}
}

func (n *network) swap(a, b int) {
	n.ends[a], n.ends[b] = n.ends[b], n.ends[a]
	n.ends[a].place, n.ends[b].place = a, b
}
