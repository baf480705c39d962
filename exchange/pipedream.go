package exchange

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dahl/dag"
)

// profileNode is a layer of a profile. The input has no times, and is no task.
type profileNode struct {
	input                 bool
	forwardNs, backwardNs int64
	activation, weights   int64 // bytes
	out, stash, gradient  []dag.BufferID
	forward, backward     []dag.TaskID
	toInputs              map[int][]dag.BufferID // by node before it: the gradient of that one's output
	parameters            dag.BufferID
}

// separator stands between the parts of a line.
const separator = " -- "

// maxMinibatches bounds the mini-batches of a step, and maxGradients how often its updates read gradients: each update reads the gradients of all mini-batches.
const (
	maxMinibatches = 1024
	maxGradients   = 1 << 22
)

func (f *file) readPipeDream(src []byte) error {
	if f.Minibatches < 0 || f.Minibatches > maxMinibatches {
		return fmt.Errorf("%s: a step of %d mini-batches; take 1 to %d", f.name, f.Minibatches, maxMinibatches)
	}
	ids := map[string]int{}
	lines := strings.Split(strings.TrimRight(string(src), " \t\r\n"), "\n")
	for i, line := range lines {
		if text := strings.TrimRight(line, "\r "); !strings.HasPrefix(text, "\t") {
			if err := f.profileLine(i+1, text, ids); err != nil {
				return err
			}
		}
	}
	for i, line := range lines {
		if text := strings.TrimRight(line, "\r "); strings.HasPrefix(text, "\t") {
			if err := f.profileEdge(i+1, strings.TrimPrefix(text, "\t"), ids); err != nil {
				return err
			}
		}
	}
	return nil
}

// profileLine reads a node: its name, its description, its times and sizes, and a stage that is left out.
func (f *file) profileLine(line int, text string, ids map[string]int) error {
	parts := strings.Split(text, separator)
	if len(parts) < 3 || len(parts) > 4 {
		return f.errorf(line, "a node is %q; write name -- description -- forward_compute_time=ms, backward_compute_time=ms, activation_size=bytes, parameter_size=bytes", text)
	}
	name := parts[0]
	if err := f.plain(line, name); err != nil {
		return err
	}
	if _, ok := ids[name]; ok {
		return f.errorf(line, "node %q is given twice; write another name", name)
	}
	p := profileNode{toInputs: map[int][]dag.BufferID{}, parameters: dag.None, input: strings.HasPrefix(parts[1], "Input")}
	rest := parts[2]
	for _, of := range []struct {
		key  string
		to   *int64
		unit float64
	}{{"forward_compute_time", &p.forwardNs, nsPerMs}, {"backward_compute_time", &p.backwardNs, nsPerMs}, {"activation_size", &p.activation, 1}, {"parameter_size", &p.weights, 1}} {
		field, after, _ := strings.Cut(rest, ", ")
		value, ok := strings.CutPrefix(field, of.key+"=")
		if !ok {
			return f.errorf(line, "%q stands where %s=number has to", field, of.key)
		}
		rest = after
		// A layer with several outputs has a list of sizes.
		for _, one := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(value, "["), "]"), "; ") {
			n, err := f.number(line, of.key, one, of.unit)
			if err != nil {
				return err
			}
			if *of.to += n; *of.to >= maxAmount {
				return f.errorf(line, "%s is %s in all; write less than %.3g", of.key, value, maxAmount/of.unit)
			}
		}
	}
	if rest != "" {
		return f.errorf(line, "%q stands behind the end of a node; take it out", rest)
	}
	if len(parts) == 4 {
		f.leave("stages of nodes", 1)
	}
	if p.input && p.forwardNs > 0 {
		f.leave("times of inputs", 1)
	}
	ids[name] = len(f.nodes)
	f.nodes, f.profile = append(f.nodes, node{task: dag.Task{Name: name}, line: line}), append(f.profile, p)
	return nil
}

func (f *file) profileEdge(line int, text string, ids map[string]int) error {
	from, to, _ := strings.Cut(text, separator)
	a, okFrom := ids[from]
	b, okTo := ids[to]
	if !okFrom || !okTo {
		return f.errorf(line, "an edge is %q, and one of its ends is no node; write name -- name", text)
	}
	if f.profile[b].input {
		return f.errorf(line, "the edge from %q leads to input %q, which is given; take it out", from, to)
	}
	f.edges = append(f.edges, edge{a, b, none, line})
	return nil
}

// training builds a step of a training of the profile: for each mini-batch and layer a forward and a backward pass, and at the end
// the updates of all weights.
func (f *file) training() (*dag.Graph, error) {
	if err := f.checkUpdates(); err != nil {
		return nil, err
	}
	order, err := f.order()
	if err != nil {
		return nil, err
	}
	t := training{file: f, b: f.builder(), minibatches: max(1, f.Minibatches), next: make([][]int, len(f.nodes))}
	for _, e := range f.edges {
		t.next[e.from] = append(t.next[e.from], e.to)
	}
	add := func(each func(at, minibatch int)) error {
		for minibatch := range t.minibatches {
			for _, at := range order {
				if each(at, minibatch); t.b.Err() != nil {
					return f.errorf(f.nodes[at].line, "%w", t.b.Err())
				}
			}
		}
		return nil
	}
	if err := add(t.forward); err != nil {
		return nil, err
	}
	slices.Reverse(order)
	for _, each := range []func(at, minibatch int){t.backward, t.update, t.gather} {
		if err := add(each); err != nil {
			return nil, err
		}
	}
	g, err := t.b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return g, nil
}

// checkUpdates refuses a step whose updates would fill the memory.
func (f *file) checkUpdates() error {
	layers, m := 0, max(1, f.Minibatches)
	for i := range f.profile {
		if f.profile[i].weights > 0 {
			layers++
		}
	}
	if reads := m * m * layers; m > 1 && reads > maxGradients {
		return fmt.Errorf("%s: each of %d mini-batches updates a part of %d layers with the gradients of all: %d reads, and a step has at most %d; take at most %d mini-batches",
			f.name, m, layers, reads, maxGradients, max(1, int(math.Sqrt(float64(maxGradients)/float64(layers)))))
	}
	return nil
}

// training is a graph in the making.
type training struct {
	*file
	b           *dag.Builder
	minibatches int
	next        [][]int // by node: the nodes after it
}

// named is a name of a step with one mini-batch, or with the number of one of several.
func (t *training) named(minibatch int, words ...string) string {
	name := strings.Join(words, " ")
	if t.minibatches > 1 {
		name += fmt.Sprintf(" #%d", minibatch)
	}
	return name
}

// task is a task of a layer, which stays with the others of the layer in its mini-batch.
func (t *training) task(at, minibatch int, phase string, ns int64) dag.Task {
	layer := t.nodes[at].task.Name
	return dag.Task{
		Name: t.named(minibatch, layer, phase), Costs: everywhere(ns), Placement: &dag.Placement{Colocate: t.named(minibatch, layer)},
		Labels: dag.Labels{Layer: layer, Phase: phase, MicroBatch: int32(minibatch)},
	}
}

// buffer is a buffer of a layer, and None where it has no bytes.
func (t *training) buffer(name string, bytes int64, role dag.Role) dag.BufferID {
	if bytes == 0 {
		return dag.None
	}
	return addBuffer(t.b, name, bytes, role)
}

// access adds an access to a buffer that may be None.
func access(task *dag.Task, mode dag.Mode, buffers ...dag.BufferID) {
	for _, b := range buffers {
		if b != dag.None {
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: b}, Mode: mode})
		}
	}
}

// weights is the buffer of the weights of a layer.
func (t *training) weights(at int) dag.BufferID {
	p := &t.profile[at]
	if p.parameters == dag.None {
		p.parameters = t.buffer(t.nodes[at].task.Name+" weights", p.weights, dag.Parameter)
	}
	return p.parameters
}

func (t *training) forward(at, minibatch int) {
	p, name := &t.profile[at], t.nodes[at].task.Name
	if p.input {
		p.out = append(p.out, t.buffer(t.named(minibatch, name), p.activation, dag.Input))
		return
	}
	task := t.task(at, minibatch, "forward", p.forwardNs)
	p.out = append(p.out, t.buffer(t.named(minibatch, name), p.activation, dag.Activation))
	access(&task, dag.Write, p.out[minibatch])
	if t.Stash {
		p.stash = append(p.stash, t.buffer(t.named(minibatch, name, "stash"), p.weights, dag.Activation))
		access(&task, dag.Write, p.stash[minibatch])
	} else {
		access(&task, dag.Read, t.weights(at))
	}
	for _, e := range t.nodes[at].in {
		before := &t.profile[t.edges[e].from]
		if access(&task, dag.Read, before.out[minibatch]); before.out[minibatch] == dag.None && !before.input {
			task.After = append(task.After, before.forward[minibatch])
		}
	}
	p.forward = append(p.forward, t.b.Task(task))
}

// backward takes the gradients of a layer's output from the layers after it. It keeps what the forward pass read and wrote.
func (t *training) backward(at, minibatch int) {
	p, name := &t.profile[at], t.nodes[at].task.Name
	if p.input {
		return
	}
	task := t.task(at, minibatch, "backward", p.backwardNs)
	for _, after := range t.next[at] {
		next := &t.profile[after]
		if gradient := next.toInputs[at][minibatch]; gradient != dag.None {
			access(&task, dag.Read, gradient)
		} else {
			task.After = append(task.After, next.backward[minibatch])
		}
	}
	if access(&task, dag.Read, p.out[minibatch]); p.out[minibatch] == dag.None {
		task.After = append(task.After, p.forward[minibatch])
	}
	if t.Stash {
		access(&task, dag.Read, p.stash[minibatch])
	} else {
		access(&task, dag.Read, t.weights(at))
	}
	for _, e := range t.nodes[at].in {
		from := t.edges[e].from
		before := &t.profile[from]
		access(&task, dag.Read, before.out[minibatch])
		gradient := dag.None
		if !before.input {
			gradient = t.buffer(t.named(minibatch, name+"->"+t.nodes[from].task.Name, "gradient"), before.activation, dag.Gradient)
		}
		access(&task, dag.Write, gradient)
		p.toInputs[from] = append(p.toInputs[from], gradient)
	}
	p.gradient = append(p.gradient, t.buffer(t.named(minibatch, name, "weight gradient"), p.weights, dag.Gradient))
	access(&task, dag.Write, p.gradient[minibatch])
	p.backward = append(p.backward, t.b.Task(task))
}

// update adds the gradients of all mini-batches to the part of the weights that falls to one of them. So replicas of a layer exchange
// gradients directly, and each updates its part.
func (t *training) update(at, minibatch int) {
	p := &t.profile[at]
	lo, hi := p.weights*int64(minibatch)/int64(t.minibatches), p.weights*int64(minibatch+1)/int64(t.minibatches)
	if lo == hi {
		return
	}
	task := t.task(at, minibatch, "update", 0)
	var part dag.Box // all of it
	if t.minibatches > 1 {
		part = dag.Box{{Lo: int(lo), Hi: int(hi)}}
	}
	for _, gradient := range p.gradient {
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: gradient, Box: part}, Mode: dag.Read})
	}
	task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: t.weights(at), Box: part}, Mode: dag.ReadWrite})
	t.b.Task(task)
}

// gather brings the parts that others have updated to the replica of a mini-batch, where no forward pass waits for them.
func (t *training) gather(at, minibatch int) {
	if !t.Stash || t.minibatches == 1 || t.profile[at].weights == 0 {
		return
	}
	task := t.task(at, minibatch, "gather", 0)
	access(&task, dag.Read, t.weights(at))
	t.b.Task(task)
}
