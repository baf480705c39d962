package exact

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// addTwin adds a device that is like the last one, in its memory or in one of its own that is reached alike. The
// tasks of a graph take there what they take on the last one.
func addTwin(t *testing.T, r *rand.Rand, p *platform.Platform, g *dag.Graph) {
	t.Helper()
	d := p.Devices[len(p.Devices)-1]
	for i := range g.Tasks {
		for _, c := range g.Tasks[i].Costs {
			if c.Key == d.Name {
				c.Key = "twin"
				g.Tasks[i].Costs = append(g.Tasks[i].Costs, c)
			}
		}
	}
	d.Name = "twin"
	if len(p.Memories) > 1 && r.IntN(3) > 0 {
		from := d.Memory
		d.Memory = platform.MemoryID(len(p.Memories))
		p.Memories = append(p.Memories, platform.Memory{Name: "own", BandwidthBytesPerSec: 1e9})
		for _, route := range p.Routes {
			l := p.Links[route.Links[0]]
			l.Name += "-twin"
			switch from {
			case route.From:
				route.From = d.Memory
			case route.To:
				route.To = d.Memory
			default:
				continue
			}
			route.Links = []platform.LinkID{platform.LinkID(len(p.Links))}
			p.Links, p.Routes = append(p.Links, l), append(p.Routes, route)
		}
	}
	p.Devices = append(p.Devices, d)
	must.Do(t, p.Complete())
}

// TestTwins: on machines with two equal devices the search finds the least of all plans, and proves it where none may be
// better by sleep. Without knowing that they are equal, it looks at more.
func TestTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	apart, together, nodes, more := 0, 0, 0, 0
	for apart < 30 || together < 20 {
		relaxed := r.IntN(3) == 0
		p := machine(t, r, relaxed)
		g := network(t, r, p, 3, relaxed)
		addTwin(t, r, p, g)
		priced, err := schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
		if err != nil {
			continue // a task is placed where it cannot run
		}
		m := must.Get(newModel(priced, Options{Objective: problem.Energy}))(t)
		twin := len(p.Devices) - 1
		if m.devices[twin].twins == 0 {
			continue // such as a task that names the other, or data that begin in its memory
		}
		e := enumeration{priced: priced, most: 600, plans: map[string]*schedule.Plan{}}
		if !e.add(0, make([][]dag.TaskID, len(p.Workers)), make([]platform.ClockID, len(priced.Program.Graphs[0].Tasks))) {
			continue
		}
		if m.devices[twin].memory == m.devices[twin-1].memory {
			together++
		} else {
			apart++
		}
		for objective, want := range e.least(t) {
			got, err := Search(t.Context(), priced, Options{Objective: objective, Nodes: 100_000})
			if math.IsInf(want, 1) {
				continue // a cap
			}
			if err != nil {
				t.Fatal(err)
			}
			if !got.Proven && (!hasSleeps(p) || objective == problem.Time) || math.Abs(got.Value-want) > want*1e-9 {
				t.Errorf("%d and %d, %d tasks, %s: value %.12g, proven %v; the least of %d plans is %.12g", apart, together, len(g.Tasks), objective, got.Value, got.Proven, len(e.plans), want)
			}
			with, without := partNodes(t, priced, objective, true), partNodes(t, priced, objective, false)
			nodes, more = nodes+with, more+without
		}
	}
	if nodes >= more {
		t.Errorf("%d nodes for machines with equal devices, %d without knowing it", nodes, more)
	}
	t.Logf("%d nodes, %d without knowing of equal devices", nodes, more)
}

// partNodes counts the nodes of the search in the model.
func partNodes(t *testing.T, priced *schedule.Priced, objective problem.Objective, twins bool) int {
	t.Helper()
	m := must.Get(newModel(priced, Options{Objective: objective}))(t)
	for d := range m.devices {
		if !twins {
			m.devices[d].twins = 0
		}
	}
	const most = 100_000
	s := &search{model: m, ctx: t.Context(), priced: priced, left: most, best: math.Inf(1), inModel: true}
	s.part(newDominance(m))
	return most - s.left
}

// TestEnded: a search whose deadline has passed, or that is cancelled, says what it has, with a bound.
func TestEnded(t *testing.T) {
	priced := paper(t, "heft")
	late, end := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer end()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{late, cancelled} {
		r := must.Get(Search(ctx, priced, Options{Objective: problem.Energy, Nodes: math.MaxInt}))(t)
		if r.Plan == nil || r.Proven || r.Value < 1136.15 || r.Bound > 1136.25 || r.Bound <= 0 || r.Nodes > 2*nodesPerLook {
			t.Errorf("%v: value %v, bound %v, proven %v, %d nodes; the least is 1136.2", ctx.Err(), r.Value, r.Bound, r.Proven, r.Nodes)
		}
	}
}
