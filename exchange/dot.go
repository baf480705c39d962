package exchange

import (
	"slices"
	"strings"

	"dahl/dag"
)

// dotValue is an attribute as it stands in the file.
type dotValue struct {
	text string
	line int // 0 means that it is not given
}

// dotAttrs are the attributes of a node or an edge that have a meaning here. They are read as numbers
// at the end, when it is known which of the two counts.
type dotAttrs struct{ size, weight, label dotValue }

// dotReader reads statements. The first mistake stays in its scanner, which then is at its end.
type dotReader struct {
	dotScanner
	byName map[string]int

	nodeAttrs []dotAttrs // of the file's nodes
	links     []dotLink

	nodeDefaults, edgeDefaults dotAttrs

	depth int // of the subgraph in which it reads
}

type dotLink struct {
	dotAttrs
	from, to, line int
}

func (f *file) readDOT(src []byte) error {
	r := dotReader{dotScanner: dotScanner{file: f, src: string(src), line: 1}, byName: map[string]int{}}
	r.advance()
	if r.isWord("strict") {
		r.advance()
	}
	if !r.isWord("digraph") {
		r.fail(`%s stands where "digraph" has to, since edges of a task graph are directed`, r.now)
	}
	r.advance()
	if r.now.kind == dotName {
		r.advance()
	}
	r.expect('{')
	for r.err == nil && r.now.kind != '}' {
		r.statement()
	}
	r.expect('}')
	if r.now.kind != dotEnd {
		r.fail("%s stands behind the end of the graph; take it out", r.now)
	}
	if r.err != nil {
		return r.err
	}
	return r.finish()
}

// statement reads a node, a chain of edges, defaults, or an attribute of the graph.
func (r *dotReader) statement() {
	switch {
	case r.now.kind == ';':
		r.advance()
	case r.now.kind == '{' || r.isWord("subgraph"):
		r.subgraph()
	case r.isWord("graph"):
		r.advance()
		r.attrs(dotAttrs{})
	case r.isWord("node"):
		r.advance()
		r.nodeDefaults = r.attrs(r.nodeDefaults)
	case r.isWord("edge"):
		r.advance()
		r.edgeDefaults = r.attrs(r.edgeDefaults)
	default:
		r.chain()
	}
}

// subgraph reads statements for the whole graph. Its defaults end with it.
func (r *dotReader) subgraph() {
	if r.isWord("subgraph") {
		r.advance()
		if r.now.kind == dotName {
			r.advance()
		}
	}
	if r.depth++; r.depth > maxZones {
		r.fail("more than %d subgraphs within each other", maxZones)
	}
	nodes, edges := r.nodeDefaults, r.edgeDefaults
	r.expect('{')
	for r.err == nil && r.now.kind != '}' && r.now.kind != dotEnd {
		r.statement()
	}
	r.expect('}')
	r.nodeDefaults, r.edgeDefaults = nodes, edges
	r.depth--
	if r.now.kind == dotArrow {
		r.fail("an edge from all nodes of a subgraph cannot be imported; write an edge from each")
	}
}

// chain reads "key=value", or a node or "a -> b -> c" with its attributes.
func (r *dotReader) chain() {
	first := r.name()
	if r.now.kind == '=' {
		r.advance()
		r.name()
		return
	}
	begin := len(r.links)
	from := r.node(first)
	for r.now.kind == dotArrow {
		r.advance()
		head := r.name()
		to := r.node(head)
		r.links = append(r.links, dotLink{from: from, to: to, line: head.line})
		from = to
	}
	if r.now.kind == ':' || r.now.kind == '-' {
		r.fail("%s: ports and undirected edges cannot be imported; write a -> b", r.now)
	}
	if len(r.links) == begin {
		r.nodeAttrs[from] = r.attrs(r.nodeAttrs[from])
		return
	}
	attrs := r.attrs(r.edgeDefaults)
	for i := range r.links[begin:] {
		r.links[begin+i].dotAttrs = attrs
	}
}

// node finds a node, or adds it.
func (r *dotReader) node(name dotToken) int {
	id, ok := r.byName[name.text]
	if !ok {
		id = len(r.nodes)
		r.byName[name.text] = id
		n := node{line: name.line}
		n.task.Name = name.text
		r.nodes, r.nodeAttrs = append(r.nodes, n), append(r.nodeAttrs, r.nodeDefaults)
	}
	return id
}

// attrs reads "[key=value, …]", any number of times, over attributes that hold already.
func (r *dotReader) attrs(a dotAttrs) dotAttrs {
	for r.now.kind == '[' {
		r.advance()
		for r.err == nil && r.now.kind != ']' {
			if r.now.kind == ',' || r.now.kind == ';' {
				r.advance()
				continue
			}
			key := r.name()
			r.expect('=')
			value := r.name()
			switch strings.ToLower(key.text) {
			case "size":
				a.size = dotValue{value.text, value.line}
			case "weight":
				a.weight = dotValue{value.text, value.line}
			case "label":
				a.label = dotValue{value.text, value.line}
			default:
				r.leave(strings.ToLower(key.text)+" attributes", 1)
			}
		}
		r.expect(']')
	}
	return a
}

// finish makes numbers of the attribute that counts in this file: size where any node has one.
func (r *dotReader) finish() error {
	if r.isStarpu() {
		if r.Unit != 0 {
			return r.errorf(1, "the codelets of StarPU have no times; leave --unit out")
		}
		return r.codelets()
	}
	sized := slices.IndexFunc(r.nodeAttrs, func(a dotAttrs) bool { return a.size.line != 0 })
	if r.Unit != 0 && sized >= 0 {
		return r.errorf(r.nodeAttrs[sized].size.line, "a size is flop, which has no unit; leave --unit out")
	}
	unitNs := 0.0 // sizes count
	if sized < 0 {
		r.took = "weight of nodes as the time on every device, of edges as bytes at 1 GB/s"
		unitNs = r.takeUnit()
	} else {
		r.took = "size of nodes as flop, of edges as bytes"
	}
	for i, a := range r.nodeAttrs {
		if err := r.weigh(&r.nodes[i], a, unitNs); err != nil {
			return err
		}
	}
	for _, l := range r.links {
		bytes, err := r.moved(l.dotAttrs, unitNs)
		if err != nil {
			return err
		}
		r.addEdge(l.from, l.to, bytes, l.line)
	}
	return nil
}

// isStarpu recognises the dag.dot of StarPU: tasks that only have the name of their codelet.
func (r *dotReader) isStarpu() bool {
	for i, a := range r.nodeAttrs {
		name := r.nodes[i].task.Name
		if a.size.line != 0 || a.weight.line != 0 || !strings.HasPrefix(name, "task_") && !strings.HasPrefix(name, "tag_") {
			return false
		}
	}
	return len(r.nodes) > 0
}

// codelets makes tasks of operations, whose times the platform's models know.
func (r *dotReader) codelets() error {
	r.took = "labels as operations, whose times the models of a platform have"
	r.leave("footprints, which the file lacks: of calls of several sizes in a model, nothing says which", len(r.nodes))
	for i, a := range r.nodeAttrs {
		task := &r.nodes[i].task
		if task.Op, task.Type = a.label.text, dag.Float32; task.Op == "" || strings.HasPrefix(task.Op, "_starpu_") {
			task.Costs = everywhere(0)
			r.leave("tasks without a label or of StarPU's own, which take no time", 1)
		}
	}
	given := map[[2]int]bool{}
	for _, l := range r.links {
		if ends := [2]int{l.from, l.to}; !given[ends] {
			given[ends] = true
			r.addEdge(l.from, l.to, 0, l.line)
		}
	}
	return nil
}

// weigh gives a task its work or its time.
func (r *dotReader) weigh(n *node, a dotAttrs, unitNs float64) (err error) {
	name, ns := n.task.Name, int64(0)
	switch {
	case unitNs > 0 && a.weight.line == 0:
		return r.errorf(n.line, "node %q has neither size nor weight; write size=flop or weight=time", name)
	case unitNs > 0:
		ns, err = r.number(a.weight.line, "weight of a node", a.weight.text, unitNs)
		n.task.Costs = everywhere(ns)
	case a.weight.line != 0:
		return r.errorf(a.weight.line, "node %q has a weight, and others have a size; write one of the two at all nodes", name)
	case a.size.line != 0:
		n.task.Type = dag.Float32
		n.task.Flops, err = r.float(a.size.line, "size of a node", a.size.text)
	case name != "root" && name != "end": // these SimGrid adds where they are missing
		return r.errorf(n.line, "node %q has no size, and others have one; write size=flop, which may be 0", name)
	}
	return err
}

// moved is the number of bytes along an edge.
func (r *dotReader) moved(a dotAttrs, unitNs float64) (int64, error) {
	switch {
	case unitNs == 0 && a.size.line != 0:
		text, negative := strings.CutPrefix(a.size.text, "-")
		bytes, err := r.number(a.size.line, "size of an edge", text, 1)
		if negative {
			bytes = 0
		}
		return bytes, err
	case unitNs > 0 && a.weight.line != 0:
		return r.number(a.weight.line, "weight of an edge", a.weight.text, unitNs)
	}
	return 0, nil
}
