package exchange

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/exchange/ranks"
	"dahl/platform"
)

// chakraRank is a trace as one of the ranks of a training.
type chakraRank struct {
	*file
	number int
	order  []int
}

// exchange of a node with other ranks; nil where there is none.
func (n *chakraNode) exchange() *ranks.Exchange {
	x := &ranks.Exchange{Bytes: amountOf(n.commSize), Group: n.group, Tag: n.tag}
	switch {
	case n.kind == chakraSend:
		x.Kind, x.Peer = "send", int(n.to)
	case n.kind == chakraReceive:
		x.Kind, x.Peer = "recv", int(n.from)
	case n.kind == chakraCollective && n.commType < uint64(len(chakraKinds)):
		x.Kind = chakraKinds[n.commType]
	default:
		return nil
	}
	return x
}

// chakraGraph makes a graph of one rank by itself.
func (f *file) chakraGraph() (*dag.Graph, error) {
	for _, x := range f.exchanges {
		if x != nil {
			f.leave("exchanges with other ranks, which wait for none; give the traces of all ranks", 1)
		}
	}
	return f.graph()
}

// joinChakra makes a graph of all ranks. The GPU of rank n is gpun. The graph is named as the files, without the rank.
func joinChakra(files []*file) (*dag.Graph, error) {
	all := make([]ranks.Rank, len(files))
	numbered, err := rankNumbers(files)
	if err != nil {
		return nil, err
	}
	for n, f := range numbered {
		r := &chakraRank{file: f, number: n}
		if r.order, err = f.nodesInOrder(); err != nil {
			return nil, err
		}
		all[n] = r
	}
	name := numbered[0].stem()
	job := ranks.New(strings.TrimSuffix(name, filepath.Ext(name)), all)
	files[0].leave("exchanges with ranks that have no trace, which take as long as recorded", job.Kept())
	return job.Graph()
}

// rankNumbers orders files by the number of their rank, which stands before the ending: name.0.et. Without numbers they stay in their order.
func rankNumbers(files []*file) ([]*file, error) {
	numbers := map[*file]int{}
	for _, f := range files {
		stem := f.stem()
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(stem), "."))
		if err != nil {
			return files, nil
		}
		numbers[f] = n
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b *file) int { return numbers[a] - numbers[b] })
	for i, f := range files {
		if numbers[f] != i {
			return nil, fmt.Errorf("%s is of rank %d, and none of the %d files is of rank %d; give one for each rank", f.name, numbers[f], len(files), i)
		}
	}
	return files, nil
}

// nodesInOrder is the order of the nodes, with names that a graph can have.
func (f *file) nodesInOrder() ([]int, error) {
	for i := range f.nodes {
		if err := f.plain(f.nodes[i].line, f.nodes[i].task.Name, f.nodes[i].task.Op); err != nil {
			return nil, err
		}
	}
	return f.order()
}

// File implements [ranks.Rank].
func (r *chakraRank) File() string { return r.name }

// Order implements [ranks.Rank].
func (r *chakraRank) Order() []int { return r.order }

// After implements [ranks.Rank].
func (r *chakraRank) After(node int) (before []int) {
	for _, e := range r.nodes[node].in {
		before = append(before, r.edges[e].from)
	}
	return before
}

// Exchange implements [ranks.Rank].
func (r *chakraRank) Exchange(node int) *ranks.Exchange { return r.exchanges[node] }

// Describe implements [ranks.Rank]. An operation is a node's name without its number.
func (r *chakraRank) Describe(node int) dag.Task {
	task := r.nodes[node].task
	_, task.Op, _ = strings.Cut(task.Name, " ")
	if task.Op == "" {
		task.Op = task.Name
	}
	device := "gpu" + strconv.Itoa(r.number)
	if len(task.Costs) == 1 && task.Costs[0].Key == platform.CPU {
		device = platform.CPU
	}
	task.Placement = &dag.Placement{Device: device}
	return task
}
