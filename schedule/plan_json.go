package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// planFile is the form of a plan on disk. A plan written by hand needs no more
// than format and devices.
type planFile struct {
	Format   string        `json:"format"`
	Policy   string        `json:"policy"`
	Graph    string        `json:"graph"`
	Lowering *dag.Lowering `json:"lowering"`
	Variants Variants      `json:"variants"`
	Devices  workerLists   `json:"devices"`
	Layout   *layoutFile   `json:"layout"`

	Transfers []PlannedCopies `json:"transfers"`
	Enter     []PlannedCopy   `json:"enter"`
	Leave     []PlannedCopy   `json:"leave"`
	Places    []PlannedPlace  `json:"places"`
	Arenas    []PlannedArena  `json:"arenas"`
	Room      *PlannedRoom    `json:"room"`
}

// workerLists is an object with a list of task names for each worker.
type workerLists []workerList

type workerList struct {
	worker string
	tasks  []string
}

// UnmarshalJSON refuses a worker that is listed twice, which a map would hide.
func (ls *workerLists) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	open, err := dec.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf(`devices: write an object of lists, as in {"cpu.0": ["task", ...]}`)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		l := workerList{worker: key.(string)}
		if err := dec.Decode(&l.tasks); err != nil {
			return fmt.Errorf("devices: %q: %w", l.worker, err)
		}
		if slices.ContainsFunc(*ls, func(other workerList) bool { return other.worker == l.worker }) {
			return fmt.Errorf("devices: %q is listed twice", l.worker)
		}
		*ls = append(*ls, l)
	}
	return nil
}

// layoutFile is the form of a layout.
type layoutFile struct {
	ArenaBytes map[string]int64 `json:"arena_bytes"`
	SavedBytes int64            `json:"saved_bytes"`
	Buffers    []placeFile      `json:"buffers"`
	Reuse      [][2]string      `json:"reuse,omitempty"`
	ReuseNext  [][2]string      `json:"reuse_next,omitempty"`
}

type placeFile struct {
	Buffer string `json:"buffer"`
	Arena  string `json:"arena"`
	Offset int64  `json:"offset"`
}

var arenaNames = [NumArenas]string{"network", "data", "step", "scratch"}

func (a Arena) String() string {
	if a < NumArenas {
		return arenaNames[a]
	}
	return fmt.Sprintf("invalid(%d)", uint8(a))
}

// WritePlan writes a plan as JSON: for each worker the names of its tasks in order.
func WritePlan(w io.Writer, plan *Plan, g *dag.Graph, p *platform.Platform) error {
	l := newLineWriter(w)
	l.field("format", PlanFormat)
	if plan.Policy != "" {
		l.field("policy", plan.Policy)
	}
	if plan.GraphHash != "" {
		l.field("graph", plan.GraphHash)
	}
	if plan.Lowering != nil {
		l.field("lowering", plan.Lowering)
	}
	if len(plan.Variants) > 0 {
		l.field("variants", plan.Variants)
	}
	var busy []int
	for i, list := range plan.Order {
		if len(list) > 0 {
			busy = append(busy, i)
		}
	}
	l.list("devices", "{", "}", len(busy), func(i int) {
		list := plan.Order[busy[i]]
		names := make([]string, len(list))
		for k, t := range list {
			names[k] = g.Tasks[t].Name
		}
		l.value(p.Workers[busy[i]].Name)
		l.write(": ")
		l.value(names)
	})
	if plan.Layout != nil {
		l.field("layout", plan.Layout.file(g))
	}
	writeList(l, "transfers", plan.Transfers)
	writeList(l, "enter", plan.Enter)
	writeList(l, "leave", plan.Leave)
	writeList(l, "places", plan.Places)
	writeList(l, "arenas", plan.Arenas)
	if plan.Room != nil {
		l.field("room", plan.Room)
	}
	if err := l.close(); err != nil {
		return fmt.Errorf("write the plan of graph %q: %w", g.Name, err)
	}
	return nil
}

// writeList writes a list with one entry on each line; none where it is nil.
func writeList[T any](l *lineWriter, name string, list []T) {
	if list != nil {
		l.list(name, "[", "]", len(list), func(i int) { l.value(list[i]) })
	}
}

func (l *Layout) file(g *dag.Graph) *layoutFile {
	f := &layoutFile{ArenaBytes: map[string]int64{}, SavedBytes: l.SavedBytes, Reuse: edgeNames(g, l.Reuse), ReuseNext: edgeNames(g, l.ReuseNext)}
	for a, bytes := range l.ArenaBytes {
		f.ArenaBytes[arenaNames[a]] = bytes
	}
	for b := range g.Buffers {
		if g.Buffers[b].ViewOf == dag.None {
			f.Buffers = append(f.Buffers, placeFile{g.Buffers[b].Name, l.Arena[b].String(), l.Offset[b]})
		}
	}
	return f
}

func edgeNames(g *dag.Graph, edges []Edge) [][2]string {
	var pairs [][2]string
	for _, e := range edges {
		pairs = append(pairs, [2]string{g.Tasks[e.From].Name, g.Tasks[e.To].Name})
	}
	return pairs
}

// ReadPlan reads a plan for a graph and a platform. name is the file's, for
// errors. What it returns names existing tasks and workers; [Plan.Check] says
// whether it can run.
func ReadPlan(r io.Reader, name string, g *dag.Graph, p *platform.Platform) (*Plan, error) {
	var f planFile
	if err := decode(r, name, &f); err != nil {
		return nil, err
	}
	if err := checkHeader(name, f.Format, PlanFormat, f.Graph, g); err != nil {
		return nil, err
	}
	n := newNames(name, g, p)
	plan := &Plan{Policy: f.Policy, GraphHash: f.Graph, Lowering: f.Lowering, Variants: f.Variants, Order: make([][]dag.TaskID, len(p.Workers)),
		Transfers: f.Transfers, Enter: f.Enter, Leave: f.Leave, Places: f.Places, Arenas: f.Arenas, Room: f.Room}
	if err := f.Variants.check(g, p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, list := range f.Devices {
		w, err := n.worker(list.worker)
		if err != nil {
			return nil, err
		}
		for _, task := range list.tasks {
			t, err := n.task(task)
			if err != nil {
				return nil, err
			}
			plan.Order[w] = append(plan.Order[w], t)
		}
	}
	if f.Layout != nil {
		var err error
		if plan.Layout, err = n.layout(f.Layout, g); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// layout turns the file's form into a Layout, every storage placed within its arena.
func (n *names) layout(f *layoutFile, g *dag.Graph) (*Layout, error) {
	l := &Layout{Arena: make([]Arena, len(g.Buffers)), Offset: make([]int64, len(g.Buffers)), SavedBytes: f.SavedBytes}
	known := 0
	for a, name := range arenaNames {
		bytes, ok := f.ArenaBytes[name]
		if ok {
			known++
		}
		if bytes < 0 {
			return nil, fmt.Errorf("%s: arena %q has %d bytes", n.file, name, bytes)
		}
		l.ArenaBytes[a] = bytes
	}
	if known != len(f.ArenaBytes) {
		return nil, fmt.Errorf("%s: arena_bytes names an arena that is not one of %q", n.file, arenaNames)
	}
	placed := make([]bool, len(g.Buffers))
	for _, b := range f.Buffers {
		id, err := n.buffer(b.Buffer)
		if err != nil {
			return nil, err
		}
		arena := slices.Index(arenaNames[:], b.Arena)
		if arena < 0 || placed[id] || g.Storage(id) != id {
			return nil, fmt.Errorf("%s: buffer %q in arena %q is placed twice, is a view, or the arena is not one of %q", n.file, b.Buffer, b.Arena, arenaNames)
		}
		if room := l.ArenaBytes[arena] - g.Buffers[id].Bytes(); b.Offset < 0 || b.Offset > room || b.Offset%Alignment != 0 {
			return nil, fmt.Errorf("%s: buffer %q at %d is not aligned to %d or not inside its arena", n.file, b.Buffer, b.Offset, Alignment)
		}
		placed[id], l.Arena[id], l.Offset[id] = true, Arena(arena), b.Offset
	}
	for b := range g.Buffers {
		owner := g.Storage(dag.BufferID(b))
		if !placed[owner] {
			return nil, fmt.Errorf("%s: the layout leaves out buffer %q", n.file, g.Buffers[owner].Name)
		}
		l.Arena[b], l.Offset[b] = l.Arena[owner], l.Offset[owner]
	}
	var err error
	if l.Reuse, err = n.edges(f.Reuse); err != nil {
		return nil, err
	}
	l.ReuseNext, err = n.edges(f.ReuseNext)
	return l, err
}

func (n *names) edges(pairs [][2]string) ([]Edge, error) {
	var edges []Edge
	for _, pair := range pairs {
		from, err := n.task(pair[0])
		if err != nil {
			return nil, err
		}
		to, err := n.task(pair[1])
		if err != nil {
			return nil, err
		}
		edges = append(edges, Edge{from, to})
	}
	return edges, nil
}
