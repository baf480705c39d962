package dag

import (
	"cmp"
	"slices"
)

// Exchange says how the sums of several devices become one.
type Exchange int

// The exchanges. A sum over n devices has n slices along a dimension, and slice k is completed on device k. Each device then sends and receives
// (n - 1)/n of the bytes of the sum, and as much again where all need the result. Small sums take the tree; see [Stage.Slices].
const (
	Direct Exchange = iota // all devices send slice k to device k, which adds them to its own from device k + 1 on
	Ring                   // slice k goes from device k + 1 to the next ones, each of which adds its own, and ends at device k
	Tree                   // the whole sum is completed on the first device: device i adds the sum of device i + s, for s = 1, 2, 4, …

	// Hierarchical goes around in each node first, and then between nodes. Of p nodes with g devices each device has one of g slices of the sum of its node. The devices with the
	// same slice then complete it, in p slices by a ring, or on the first node by a tree if these were small. With one node it is Ring.
	Hierarchical
	NumExchanges
)

var exchangeNames = [...]string{"direct", "ring", "tree", "hierarchical"}

func (e Exchange) String() string { return nameOf(exchangeNames[:], int(e)) }

// MarshalText implements [encoding.TextMarshaler].
func (e Exchange) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (e *Exchange) UnmarshalText(text []byte) error {
	return unmarshalName(e, "sum", exchangeNames[:], text)
}

// SlicedBytes is the size of the least sum that is exchanged in slices. At 10 GB/s these take some microseconds, as a transfer takes to begin.
const SlicedBytes = 1 << 16

// sliceBytes is the least size of a slice. Devices exchange about as many messages as the square of their number, so that many of them take fewer and larger ones in a tree.
const sliceBytes = 1 << 12

// Slices are the parts of the sums in a buffer, along a dimension, each completed on a device of its own. Nil means that one device completes all.
//
// Devices that share samples or rows sum gradients of weights in slices of the first dimension. In a row of devices that share outputs or inputs the sums are results of layers, or
// gradients of these, in slices of the last dimension: of channels. Row -1 stands for all rows, over which each column sums the gradients of its share of the weights, in slices of
// this share.
func (s *Stage) Slices(b *Buffer, row int) (dimension int, all []Part) {
	replicas, each := s.Grid()
	number, sums, channels := len(s.Devices), 1, s.sumsChannels()
	nodes := s.nodes()
	switch {
	case nodes > 1:
		if number = s.PerNode; b.Shape[0] >= len(s.Devices) && b.Bytes() >= int64(len(s.Devices))*SlicedBytes {
			number = len(s.Devices)
		}
	case channels && row >= 0:
		dimension, number, sums = len(b.Shape)-1, each, replicas
	case channels:
		if sums = each; s.Along == AlongInputs {
			dimension = 1
		}
	}
	if s.Sum == Tree || dimension < 0 || dimension >= len(b.Shape) || b.Shape[dimension] < number || b.Bytes() < max(int64(sums)*SlicedBytes, int64(number)*sliceBytes) {
		return dimension, nil
	}
	for i := range number {
		device := i
		switch {
		case nodes > 1 && number > s.PerNode: // the slices of the first device of each node, of the second one, …
			device = i%nodes*s.PerNode + i/nodes
		case channels && row >= 0:
			device += row * each
		case channels:
			device = i%replicas*each + i/replicas
		}
		all = append(all, Part{ShareOf(i, b.Shape[dimension], number), device})
	}
	return dimension, all
}

// nodes is the number of nodes between which sums go hierarchically; 1 where they do not.
func (s *Stage) nodes() int {
	if s.Sum != Hierarchical || s.PerNode < 1 || s.sumsChannels() || len(s.Devices)%s.PerNode > 0 {
		return 1
	}
	return len(s.Devices) / s.PerNode
}

// goesAround reports whether the sums of slices go from device to device.
func (s *Stage) goesAround() bool { return s.Sum == Ring || s.Sum == Hierarchical }

// sumsChannels reports whether the devices sum results of layers, or gradients of these, and no gradients of weights.
func (s *Stage) sumsChannels() bool { return s.Along == AlongOutputs || s.Along == AlongInputs }

// positions are the slices of a sum of sequences in a row of devices, among the positions of all samples one behind the other: the samples of each device, or its positions of each sample
// where there are fewer samples than devices. So each device has what it goes on with between pairs of layers.
func (s *Stage) positions(shape []int, row int) (all []Part) {
	samples, of := shape[0], shape[1]
	_, each := s.Grid()
	if samples >= len(s.Devices) {
		for k := range s.Devices {
			r := ShareOf(k, samples, len(s.Devices))
			all = append(all, Part{Range{r.Lo * of, r.Hi * of}, k})
		}
		return all
	}
	for sample := range samples {
		for k := range each {
			r := ShareOf(k, of, each)
			all = append(all, Part{Range{sample*of + r.Lo, sample*of + r.Hi}, row*each + k})
		}
	}
	return all
}

// group is the contributors of a reduction on one device, with accumulators of their own.
type group struct {
	device        int // of the stage
	members, seen int
	first         int // of its accumulators
}

// groupOf is the group of a device, which is new for the first contributor there.
func (r *reduction) groupOf(device int) *group {
	i, known := slices.BinarySearchFunc(r.groups, device, func(g group, d int) int { return g.device - d })
	if !known {
		r.groups = slices.Insert(r.groups, i, group{device: device})
	}
	return &r.groups[i]
}

// deviceOf is the place of a task's device among those that share the task's stage, and this stage. Nil means that nobody shares it.
func (e *expansion) deviceOf(t TaskID) (*Stage, int) {
	if e.stageOf == nil {
		return nil, 0
	}
	task := &e.from.Tasks[t]
	if e.stage == nil || task.Labels.Layer != e.layer {
		e.stage, e.layer = e.stageOf(task.Labels.Layer), task.Labels.Layer
	}
	s := e.stage
	if s == nil || task.Placement == nil {
		return s, 0
	}
	for range s.Devices {
		if e.device %= len(s.Devices); s.Devices[e.device] == task.Placement.Device {
			return s, e.device
		}
		e.device++ // mostly the next task is on the next device
	}
	return s, 0
}

// bucket is adjacent regions of a buffer that go in one exchange.
type bucket struct {
	box  Box    // nil means all of the buffer
	last TaskID // of all contributors
	used TaskID // the first task that uses a region; -1: none
	done bool   // its exchange has been added
}

// findBuckets joins adjacent regions of one-dimensional buffers, each in a bucket of its own at first.
func (e *expansion) findBuckets() {
	var flat []*reduction
	for i := range e.reductions {
		r := &e.reductions[i]
		to := e.regionOf(r)
		r.bucket = &bucket{box: to.Box, last: r.last, used: r.used}
		if b := &e.from.Buffers[to.Buffer]; len(r.groups) > 1 && len(b.Shape) == 1 && b.ViewOf == None && to.Box != nil {
			flat = append(flat, r)
		}
	}
	slices.SortFunc(flat, func(a, b *reduction) int {
		x, y := e.regionOf(a), e.regionOf(b)
		return cmp.Or(int(x.Buffer-y.Buffer), x.Box[0].Lo-y.Box[0].Lo)
	})
	for i := 1; i < len(flat); i++ {
		if before, r := flat[i-1], flat[i]; e.joins(before, r) {
			of := before.bucket
			of.box = Box{{of.box[0].Lo, r.bucket.box[0].Hi}}
			of.last, of.used = max(of.last, r.last), firstOf(of.used, r.used)
			r.bucket = of
		}
	}
}

// regionOf is the region of a reduction.
func (e *expansion) regionOf(r *reduction) Region {
	return e.from.Tasks[r.first].Accesses[r.access].Region
}

// joins reports whether a region goes in one exchange with the regions of a bucket before it.
func (e *expansion) joins(before, r *reduction) bool {
	x, y := before.bucket, r.bucket
	used := firstOf(x.used, y.used)
	a, _ := e.deviceOf(before.last)
	b, _ := e.deviceOf(r.last)
	return e.regionOf(before).Buffer == e.regionOf(r).Buffer && x.box[0].Hi == y.box[0].Lo && (used < 0 || used > max(x.last, y.last)) && a.From == b.From && a.Along == b.Along &&
		slices.EqualFunc(before.groups, r.groups, func(g, h group) bool { return g.device == h.device && g.first == h.first })
}

// firstOf is the first of two tasks, of which -1 is none.
func firstOf(a, b TaskID) TaskID {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// exchange is the tasks of the bucket of a reduction, its last one.
func (e *expansion) exchange(r *reduction) merging {
	m := e.merging(r)
	if m.to.Box = r.bucket.box; m.to.Box.IsWhole(e.from.Buffers[m.to.Buffer].Shape) {
		m.to.Box = nil
	}
	m.nodes = m.ofNodes()
	return m
}

// slices are the parts in which the devices sum, along a dimension. Nil means that they sum all in a tree.
func (m *merging) slices() (dimension int, all []Part) {
	buf := &m.e.from.Buffers[m.to.Buffer]
	_, each := m.stage.Grid()
	row := m.r.groups[0].device / each
	if m.r.groups[len(m.r.groups)-1].device/each != row {
		row = -1
	}
	dimension, all = m.stage.Slices(buf, row)
	if owner := &m.e.from.Buffers[m.e.from.Storage(m.to.Buffer)]; all != nil && row >= 0 && m.stage.sumsChannels() && len(owner.Shape) == 3 && len(buf.Shape) == 2 {
		dimension, all = 0, m.stage.positions(owner.Shape, row)
	}
	if m.op != "add" {
		return dimension, nil
	}
	return dimension, all
}

// hierarchical reports whether the sums of slices go around in nodes first.
func (m *merging) hierarchical() bool { return m.stage.nodes() > 1 && len(m.nodes) > 1 }

// most is about how many tasks an exchange has, and no fewer.
func (m *merging) most() int {
	_, all := m.slices()
	switch {
	case all == nil:
		return len(m.r.groups)
	case m.hierarchical():
		return m.stage.PerNode*len(m.r.groups) + len(all)*len(m.nodes)
	}
	return len(all) * len(m.r.groups)
}

// exchange adds the tasks that add up the sums of the groups.
func (m *merging) exchange() {
	buf, region := &m.e.from.Buffers[m.to.Buffer], m.to.Box
	dimension, all := m.slices()
	if all == nil {
		var firsts []group // of the nodes
		for _, node := range m.nodes {
			m.treeOf(node)
			firsts = append(firsts, node[0])
		}
		m.treeOf(firsts)
		return
	}
	if region == nil {
		region = Whole(buf.Shape)
	}
	of := func(lo, hi int) (part Box, ok bool) {
		part = slices.Clone(region)
		part[dimension] = Range{max(lo, part[dimension].Lo), min(hi, part[dimension].Hi)}
		return part, part[dimension].Len() > 0
	}
	each := len(all) / max(1, m.stage.PerNode) // slices that one device of each node begins
	hierarchical := m.hierarchical()
	for i, slice := range all {
		groups := m.r.groups
		if hierarchical {
			whole, ok := of(all[i/each*each].Lo, all[i/each*each+each-1].Hi)
			if groups = m.inNodes(slice.Device % m.stage.PerNode); ok && i%each == 0 {
				m.sumInNodes(slice.Device%m.stage.PerNode, whole)
			}
		}
		part, ok := of(slice.Lo, slice.Hi)
		switch {
		case !ok:
		case hierarchical && each == 1:
			m.completeByTree(groups, part)
		default:
			m.complete(groups, slice.Device, part)
		}
	}
}

// around are groups in the order of a ring that ends with device k, or with the last one before it. A ring that begins with it has begin.
func around(groups []group, k int, begin bool) []group {
	first := 0
	for first < len(groups) && (groups[first].device < k || groups[first].device == k && !begin) {
		first++
	}
	return slices.Concat(groups[first:], groups[:first])
}

// treeOf adds the sums of some groups in pairs.
func (m *merging) treeOf(groups []group) {
	m.tree(len(groups), func(i int) (accumulator, device int) { return groups[i].first, groups[i].device })
}

// ofNodes cuts the groups by node.
func (m *merging) ofNodes() (nodes [][]group) {
	each := cmp.Or(m.stage.PerNode, len(m.stage.Devices))
	for i, g := range m.r.groups {
		if i == 0 || g.device/each != m.r.groups[i-1].device/each {
			nodes = append(nodes, nil)
		}
		nodes[len(nodes)-1] = append(nodes[len(nodes)-1], g)
	}
	return nodes
}

// inNodes are the groups with the sum of a slice in their node, one of each: the device with some number in the node has it, or the last one before.
func (m *merging) inNodes(k int) (groups []group) {
	for _, node := range m.nodes {
		ring := around(node, node[0].device/m.stage.PerNode*m.stage.PerNode+k, false)
		groups = append(groups, ring[len(ring)-1])
	}
	return groups
}

// sumInNodes sums a slice in each node, around its devices.
func (m *merging) sumInNodes(k int, part Box) {
	for _, node := range m.nodes {
		ring := around(node, node[0].device/m.stage.PerNode*m.stage.PerNode+k, false)
		for i, g := range ring[1:] {
			m.add(part, g.first, ring[i].first, g.device)
		}
	}
}

// completeByTree sums a slice of some groups on the device of the first one.
func (m *merging) completeByTree(groups []group, part Box) {
	for s := 1; s < len(groups); s *= 2 {
		for i := 0; i+s < len(groups); i += 2 * s {
			if to, from := groups[i], groups[i+s]; i == 0 && 2*s >= len(groups) {
				m.finish(part, from.first, to.first, to.device)
			} else {
				m.add(part, to.first, from.first, to.device)
			}
		}
	}
}

// complete sums a slice of some groups on device k. The ring of the groups begins with this device where it takes the parts of the others one after the other, and ends with it where
// a sum goes around.
func (m *merging) complete(groups []group, k int, part Box) {
	ring := around(groups, k, !m.stage.goesAround())
	sum, last := ring[0].first, ring[len(ring)-1].first
	for _, g := range ring[1 : len(ring)-1] {
		if m.stage.goesAround() {
			m.add(part, g.first, sum, g.device)
			sum = g.first
		} else {
			m.add(part, sum, g.first, k)
		}
	}
	m.finish(part, last, sum, k)
}

// finish writes the sum of two accumulators to the region on device k.
func (m *merging) finish(part Box, a, b, k int) {
	if a > 0 && b > 0 {
		m.sum(part, a, b, k)
	} else { // one of the two is the region
		m.add(part, 0, a+b, k)
	}
}
