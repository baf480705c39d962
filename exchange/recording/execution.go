package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dahl/exchange/ranks"
)

// executionNode is an operator of an execution trace. What holds it is its parent.
type executionNode struct {
	ID      int64             `json:"id"`
	Parent  int64             `json:"ctrl_deps"`
	Name    string            `json:"name"`
	Inputs  executionOperands `json:"inputs"`
	Outputs executionOperands `json:"outputs"`

	// Before version 1.1 of the schema the number, the parent, the shapes and the types stand in the node itself.
	Record json.RawMessage   `json:"rf_id"`
	Above  int64             `json:"parent"`
	Shapes []json.RawMessage `json:"input_shapes"`
	Types  []json.RawMessage `json:"input_types"`
	Attrs  []struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	} `json:"attrs"`
}

type executionOperands struct {
	Values []json.RawMessage `json:"values"`
	Shapes []json.RawMessage `json:"shapes"`
	Types  []json.RawMessage `json:"types"`
}

// UnmarshalJSON implements [json.Unmarshaler]. Before version 1.1 operands are a list of values.
func (o *executionOperands) UnmarshalJSON(text []byte) error {
	type plain executionOperands
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, &o.Values)
	}
	return json.Unmarshal(text, (*plain)(o))
}

// executed is an operator of an execution trace.
type executed struct {
	event
	id, parent int64
	thread     int64
}

// maxRanks bounds the ranks of a group.
const maxRanks = 1 << 16

// checkGroup refuses a number of ranks that no group has; 0 is not known.
func checkGroup(size int64) error {
	if size < 0 || size > maxRanks {
		return fmt.Errorf("%d; the file is damaged: want 1 to %d", size, maxRanks)
	}
	return nil
}

// execution is an execution trace: operators in the order in which they began, without times.
type execution struct {
	file      string
	process   string
	operators []executed

	room *Room
	in   *entryReader
}

// readExecution reads an execution trace of PyTorch's ExecutionTraceObserver.
func readExecution(f File) (*execution, error) {
	x, name := &execution{file: f.Name, room: f.Room, in: newEntryReader(f.In)}, f.Name
	dec := json.NewDecoder(x.in)
	if err := x.document(dec); err != nil {
		return nil, streamError(name, dec, err)
	}
	if len(x.operators) == 0 {
		return nil, fmt.Errorf("%s: no operator is in it; record with ExecutionTraceObserver", name)
	}
	slices.SortStableFunc(x.operators, func(a, b executed) int { return cmp.Compare(a.record, b.record) })
	return x, nil
}

func (x *execution) document(dec *json.Decoder) error {
	if err := begin(dec, '{', "it begins with %v; want an object with nodes"); err != nil {
		return err
	}
	return members(dec, func(key string) error {
		if key == "nodes" {
			return x.nodes(dec)
		}
		var value json.RawMessage
		err := dec.Decode(&value)
		if key == "pid" {
			x.process = text(value)
		}
		return err
	})
}

func (x *execution) nodes(dec *json.Decoder) error {
	if err := begin(dec, '[', "nodes is %v; want a list"); err != nil {
		return err
	}
	return inside(dec, func() error {
		var n executionNode
		from := dec.InputOffset()
		if err := dec.Decode(&n); notType(err) != nil {
			return err
		}
		x.in.next()
		return cmp.Or(x.room.Take(eventBytes+dec.InputOffset()-from), x.add(&n))
	})
}

// add takes a node. Nodes that stand for threads and processes have no number of an operator.
func (x *execution) add(n *executionNode) error {
	op := executed{event: event{name: n.Name, cat: operator, record: whole(n.Record)}, id: n.ID, parent: cmp.Or(n.Parent, n.Above)}
	group, element, first, stride := ranks.Exchange{}, int64(1), 0, 0
	for _, a := range n.Attrs {
		switch a.Name {
		case "rf_id":
			op.record = whole(a.Value)
		case "tid":
			op.thread = whole(a.Value)
		case "collective_name":
			group.Kind = text(a.Value)
		case "dtype":
			element = elementBytes(text(a.Value))
		case "in_msg_nelems":
			group.Bytes = whole(a.Value)
		case "pg_name":
			group.Group = text(a.Value)
		case "pg_size":
			if err := checkGroup(whole(a.Value)); err != nil {
				return fmt.Errorf("node %q: pg_size is %w", n.Name, err)
			}
			group.Ranks = int(whole(a.Value))
		case "global_rank_start":
			first = int(whole(a.Value))
		case "global_rank_stride":
			stride = int(whole(a.Value))
		}
	}
	if op.record == 0 {
		return nil
	}
	if group.Kind != "" && group.Bytes > 0 {
		group.Bytes *= element
		if stride > 0 { // a name of the group, which holds no list of thousands of ranks
			group.Group = fmt.Sprintf("%s of ranks %d, %d and so on", group.Group, first, first+stride)
		}
		op.exchange = &group
	}
	if n.Types != nil {
		n.Inputs.Shapes, n.Inputs.Types = n.Shapes, n.Types
	}
	op.args = &operands{inputs: n.Inputs.operands(), outputs: n.Outputs.operands()}
	x.operators = append(x.operators, op)
	return nil
}

func (o *executionOperands) operands() []operand {
	list := make([]operand, len(o.Types))
	for i := range list {
		list[i].kind = text(o.Types[i])
		if i < len(o.Values) {
			list[i].value = text(o.Values[i])
		}
		if i < len(o.Shapes) {
			list[i].shapes = shapesOf(o.Shapes[i])
		}
	}
	return list
}

// join gives operators of a recording the operands that the execution trace has for them: by the number of the operator, and its name.
func (r *recording) join(x *execution) {
	byRecord := map[int64]*executed{}
	for i := range x.operators {
		byRecord[x.operators[i].record] = &x.operators[i]
	}
	missing := 0
	for i := range r.threads {
		for j := range r.threads[i].events {
			e := &r.threads[i].events[j]
			if e.cat != operator {
				continue
			}
			same, ok := byRecord[cmp.Or(e.record, e.external)]
			switch {
			case !ok || same.name != e.name:
				missing++
			case e.args == nil || len(e.args.inputs) == 0:
				e.args = same.args
			}
		}
	}
	r.left["operators without a node in "+x.file] = missing
	if missing == 0 {
		delete(r.left, "operators without a node in "+x.file)
	}
}

// leaves are the operators with known work and the collectives that hold no other one of these.
func (x *execution) leaves() (list []*executed) {
	outer := map[int64]bool{}
	parent := map[int64]int64{}
	for i := range x.operators {
		parent[x.operators[i].id] = x.operators[i].parent
	}
	takes := func(op *executed) bool { return op.exchange != nil || op.hasWork() }
	for i := range x.operators {
		if op := &x.operators[i]; takes(op) {
			for at, ok := op.parent, true; ok && !outer[at]; at, ok = parent[at], parent[at] != at {
				outer[at] = true
				if _, known := parent[at]; !known {
					break
				}
			}
		}
	}
	for i := range x.operators {
		if op := &x.operators[i]; takes(op) && !outer[op.id] {
			list = append(list, op)
		}
	}
	return list
}

// stepsBegan are the profiler's annotations of steps.
func (x *execution) stepsBegan() (list []*executed) {
	for i := range x.operators {
		if strings.HasPrefix(x.operators[i].name, stepPrefix) {
			list = append(list, &x.operators[i])
		}
	}
	return list
}

// addStep begins a step where the recording ends so far.
func (r *recording) addStep(name string) {
	if n := len(r.steps); n > 0 {
		r.steps[n-1].end = r.end
	}
	r.steps = append(r.steps, step{name, span{r.end, r.end}})
}

// recorded makes a recording without host time of an execution trace. The time of an operator is by the roofline of the guessed
// GPU, and only its place in the order is recorded.
func (x *execution) recorded() *recording {
	r := &recording{file: x.file, rank: -1, left: counts{}, byRoofline: true}
	s := stream{id: "0"}
	kinds := counts{}
	leaves, began := x.leaves(), x.stepsBegan()
	for _, op := range leaves {
		e := op.event
		e.cat = kernel
		e.args = op.args
		w, _ := op.work()
		for len(began) > 0 && began[0].record < op.record {
			r.addStep(stepWord + began[0].name[len(stepPrefix):])
			began = began[1:]
		}
		e.start = r.end
		e.end = e.start + int64(1e9*max(w.flops/unknownBoard.float32, float64(w.bytes)/unknownBoard.bytesPerSec))
		r.end = e.end
		s.events = append(s.events, e)
	}
	held := map[int64]bool{}
	for _, op := range leaves {
		held[op.id] = true
	}
	parents := map[int64]bool{}
	for i := range x.operators {
		parents[x.operators[i].parent] = true
	}
	for i := range x.operators {
		if op := &x.operators[i]; !held[op.id] && !parents[op.id] && strings.HasPrefix(op.name, "aten::") {
			kinds[op.name]++
		}
	}
	r.end++
	r.streams = []stream{s}
	if len(r.steps) == 0 {
		r.steps = []step{{"the recording", r.span}}
	}
	r.steps[len(r.steps)-1].end, r.steps[0].start = r.end, 0
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		r.left["operators "+name+" without known work"] = kinds[name]
	}
	return r
}
