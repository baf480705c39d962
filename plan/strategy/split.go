package strategy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/naming"
	"dahl/plan"
	"dahl/platform"
)

// Split says how a strategy lowers a network: as a pipeline, or on devices that share it, or both. In the latter case each place of the
// pipeline has several devices. The zero value is one device.
type Split struct {
	Order        string // of the micro-batches of a pipeline. Empty means that there is none.
	Stages       int    // devices of the pipeline, or groups of devices
	Each         int    // stages on each of these
	MicroBatches int
	From         []string // the first layers of all stages but the first one; nil means that the longest stage takes the least time
	Stash        bool     // micro-batches are mini-batches, and stages keep the weights of their forward passes

	// Devices is how many share a replica of a stage; 0 means one. A layer whose tasks can be cut along rows is cut along the first dimension, any other one
	// along the second.
	Devices          int
	Replicas         int // 0 means one. Alone they are devices with shares of the samples.
	Images, Features dag.Dimension
	Pairs            bool // every other layer with weights is cut along its inputs
	Sum              dag.Exchange
	Flat             bool // a ring goes around all devices, whatever their nodes

	// Fold is the grid of equal devices of each stage, of which the lowering has the first. The zero value means that it has all.
	Fold dag.Fold
}

// sums are the ways to add gradients, and other sums over devices.
var sums = func() (all []string) {
	for e := range dag.NumExchanges {
		all = append(all, e.String())
	}
	return all
}()

// replicates reports whether devices share samples and nothing else.
func (s *Split) replicates() bool {
	return s.Devices > 0 && s.Images == dag.AlongSamples && s.Features == dag.AlongSamples
}

// times is the product with another strategy, which is no product. One has a pipeline, one has devices that share its stages, and one has replicas of these devices.
func (s Split) times(by Split) (Split, error) {
	pipe, share := s, by
	if by.Order != "" {
		pipe, share = by, s
	}
	switch {
	case pipe.Fold.Tensor > 0 || share.Fold.Tensor > 0:
		return s, errors.New("megatron is a product by itself; write its numbers")
	case share.Order != "":
		return s, errors.New("a network has one pipeline; leave the other one out")
	case share.Devices == 0 || pipe.Order == "" && pipe.Devices == 0:
		return s, errors.New("in a product say how many devices each strategy has")
	case pipe.Devices > 0 && share.replicates() == pipe.replicates() || pipe.Replicas > 0:
		return s, errors.New("the devices of a stage share it along samples, and along one dimension more; take one of these strategies, data-parallel, and a pipeline")
	case pipe.Devices > 0 && share.Sum != pipe.Sum:
		return s, fmt.Errorf("the devices of a stage have one way to add; write %v behind both, or %v", share.Sum, pipe.Sum)
	case pipe.replicates():
		share.Replicas = pipe.Devices
	case pipe.Devices > 0:
		replicas := share.Devices
		share = pipe
		share.Replicas = replicas
	}
	if pipe.Stash {
		return s, errors.New("devices cannot share a stage that stashes weights; leave stash out, or the other strategy")
	}
	if share.Order, share.Stages, share.Each, share.MicroBatches = pipe.Order, pipe.Stages, pipe.Each, pipe.MicroBatches; share.Order != "" && share.Images != share.Features {
		return s, errors.New("all layers of a stage are shared along one dimension; take data-parallel or tensor-parallel with a pipeline")
	}
	return share, nil
}

// String is a name of a strategy of networks, as [ByName] takes it.
func (s *Split) String() string {
	if s.Fold.Tensor > 0 {
		return s.foldedName()
	}
	var factors []string
	shared, replicated := s.Devices < 2, s.Replicas < 2
	for i := range table {
		of := &table[i]
		if of.split == nil || of.doc.Name == megatronName {
			continue
		}
		numbers, name := []int{max(1, s.Devices), 1}, of.doc.Name
		if name == s.Order {
			numbers = []int{s.Stages, s.MicroBatches}
			if len(of.Arguments) > 2 {
				numbers = []int{s.Stages, s.Each, s.MicroBatches}
			}
		}
		like := of.split(numbers)
		switch {
		case like.Order != "" && like.Order == s.Order:
			text := name + ":" + strings.Join(naming.List(numbers, strconv.Itoa), "x")
			if s.Stash {
				text += ":" + Stash
			}
			factors = append(factors, text)
			continue
		case like.Order != "":
			continue
		case !replicated && like.replicates():
			replicated, numbers[0] = true, s.Replicas
		case !shared && like.Images == s.Images && like.Features == s.Features && like.Pairs == s.Pairs:
			shared = true
		default:
			continue
		}
		text := name + ":" + strconv.Itoa(numbers[0])
		if s.Sum != like.Sum || s.Flat {
			text += ":" + s.Sum.String()
		}
		factors = append(factors, text)
	}
	text := strings.Join(factors, Times)
	return text + s.firsts()
}

// firsts are the first layers of stages in a name, where somebody gives them.
func (s *Split) firsts() string {
	if s.From == nil {
		return ""
	}
	return At + strings.Join(s.From, ",")
}

// Needs is the number of devices.
func (s *Split) Needs() int { return max(1, s.Stages) * s.Shares() * s.Fold.Devices() }

// Shares is the number of devices of a stage.
func (s *Split) Shares() int { return max(1, s.Devices) * max(1, s.Replicas) }

// Network describes a network on a machine for strategies.
type Network struct {
	Platform *platform.Platform
	Batch    int
	Layers   []Layer // in the order of the network, the input first
	Default  dag.Lowering
	// Whole is the lowering with whole layers, for devices with a number of bytes of memory.
	Whole func(memoryBytes int64) dag.Lowering
	// Times lists layers that can begin a stage, and the seconds of all tasks of each in a step, by seat.
	Times func(dag.Lowering, []Seat) (layers []string, seconds [][]float64, err error)
	Fixed bool // the default is somebody's choice, which stages keep
}

// Layer describes a layer for devices that share it: bytes of its weights, and bytes of a sample.
type Layer struct {
	Name                string
	Rows, Inputs        int     // along which tasks can be cut; no inputs means that no task multiplies by weights
	Positions           int     // of a sequence
	Attends             bool    // each position reads others
	Weights             float64 // with biases
	In, Out             float64
	BorderIn, BorderOut float64 // rows on one side of a border that the kernel reads of both sides
	Learns              bool    // its input has a gradient
	Statistics          bool    // it needs sums over the samples of all devices
}

// Seat is a unit for a stage, or some units of a device.
type Seat struct {
	Name   string
	Device platform.DeviceID
	Units  int
}

// Seats are the devices of a number of stages: those with memories of their own first, in the order of the platform. One stage beyond these
// has all units of the first processor, and several have one each.
func Seats(p *platform.Platform, number int) ([]Seat, error) {
	var accelerators, cores, whole []Seat
	for w, unit := range p.Workers {
		d := &p.Devices[unit.Device]
		switch {
		case d.PlacedOnly:
		case !d.IsProcessor():
			accelerators = append(accelerators, Seat{p.Workers[w].Name, unit.Device, 1})
		default:
			if whole == nil {
				whole = []Seat{{d.Name, unit.Device, d.Count}}
			}
			cores = append(cores, Seat{p.Workers[w].Name, unit.Device, 1})
		}
	}
	if 0 < len(accelerators) && len(accelerators) == number-1 && whole != nil {
		cores = whole
	}
	all := append(accelerators, cores...)
	if len(all) < number {
		return nil, fmt.Errorf("%s are asked for: %q has %s; take fewer", naming.Count(number, "device"), p.Name, naming.Count(len(all), "unit"))
	}
	return all[:number], nil
}

// accelerators counts the units that are no cores.
func (n *Network) accelerators() (number int) {
	for _, d := range n.Platform.Usable() {
		if !d.IsProcessor() {
			number += d.Count
		}
	}
	return number
}

// Lowering is the lowering of a network with the stages of a strategy.
func (s *Split) Lowering(n *Network) (l dag.Lowering, err error) {
	if n.Default.Stages != nil {
		return l, errors.New("the lowering has stages of its own; leave them out, or the numbers of the strategy")
	}
	if s.Order == "" && s.Devices == 0 {
		all := *s
		if all.Devices = n.accelerators(); all.Devices < 2 {
			return l, fmt.Errorf("%q has %s beside processors; say how many devices", n.Platform.Name, naming.Count(all.Devices, "unit"))
		}
		s = &all
	}
	seats, err := Seats(n.Platform, s.Needs())
	if err != nil {
		return l, err
	}
	if s.Fold.Tensor > 0 {
		return s.folded(n, seats)
	}
	l = n.Default
	onCores := slices.ContainsFunc(seats, func(s Seat) bool { return n.Platform.Devices[s.Device].IsProcessor() })
	single := slices.ContainsFunc(seats, func(s Seat) bool { return s.Units < n.Platform.Devices[s.Device].Count })
	if others := n.accelerators(); onCores && single && others > 0 && s.Shares() > 1 {
		return l, fmt.Errorf("%s have equal shares, and would wait for single cores: %q has %s beside processors; take at most %d devices, the last one a whole processor",
			naming.Count(s.Needs(), "device"), n.Platform.Name, naming.Count(others, "unit"), others+1)
	}
	if !n.Fixed && !onCores {
		l = n.Whole(leastCapacity(n.Platform, seats))
	}
	if s.Order != "" {
		l.MicroBatches, l.Order = s.MicroBatches, s.Order
	}
	if l.Stages, err = s.stages(n, l, seats); err != nil {
		return l, err
	}
	l.Stash = s.Stash
	n.placeStatistics(l.Stages, max(1, l.MicroBatches))
	if err := s.shareBySpeed(n, &l, seats); err != nil {
		return l, err
	}
	if s.Pairs && s.Devices > 1 {
		s.pair(n, &l)
	}
	return l, nil
}

// pair cuts every other layer with weights of a stage along its inputs, as many as devices. The first one of a stage stays as it is, and
// so do layers with fewer inputs.
func (s *Split) pair(n *Network, l *dag.Lowering) {
	l.Layers = maps.Clone(l.Layers)
	at, second := 0, false
	for _, layer := range n.Layers {
		if at+1 < len(l.Stages) && l.Stages[at+1].From == layer.Name {
			at, second = at+1, false
		}
		if layer.Inputs == 0 {
			continue // no weights
		}
		if second && layer.Inputs >= s.Devices {
			ll := l.Of(layer.Name)
			ll.Forward.Inputs, ll.Forward.Accumulators = (layer.Inputs+s.Devices-1)/s.Devices, s.Devices
			l.Layers[layer.Name] = ll
		}
		second = !second
	}
}

// firstFeatures is the first layer behind all layers with images, or with positions that are cut as rows are. False means that there are only such layers.
func (n *Network) firstFeatures(images dag.Dimension) (layer string, ok bool) {
	for _, of := range slices.Backward(n.Layers) {
		if of.Rows > 1 || of.Positions > 1 && images == dag.AlongRows {
			return layer, layer != ""
		}
		layer = of.Name
	}
	return n.Layers[0].Name, true
}

// leastCapacity is the size of the smallest memory of some devices; 0 means not known.
func leastCapacity(p *platform.Platform, seats []Seat) (least int64) {
	for _, s := range seats {
		if bytes := p.Memories[p.Devices[s.Device].Memory].CapacityBytes; bytes > 0 && (least == 0 || bytes < least) {
			least = bytes
		}
	}
	return least
}

// stages gives consecutive layers to groups of devices in turn, so that the longest stage takes the least time.
func (s *Split) stages(n *Network, l dag.Lowering, seats []Seat) (all []dag.Stage, err error) {
	groups := slices.Collect(slices.Chunk(seats, s.Shares()))
	if s.Order == "" {
		features, ok := n.firstFeatures(s.Images)
		if s.Images == s.Features || features != n.Layers[0].Name {
			all = append(all, s.stageOn(n, n.Layers[0].Name, groups[0], s.Images))
		}
		if ok && s.Images != s.Features {
			all = append(all, s.stageOn(n, features, groups[0], s.Features))
		}
		return all, nil
	}
	if s.From != nil {
		for i, layer := range append([]string{n.Layers[0].Name}, s.From...) {
			all = append(all, s.stageOn(n, layer, groups[i%len(groups)], s.Images))
		}
		return all, nil
	}
	layers, bySeat, err := n.Times(l, seats)
	if err != nil {
		return nil, err
	}
	var times [][]float64 // by group
	for _, seconds := range bySeat {
		var slowest []float64
		for group := range slices.Chunk(seconds, s.Shares()) {
			slowest = append(slowest, slices.Max(group))
		}
		times = append(times, slowest)
	}
	firsts := plan.Balance(times, s.Stages*s.Each)
	if firsts == nil {
		return nil, fmt.Errorf("%d stages: the network has %s with tasks, the input among them", s.Stages*s.Each, naming.Count(len(layers), "layer"))
	}
	for i, first := range firsts {
		all = append(all, s.stageOn(n, layers[first], groups[i%len(groups)], s.Images))
	}
	return all, nil
}

func (s *Split) stageOn(n *Network, from string, seats []Seat, along dag.Dimension) dag.Stage {
	if len(seats) == 1 {
		return dag.Stage{From: from, Device: seats[0].Name}
	}
	of := dag.Stage{From: from, Devices: naming.List(seats, func(s Seat) string { return s.Name }), Along: along, Sum: s.Sum}
	if along != dag.AlongSamples {
		of.Replicas = s.Replicas
	} else if of.PerNode = perNode(n.Platform, seats); of.PerNode > 0 && s.Sum == dag.Ring && !s.Flat {
		of.Sum = dag.Hierarchical
	}
	return of
}

// perNode is how many seats each node has, if several nodes follow one another with equally many; else 0.
func perNode(p *platform.Platform, seats []Seat) (number int) {
	node := func(i int) platform.NodeID { return p.NodeOf(p.Devices[seats[i].Device].Memory) }
	for number < len(seats) && node(number) == node(0) {
		number++
	}
	for i := range seats {
		if number == len(seats) || i%number > 0 && node(i) != node(i-1) || i > 0 && i%number == 0 && node(i) == node(i-1) {
			return 0
		}
	}
	return number
}
