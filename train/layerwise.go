package train

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"dahl/dag"
	"dahl/plan/layerwise"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
)

// modelled is the layer-wise model of a space, and how it lowers a choice.
type modelled struct {
	*layerwise.Model
	choices *choices

	mutex sync.Mutex
	ranks map[rankKey][]space.Ranked // that no context has ended
}

// rankKey names a rank by its sets, its aim and its effort.
type rankKey struct {
	sets   string
	aim    problem.Aim
	effort float64
}

// model is the layer-wise model of the choices, made when it is first asked for.
func (c *choices) model() (*modelled, error) {
	m, err := c.layerwise(c.platformOf)
	if err != nil {
		return nil, err
	}
	return &modelled{Model: m, choices: c, ranks: map[rankKey][]space.Ranked{}}, nil
}

// tilings are the ways to cut the network on a set of devices.
func (m *modelled) tilings(devices string) (*tiling.Network, error) {
	p, err := m.choices.platformOf(devices)
	if err != nil {
		return nil, err
	}
	return m.choices.tilings(p)
}

// estimate is a [space.Space]'s Estimate.
func (m *modelled) estimate(choice space.Choice, aim problem.Aim) (float64, bool) {
	if choice.Strategy != "" {
		s, err := m.stagedBy(choice)
		if err != nil {
			return 0, false
		}
		return s.estimated(aim, m.choices.Options.Evaluate)
	}
	l := *m.choices.Lowering
	if choice.Tiles != (tiling.Tiling{}) {
		n, err := m.tilings(choice.Devices)
		if err == nil {
			l, err = n.Lowering(choice.Tiles)
		}
		if err != nil {
			return 0, false
		}
	}
	if l.MicroBatches > 1 || l.JoinLoss || len(l.Recompute) > 0 {
		return 0, false
	}
	value, err := m.Value(choice.Devices, &l, aim)
	return value, err == nil
}

// estimated are the choices of a list whose value the model knows, the most promising first.
func (m *modelled) estimated(choices []space.Choice, aim problem.Aim) (all []space.Ranked) {
	for _, c := range choices {
		if value, ok := m.estimate(c, aim); ok {
			all = append(all, space.Ranked{Choice: c, Value: value})
		}
	}
	slices.SortStableFunc(all, func(a, b space.Ranked) int { return cmp.Compare(a.Value, b.Value) })
	return all
}

// ranked is a [space.Space]'s Ranked. Searches of one space rank once.
func (m *modelled) ranked(ctx context.Context, sets []string, aim problem.Aim, effort float64) (all []space.Ranked, err error) {
	key := rankKey{strings.Join(sets, ";"), aim, effort}
	m.mutex.Lock()
	all = m.ranks[key]
	m.mutex.Unlock()
	if all != nil {
		return slices.Clone(all), nil
	}
	ranked, err := m.Rank(ctx, sets, aim, effort)
	if err != nil {
		return nil, err
	}
	for _, r := range ranked {
		n, err := m.tilings(r.Devices)
		if err != nil {
			return nil, err
		}
		tiles, err := n.From(tiling.Base{Kind: tiling.Whole}, r.Layers)
		if err != nil {
			return nil, err
		}
		all = append(all, space.Ranked{Choice: space.Choice{Devices: r.Devices, Tiles: tiles}, Value: r.Value})
	}
	if ctx.Err() == nil {
		m.mutex.Lock()
		m.ranks[key] = slices.Clone(all)
		m.mutex.Unlock()
	}
	return all, nil
}

// layerwise is the layer-wise model of the workload's network. Machine is the machine with the devices of a list. Where the workload's
// own lowering is measured, no tile runs on a guess, but for operations that are guessed there, too.
func (w *Workload) layerwise(machine func(string) (*platform.Platform, error)) (*layerwise.Model, error) {
	ops, err := w.Model.Operations(w.firstStep())
	if err != nil {
		return nil, err
	}
	target := &offers{Target: w.Target(), known: map[offered][]schedule.Offer{}}
	known, err := schedule.PriceTasks(w.Program.Graphs[0], w.Platform, target)
	if err != nil {
		return nil, err
	}
	sure, guessed := known.LeastKnown(), map[string]bool{}
	for t := range w.Program.Graphs[0].Tasks {
		if known.Guessed(dag.TaskID(t), sure) {
			guessed[w.Program.Graphs[0].Tasks[t].Op] = true
		}
	}
	n := layerwise.Network{Operations: *ops, Machine: machine, Price: func(g *dag.Graph, tasks []dag.Task, p *platform.Platform) ([][]schedule.Cost, error) {
		costs, err := schedule.PriceTasks(&dag.Graph{Buffers: g.Buffers, Tasks: tasks}, p, target)
		if err != nil {
			return nil, err
		}
		rows := make([][]schedule.Cost, len(tasks))
		for t := range rows {
			rows[t] = slices.Repeat([]schedule.Cost{{Duration: -1}}, len(p.Devices))
			if costs.Guessed(dag.TaskID(t), sure) && !guessed[tasks[t].Op] {
				continue
			}
			for d, cost := range costs.Devices(costs.Class[t]) {
				rows[t][d] = *cost
			}
		}
		return rows, nil
	}}
	return layerwise.New(n), nil
}

// offers keeps the offers of a target. Tasks of equal operation, shape and type have operands of one kind.
type offers struct {
	schedule.Target
	known map[offered][]schedule.Offer
}

// offered tells tasks apart for which a target may offer something else.
type offered struct {
	op, shape, kind string
	dtype           dag.DType
}

func (o *offers) Offers(g *dag.Graph, id dag.TaskID, kind string) []schedule.Offer {
	t := &g.Tasks[id]
	key := offered{t.Op, t.Shape, kind, t.Type}
	list, ok := o.known[key]
	if !ok {
		list = o.Target.Offers(g, id, kind)
		o.known[key] = list
	}
	return list
}
