package space

import (
	"context"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
)

// Choice is a set of devices, as [platform.Platform.Select] takes it ("" means all of the machine), and how the layers of a
// network are cut. Zero tiles mean that there is one lowering, or the one of a strategy.
type Choice struct {
	Devices string        `json:"devices,omitempty"`
	Tiles   tiling.Tiling `json:"tiles,omitzero"`
	// Strategy places the layers on the devices, as in "1f1b:4x8"; "" leaves that to plans.
	Strategy string `json:"strategy,omitempty"`
}

func (c Choice) String() string {
	devices := c.Devices
	if devices == "" {
		devices = "all devices"
	}
	if cuts := c.Cuts(); cuts != "" {
		return devices + ", " + cuts
	}
	return devices
}

// Cuts says how the layers are cut; empty where there is one lowering.
func (c Choice) Cuts() string {
	switch {
	case c.Strategy != "":
		return "strategy " + c.Strategy
	case c.Tiles != (tiling.Tiling{}):
		return "tiles " + c.Tiles.String()
	}
	return ""
}

// Space is all choices: each of Devices with each of Tiles.
type Space struct {
	Devices []string
	Tiles   []tiling.Tiling
	// Price is the program of a choice on its devices. It fails where the choice cannot run. Equal choices
	// give equal results, and goroutines may call it at one time.
	Price func(Choice) (*schedule.Priced, error)
	// Skips are choices of a set and a lowering that the space does not list, though Price knows them; nil means there are none.
	Skips func(Choice) bool
	// Layers are those that neighbourhoods cut otherwise; "" stands for the network as a whole.
	Layers         []string
	Neighbourhoods []Neighbourhood
	// Smaller lists choices like one whose steps keep fewer bytes, the most promising first; nil means there are none.
	Smaller func(Choice) ([]Choice, error)
	// Shares returns the work of a step in every lowering, and the machine with all devices of the sets; nil means that nobody knows.
	Shares func(context.Context) (*shares.Step, *platform.Platform, error)
	// Ranked lists choices on sets of devices by the layer-wise model, the most promising first, until ctx ends, with a part of the whole effort; nil means there is no model.
	Ranked func(ctx context.Context, devices []string, aim problem.Aim, effort float64) ([]Ranked, error)
	// Strategies are further choices, with strategies. Price, neighbourhoods and Estimate know them.
	Strategies []Choice
	// Named lists strategies on a set of devices as a user names them there, in groups, the most promising first; nil means there are none. A plan is to be worse than none of
	// those on all devices.
	Named func(devices string) [][]Choice
	// Estimate is the value of any choice by the model. False means that the model does not know; nil that there is none.
	Estimate func(Choice, problem.Aim) (value float64, known bool)
}

// Ranked is a choice with its value by the layer-wise model.
type Ranked struct {
	Choice
	Value float64
}

// Neighbourhood lists choices that differ from one in a layer, or from one with a strategy a little. Price accepts them too.
type Neighbourhood func(c Choice, layer string) ([]Choice, error)

// Choices lists all choices, the lowerings of one set of devices after another.
func (s *Space) Choices() (all []Choice) {
	for _, devices := range s.Devices {
		for _, tiles := range s.Tiles {
			if c := (Choice{Devices: devices, Tiles: tiles}); s.Skips == nil || !s.Skips(c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Has reports whether the space lists a choice.
func (s *Space) Has(c Choice) bool {
	return c.Strategy == "" && slices.Contains(s.Devices, c.Devices) && slices.Contains(s.Tiles, c.Tiles) && (s.Skips == nil || !s.Skips(c))
}

// Of is the space of one program on sets of devices of its machine.
func Of(priced *schedule.Priced, devices []string) *Space {
	return &Space{Devices: devices, Tiles: []tiling.Tiling{{}}, Price: func(c Choice) (*schedule.Priced, error) {
		if c.Devices == "" {
			return priced, nil
		}
		return priced.On(c.Devices)
	}}
}

// unitCounts are the numbers of units of a device in sets, in addition to all units. They are dense where one more unit changes a
// step much, and few, since the search may price each set with each tiling; no measurement is behind the single values.
var unitCounts = []int{1, 2, 4, 8, 12, 16, 24, 36, 40}

// maxSets bounds the sets of one machine.
const maxSets = 1000

// Sets are the sets of devices of a machine that differ: for each device none, some numbers of its units,
// or all. Processors of one kind have equal numbers, and devices that a permutation of the machine takes into
// each other count as one. A machine of very many devices would have more than a thousand sets. Then each device has none, one
// or all of its units, and the first thousand sets are taken.
//
// Names in the graph restrict the devices of tasks; they may make equal devices
// unlike.
//
// Of a cluster they are its first 1, 2, 4, … nodes and all of them, each with all devices, with its GPUs and with its processors.
func Sets(p *platform.Platform, graph *dag.Graph) []string {
	if len(p.Nodes) > 0 {
		return setsOfNodes(p)
	}
	like := equalDevices(p, graph)
	sets := combine(p, like, func(units int) []int {
		counts := slices.DeleteFunc(slices.Clone(unitCounts), func(n int) bool { return n >= units })
		return append(counts, units)
	})
	if len(sets) > maxSets {
		sets = combine(p, like, func(units int) []int { return slices.Compact([]int{1, units}) })
	}
	return sets[:min(len(sets), maxSets)]
}

// setsOfNodes are the sets of a cluster.
func setsOfNodes(p *platform.Platform) (sets []string) {
	byNode := make([][]*platform.Device, len(p.Nodes))
	for _, d := range p.Usable() {
		node := p.NodeOf(d.Memory)
		byNode[node] = append(byNode[node], d)
	}
	byNode = slices.DeleteFunc(byNode, func(devices []*platform.Device) bool { return len(devices) == 0 })
	for n := 1; ; n = min(2*n, len(byNode)) {
		all := slices.Concat(byNode[:n]...)
		for _, processors := range []bool{true, false} {
			some := slices.DeleteFunc(slices.Clone(all), func(d *platform.Device) bool { return d.IsProcessor() != processors })
			if len(some) > 0 && len(some) < len(all) {
				sets = append(sets, platform.List(some))
			}
		}
		if n == len(byNode) {
			return append(sets, "")
		}
		sets = append(sets, platform.List(all))
	}
}

// combine lists all combinations of counts of units, the last devices first, and none of what like says is
// another one's equal: of such devices the first are taken, with no fewer units than the next. The whole machine is "".
func combine(p *platform.Platform, like []int, counts func(units int) []int) (sets []string) {
	taken := make([]int, len(p.Devices))
	var add func(d int)
	add = func(d int) {
		if len(sets) > maxSets {
			return
		}
		if d == len(p.Devices) {
			if text, ok := setText(p, taken); ok {
				sets = append(sets, text)
			}
			return
		}
		for _, n := range append([]int{0}, counts(p.Devices[d].Count)...) {
			if p.Devices[d].PlacedOnly && n != p.Devices[d].Count {
				continue // it stays for its tasks
			}
			if !asTheOthers(p, taken[:d], n) {
				continue
			}
			if before := slices.Index(like[:d], like[d]); before >= 0 && n > taken[previous(like, d)] {
				continue
			}
			taken[d] = n
			add(d + 1)
		}
		taken[d] = 0
	}
	add(0)
	return sets
}

// asTheOthers reports whether the next device may have n units: processors of one kind that are in a set have
// equal numbers of units, or all.
func asTheOthers(p *platform.Platform, taken []int, n int) bool {
	of := &p.Devices[len(taken)]
	for d, have := range taken {
		if other := &p.Devices[d]; of.IsProcessor() && n > 0 && have > 0 && other.Kind == of.Kind && !other.PlacedOnly &&
			n != have && (n != of.Count || have != other.Count) {
			return false
		}
	}
	return true
}

// previous is the device before d that is like it.
func previous(like []int, d int) int {
	for b := d - 1; ; b-- {
		if like[b] == like[d] {
			return b
		}
	}
}

// setText is a set as a list; false means it is empty.
func setText(p *platform.Platform, taken []int) (string, bool) {
	var items []string
	whole := true
	for d, n := range taken {
		switch of := &p.Devices[d]; {
		case n == 0:
			whole = false
		case of.PlacedOnly:
		default:
			whole = whole && n == of.Count
			items = append(items, of.Item(n))
		}
	}
	if whole {
		return "", true
	}
	return strings.Join(items, ","), len(items) > 0
}
