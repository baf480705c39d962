package exchange

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dahl/dag"
	"dahl/exchange/ranks"
	"dahl/platform"
)

// file collects the contents of a file: nodes, edges and the data that move along these, in the
// order of the file.
type file struct {
	Options
	name string
	took string // attributes of the file and their meaning here
	left []LeftOut
	met  map[string]int // of left, by what it is

	nodes []node
	edges []edge
	data  []datum

	profile []profileNode // of a training, by node
	tasks   []recTask     // of StarPU

	profiled []profiled // of Zeus

	exchanges []*ranks.Exchange // of Chakra's nodes with other ranks; nil where there is none

	machine *platform.Platform // nil where the file describes none
}

// node is a task, and how its edges hang together.
type node struct {
	task        dag.Task // without accesses and tasks that it follows
	line        int
	memoryBytes int64 // held as long as the graph runs
	in, writes  []int // edges, data
	reads       []int // further data
}

// edge leads from one node to another. Its data are none where it only orders the two.
type edge struct {
	from, to, data, line int
}

const none = -1

type datum struct {
	name  string
	bytes int64
	line  int
	given bool // in the host's memory from the beginning
}

// maxAmount bounds times in nanoseconds and sizes in bytes, as in a graph.
const maxAmount = 1 << 60

func (f *file) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", f.name, line, fmt.Errorf(format, args...))
}

// leave counts what the file says and the import does not.
func (f *file) leave(what string, count int) {
	if count == 0 {
		return
	}
	at, ok := f.met[what]
	if !ok {
		if at = len(f.left); f.met == nil {
			f.met = map[string]int{}
		}
		f.met[what], f.left = at, append(f.left, LeftOut{What: what})
	}
	f.left[at].Count += count
}

// float reads an amount.
func (f *file) float(line int, what, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, f.errorf(line, "%s is %q; write a finite number, at least 0", what, text)
	}
	return v, nil
}

// plain refuses control characters in what becomes a name.
func (f *file) plain(line int, names ...string) error {
	for _, name := range names {
		if strings.ContainsFunc(name, unicode.IsControl) {
			return f.errorf(line, "%q holds a control character; write it without", name)
		}
	}
	return nil
}

// number reads an amount in a unit of nanoseconds or bytes, rounded to whole ones.
func (f *file) number(line int, what, text string, unit float64) (int64, error) {
	v, err := f.float(line, what, text)
	if err != nil {
		return 0, err
	}
	return f.amount(line, what, v, unit)
}

// amount is number for what is already a float64.
func (f *file) amount(line int, what string, v, unit float64) (int64, error) {
	whole := math.Round(float64(v * unit))
	if !(whole >= 0 && whole < maxAmount) {
		return 0, f.errorf(line, "%s is %g; write a number from 0 to %.3g", what, v, maxAmount/unit)
	}
	return int64(whole), nil
}

// takeUnit notes that times are in the unit given, or the default, and gives its nanoseconds.
func (f *file) takeUnit() float64 {
	unit := cmp.Or(f.Unit, DefaultUnit)
	f.took += fmt.Sprintf("; a unit of time is %v", unit)
	return float64(unit)
}

// addDatum adds what a node writes; none where that is nothing.
func (f *file) addDatum(from int, name string, bytes int64, line int) int {
	if bytes == 0 {
		return none
	}
	id := len(f.data)
	f.data = append(f.data, datum{name: name, bytes: bytes, line: line})
	f.nodes[from].writes = append(f.nodes[from].writes, id)
	return id
}

// addInput adds what nodes read and none writes.
func (f *file) addInput(name string, bytes int64, line int) int {
	f.data = append(f.data, datum{name, bytes, line, true})
	return len(f.data) - 1
}

// addEdge adds an edge with data of its own.
func (f *file) addEdge(from, to int, bytes int64, line int) {
	data := f.addDatum(from, f.nodes[from].task.Name+"->"+f.nodes[to].task.Name, bytes, line)
	f.edges = append(f.edges, edge{from, to, data, line})
}

// clean makes a name for a part of a machine of any text; empty where nothing of it may stand in one.
func clean(text string) string {
	name := strings.Trim(strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_-.", c)) {
			return c
		}
		return '_'
	}, text), "_")
	return name[:min(len(name), 64)]
}

// everywhere is a time on every device.
func everywhere(ns int64) []dag.Cost { return []dag.Cost{{Key: dag.AnyDevice, Ns: ns}} }

// graph builds the task graph. It is named as the file.
func (f *file) graph() (*dag.Graph, error) {
	order, err := f.order()
	if err != nil {
		return nil, err
	}
	b := f.builder()
	buffers := make([]dag.BufferID, len(f.data))
	for i, d := range f.data {
		if err := f.plain(d.line, d.name); err != nil {
			return nil, err
		}
		buffer := dag.Buffer{Name: d.name, Shape: []int{int(d.bytes)}, Type: dag.Uint8, Role: dag.Activation}
		if d.given {
			buffer.Role, buffer.Home = dag.Input, dag.HostHome
		}
		buffers[i] = b.Buffer(buffer)
		if err := b.Err(); err != nil {
			return nil, f.errorf(d.line, "%w", err)
		}
	}
	tasks := make([]dag.TaskID, len(f.nodes))
	for _, at := range order {
		if err := f.plain(f.nodes[at].line, f.nodes[at].task.Name, f.nodes[at].task.Op); err != nil {
			return nil, err
		}
		tasks[at] = f.addTask(b, &f.nodes[at], buffers, tasks)
		if err := b.Err(); err != nil {
			return nil, f.errorf(f.nodes[at].line, "%w", err)
		}
	}
	g, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return g, nil
}

// builder begins a graph that is named as the file.
func (f *file) builder() *dag.Builder { return dag.NewBuilder(f.stem()) }

// stem is the name of the file without directory and ending.
func (f *file) stem() string {
	base := filepath.Base(f.name)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

func addBuffer(b *dag.Builder, name string, bytes int64, role dag.Role) dag.BufferID {
	return b.Buffer(dag.Buffer{Name: name, Shape: []int{int(bytes)}, Type: dag.Uint8, Role: role})
}

// addTask adds the task of a node whose predecessors have been added.
func (f *file) addTask(b *dag.Builder, n *node, buffers []dag.BufferID, tasks []dag.TaskID) dag.TaskID {
	task := n.task
	access := func(id dag.BufferID, mode dag.Mode) {
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: id}, Mode: mode})
	}
	for _, d := range n.writes {
		access(buffers[d], dag.Write)
	}
	for _, e := range n.in {
		if d := f.edges[e].data; d != none {
			access(buffers[d], dag.Read)
		} else {
			task.After = append(task.After, tasks[f.edges[e].from])
		}
	}
	for _, d := range n.reads {
		access(buffers[d], dag.Read)
	}
	if n.memoryBytes > 0 {
		// What is written anew in each step and kept is never loaded, and leaves at the price of its bytes.
		access(addBuffer(b, task.Name+".memory", n.memoryBytes, dag.State), dag.Write)
	}
	return b.Task(task)
}

// order lists the nodes so that every one stands behind its predecessors, and else as in the file. It
// refuses cycles and an edge that is given twice.
func (f *file) order() ([]int, error) {
	given := map[[2]int]bool{}
	for i, e := range f.edges {
		ends := [2]int{e.from, e.to}
		if given[ends] {
			return nil, f.errorf(e.line, "the edge from %q to %q is given twice; write one", f.nodes[e.from].task.Name, f.nodes[e.to].task.Name)
		}
		given[ends] = true
		f.nodes[e.to].in = append(f.nodes[e.to].in, i)
	}
	const fresh, begun, done = 0, 1, 2
	state := make([]uint8, len(f.nodes))
	order := make([]int, 0, len(f.nodes))
	for at := range f.nodes {
		for stack := []int{at}; len(stack) > 0; {
			n := stack[len(stack)-1]
			if state[n] != fresh {
				stack = stack[:len(stack)-1]
				if state[n] == begun {
					state[n], order = done, append(order, n)
				}
				continue
			}
			state[n] = begun
			for _, i := range slices.Backward(f.nodes[n].in) {
				switch e := f.edges[i]; state[e.from] {
				case begun:
					return nil, f.errorf(e.line, "the edge from %q to %q closes a cycle; take it out, since tasks cannot wait for each other", f.nodes[e.from].task.Name, f.nodes[n].task.Name)
				case fresh:
					stack = append(stack, e.from)
				}
			}
		}
	}
	return order, nil
}
