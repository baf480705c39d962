package ranks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
)

// Exchange describes the part of a rank in an exchange with others.
type Exchange struct {
	Kind  string // such as allreduce, in the words of PyTorch
	Bytes int64  // of the rank's input
	Group string // name of the group of ranks; empty is the one of all
	// Ranks is how many the group has, and Members which they are. Zero and nil are not known: then these are all that name the group.
	Ranks   int
	Members []int
	Peer    int    // that a send goes to, and a receive comes from
	Tag     string // tells messages between the same two ranks apart
}

// kind says how an exchange is made of copies: each rank takes a slice of the inputs, or all ranks take what there is, whole inputs or the slices.
type kind struct {
	name                string // that the names of such exchanges begin with, without underscores
	slices, gathers     bool
	fromFirst, forFirst bool // only the first rank has an input, or a result
}

// kinds are the exchanges that become copies. A name that begins as another one comes first.
var kinds = []kind{
	{name: "allreduce", slices: true, gathers: true}, {name: "reducescatter", slices: true}, {name: "allgather", gathers: true}, {name: "alltoall", slices: true},
	{name: "broadcast", gathers: true, fromFirst: true}, {name: "reduce", gathers: true, forFirst: true}, {name: "gather", gathers: true, forFirst: true},
	{name: "scatter", slices: true, fromFirst: true}, {name: "barrier", gathers: true}, {name: send, gathers: true, fromFirst: true}, {name: receive, gathers: true, fromFirst: true},
}

// The two sides of a message.
const (
	send    = "send"
	receive = "recv"
)

func (x *Exchange) kind() (kind, bool) {
	name := strings.ReplaceAll(strings.ToLower(x.Kind), "_", "")
	at := slices.IndexFunc(kinds, func(k kind) bool { return strings.HasPrefix(name, k.name) })
	if at < 0 {
		return kind{}, false
	}
	return kinds[at], true
}

// Between reports whether an exchange is a message from one rank to another.
func (x *Exchange) Between() bool {
	k, ok := x.kind()
	return ok && (k.name == send || k.name == receive)
}

// key is the same for all ranks that meet in an exchange of a rank.
func (x *Exchange) key(rank int) string {
	from, to := rank, x.Peer
	switch k, _ := x.kind(); k.name {
	case receive:
		from, to = to, from
		fallthrough
	case send:
		return fmt.Sprintf("from rank %d to rank %d %s", from, to, x.Tag)
	}
	if len(x.Members) > 0 {
		return fmt.Sprintf("group %s of ranks %v", x.Group, x.Members)
	}
	return "group " + x.Group
}

// part is a rank in an exchange.
type part struct {
	*rank
	task int
	*Exchange
	input, result dag.BufferID
	bytes         int64 // of the input
}

// exchange adds an exchange of ranks that have come to it.
func (j *Job) exchange(parts []*part) error {
	first := parts[0]
	k, _ := first.kind()
	least := first.Bytes
	for _, p := range parts {
		other, _ := p.kind()
		alike := other.name == k.name || first.Between()
		if !alike || k.name == "allreduce" && p.Bytes != first.Bytes {
			return fmt.Errorf("%s: rank %d has %s of %d bytes where rank %d has %s of %d; give recordings of the same steps", p.File(), p.number, p.Kind, p.Bytes, first.number, first.Kind, first.Bytes)
		}
		least = min(least, p.Bytes)
	}
	if k.fromFirst {
		least = first.Bytes
	}
	if least < int64(len(parts)) && k.slices {
		k.slices, k.gathers = false, true
	}
	for i, p := range parts {
		j.begin(k, i, p)
	}
	givers := parts
	if k.fromFirst {
		givers = parts[:1]
	}
	if k.slices {
		for i, p := range parts {
			j.takeSlice(p, givers, i, len(parts), k.gathers)
		}
	}
	for i, p := range parts {
		if k.gathers && (i == 0 || !k.forFirst) {
			j.takeAll(p, givers, k.slices)
		}
		j.done(p.rank, p.task)
	}
	return nil
}

// begin adds the task with which a rank has its input ready.
func (j *Job) begin(k kind, at int, p *part) {
	task := p.part(p.op())
	if at == 0 || !k.fromFirst {
		p.bytes = min(max(1, p.Bytes), dag.MaxBufferElems)
		p.input = j.b.Buffer(dag.Buffer{Name: j.next(p.op()) + ".in", Shape: []int{int(p.bytes)}, Type: dag.Uint8})
		task.Accesses = []dag.Access{{Region: dag.Region{Buffer: p.input}, Mode: dag.Write}}
	}
	j.Add(p.number, p.task, task)
}

func (p *part) op() string { return "exchange " + p.Kind }

// part is a task of a rank's exchange, which takes no time by itself.
func (p *part) part(op string) dag.Task {
	of := p.Describe(p.task)
	return dag.Task{Op: op, Costs: []dag.Cost{{Key: dag.AnyDevice}}, Labels: of.Labels, Placement: of.Placement}
}

// takeSlice lets a rank take its slice of all inputs. It keeps the result if others take that.
func (j *Job) takeSlice(p *part, givers []*part, at, n int, kept bool) {
	task := p.part(p.op())
	for _, g := range givers {
		lo, hi := int(g.bytes)*at/n, int(g.bytes)*(at+1)/n
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: g.input, Box: dag.Box{{Lo: lo, Hi: hi}}}, Mode: dag.Read})
	}
	if kept {
		p.result = j.b.Buffer(dag.Buffer{Name: j.next(p.op()) + ".slice", Shape: []int{int(p.bytes)*(at+1)/n - int(p.bytes)*at/n}, Type: dag.Uint8})
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: p.result}, Mode: dag.Write})
	}
	j.Add(p.number, p.task, task)
}

// takeAll lets a rank take the whole inputs of others, or their results.
func (j *Job) takeAll(p *part, givers []*part, results bool) {
	task := p.part(p.op())
	for _, g := range givers {
		from := g.input
		if results {
			from = g.result
		}
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: from}, Mode: dag.Read})
	}
	j.Add(p.number, p.task, task)
}

// Shifted gives the exchange to another rank of a training of some ranks, for which the recorded rank stands: its group has as many ranks, as far apart. The
// group of all recorded ranks becomes the one of all. It is nil for messages between two ranks, since a rank that stands for all receives from none.
func (x *Exchange) Shifted(rank, ranks, recorded int) *Exchange {
	if x == nil || x.Between() {
		return nil
	}
	out := *x
	if recorded == 0 || x.Ranks == 0 || x.Ranks >= recorded {
		out.Ranks, out.Members = ranks, nil
		return &out
	}
	stride := 1
	if len(x.Members) > 1 {
		stride = cmp.Or(x.Members[1]-x.Members[0], 1)
	}
	out.Members = make([]int, x.Ranks)
	for i := range out.Members {
		out.Members[i] = rank + (i-rank/stride%x.Ranks)*stride
	}
	return &out
}
