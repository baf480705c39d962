package strategy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// placement cuts the layers into contiguous parts, one for each accelerator and each core.
//
// In the cost model an accelerator takes as long as its nodes take together, and as the outputs that enter or leave it take between it and the host's
// memory, each once. A core takes as long as its nodes. A step takes as long as the device that takes most. An accelerator holds the nodes that its
// memory has room for.
//
// A set of forward nodes is contiguous if it is the difference of two ideals. Backward nodes go with their forward nodes. So the best cut for some
// accelerators and cores and an ideal is one for fewer of them and a smaller ideal, and the rest on a device more.
//
// Tarnawski, Phanishayee, Devanur, Mahajan, Nina Paravecino, Efficient Algorithms for Device Placement of DNN Graph Operators, NeurIPS 2020, section 5.1.1.
var placement = Strategy{
	doc: schedule.Doc{
		Name: "placement", Sentence: "contiguous parts of the layers on accelerators and cores, with the least load of any device",
		Paper: "J. Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph Operators, NeurIPS 2020",
	},
	Arguments: []string{"accelerators", "cores"},
	Optional:  true,
	Says:      "computing and transfers to and from the host's memory one after the other on an accelerator, computing alone on a core",
	place:     placeContiguous,
}

// loads are the cost model of the paper.
type loads struct {
	*network
	ideals             []set
	accelerated, cored []float64 // by ideal: seconds on an accelerator and on a core
	bytes              []float64 // by ideal: what the tasks keep
	unable             [2][]int  // by ideal: parts that no accelerator can run, and no core
	outputs            []output
	capacity           float64
}

// output stands for the contents that a task writes for others.
type output struct {
	from    int // part
	to      []int
	seconds float64
}

// choice is the best way for an ideal: its load, and its last part.
type choice struct {
	seconds float64
	before  int // ideal
	core    bool
}

func placeContiguous(n *network, numbers []int) (*Model, error) {
	if n.batch > 1 {
		return nil, errors.New("the cost model is of one mini-batch per step")
	}
	accelerators, cores := n.kinds()
	if len(numbers) > 0 {
		if numbers[0] > len(accelerators) || numbers[1] > len(cores) {
			return nil, fmt.Errorf("%d accelerators and %d cores are asked for, and %q has %d equal accelerators and %d equal cores", numbers[0], numbers[1], n.Platform.Name, len(accelerators), len(cores))
		}
		accelerators, cores = accelerators[:numbers[0]], cores[:numbers[1]]
	}
	l, err := newLoads(n, accelerators, cores)
	if err != nil {
		return nil, err
	}
	best := l.search(len(accelerators), len(cores))
	model := &Model{}
	stageOf, on := make([]int, len(n.parts)), [][]platform.WorkerID(nil)
	a, c := len(accelerators), len(cores)
	if math.IsInf(best[a][c][len(l.ideals)-1].seconds, 1) {
		return nil, fmt.Errorf("no cut into contiguous parts fits %d accelerators and %d cores", a, c)
	}
	var seconds []float64
	for to := len(l.ideals) - 1; to > 0; {
		last := best[a][c][to]
		if last.core {
			c--
		} else {
			a--
		}
		if last.before == to {
			continue // nothing on that device
		}
		if last.core {
			on, seconds = append(on, cores[c:c+1]), append(seconds, l.onCore(last.before, to))
		} else {
			on, seconds = append(on, accelerators[a:a+1]), append(seconds, l.onAccelerator(last.before, to))
		}
		for i := range n.parts {
			if l.ideals[to].has(i) && !l.ideals[last.before].has(i) {
				stageOf[i] = len(on) - 1
			}
		}
		to = last.before
	}
	for at := range slices.Backward(on) {
		model.Seconds = max(model.Seconds, seconds[at])
		model.Stages = append(model.Stages, n.stage(stageOf, at, on[at], seconds[at]))
	}
	model.workers = n.assign(stageOf, on)
	return model, nil
}

// kinds lists the workers that are no processors, and the processors, each the first and those alike.
func (n *network) kinds() (accelerators, cores []platform.WorkerID) {
	for w := range n.Platform.Workers {
		d := &n.Platform.Devices[n.Platform.Workers[w].Device]
		list := &accelerators
		if d.IsProcessor() {
			list = &cores
		}
		if !d.PlacedOnly && (len(*list) == 0 || n.alike((*list)[0], platform.WorkerID(w))) {
			*list = append(*list, platform.WorkerID(w))
		}
	}
	return accelerators, cores
}

func newLoads(n *network, accelerators, cores []platform.WorkerID) (l *loads, err error) {
	l = &loads{network: n, capacity: math.Inf(1)}
	if l.ideals, err = n.ideals(); err != nil {
		return nil, err
	}
	time := func(of []platform.WorkerID, can *[]int) []float64 {
		one, cannot := make([]float64, len(n.parts)), make([]bool, len(n.parts))
		for i := range n.parts {
			ok := false
			if len(of) > 0 {
				one[i], ok = n.seconds(i, of[0])
			}
			cannot[i] = !ok
		}
		sums := make([]float64, len(l.ideals))
		*can = make([]int, len(l.ideals))
		for k, ideal := range l.ideals {
			for i := range n.parts {
				if ideal.has(i) {
					sums[k] += one[i]
					if cannot[i] {
						(*can)[k]++
					}
				}
			}
		}
		return sums
	}
	l.accelerated, l.cored = time(accelerators, &l.unable[0]), time(cores, &l.unable[1])
	l.keep()
	if len(accelerators) > 0 {
		memory := n.Platform.MemoryOf(accelerators[0])
		if bytes := n.Platform.Memories[memory].CapacityBytes; bytes > 0 {
			l.capacity = float64(bytes)
		}
		l.findOutputs(memory)
	}
	return l, nil
}

// keep counts the bytes that the parts of each ideal keep as long as the training lasts.
func (l *loads) keep() {
	bytes := l.bytesByPart(dag.State, dag.Parameter)
	for _, ideal := range l.ideals {
		sum := 0.0
		for i := range l.parts {
			if ideal.has(i) {
				sum += bytes[i]
			}
		}
		l.bytes = append(l.bytes, sum)
	}
}

// findOutputs lists what parts read from others.
func (l *loads) findOutputs(memory platform.MemoryID) {
	type key struct {
		writer  int32
		storage dag.BufferID
	}
	at := map[key]int{}
	bytes := []int64(nil)
	for i := range l.data.Pieces {
		piece := &l.data.Pieces[i]
		if int(piece.Writer) == len(l.of) {
			continue
		}
		k := key{piece.Writer, piece.Storage}
		if _, ok := at[k]; !ok {
			at[k] = len(l.outputs)
			l.outputs, bytes = append(l.outputs, output{from: int(l.of[piece.Writer])}), append(bytes, 0)
		}
		o := &l.outputs[at[k]]
		bytes[at[k]] += piece.Bytes
		for _, r := range piece.Readers {
			if to := int(l.of[r.Of]); to != o.from && !slices.Contains(o.to, to) {
				o.to = append(o.to, to)
			}
		}
	}
	for i := range l.outputs {
		l.outputs[i].seconds = l.Platform.RouteTime(memory, l.Platform.HostMemory(), bytes[i]).Seconds()
	}
	l.outputs = slices.DeleteFunc(l.outputs, func(o output) bool { return len(o.to) == 0 || o.seconds == 0 })
}

// onCore is the load of a core with the parts between two ideals; infinite where it cannot run them.
func (l *loads) onCore(from, to int) float64 {
	if l.unable[1][to] > l.unable[1][from] {
		return math.Inf(1)
	}
	return l.cored[to] - l.cored[from]
}

// computing is the load of an accelerator without transfers; infinite where it cannot run or hold the parts.
func (l *loads) computing(from, to int) float64 {
	if l.unable[0][to] > l.unable[0][from] || l.bytes[to]-l.bytes[from] > l.capacity {
		return math.Inf(1)
	}
	return l.accelerated[to] - l.accelerated[from]
}

// onAccelerator is the load of an accelerator with the parts between two ideals.
func (l *loads) onAccelerator(from, to int) float64 {
	seconds := l.computing(from, to)
	inside := func(i int) bool { return l.ideals[to].has(i) && !l.ideals[from].has(i) }
	for i := range l.outputs {
		o := &l.outputs[i]
		is := inside(o.from)
		if slices.ContainsFunc(o.to, func(reader int) bool { return inside(reader) != is }) {
			seconds += o.seconds
		}
	}
	return seconds
}

// search finds the best way for each number of accelerators and cores, and each ideal.
func (l *loads) search(accelerators, cores int) [][][]choice {
	best := make([][][]choice, accelerators+1)
	for a := range best {
		best[a] = make([][]choice, cores+1)
		for c := range best[a] {
			best[a][c] = slices.Repeat([]choice{{seconds: math.Inf(1)}}, len(l.ideals))
			best[a][c][0] = choice{}
		}
	}
	for to := 1; to < len(l.ideals); to++ {
		for from := to - 1; from >= 0; from-- {
			if !l.ideals[from].within(l.ideals[to]) {
				continue
			}
			load := math.NaN()
			l.improve(best, from, to, func() float64 {
				if math.IsNaN(load) {
					load = l.onAccelerator(from, to)
				}
				return load
			}, l.onCore(from, to))
		}
		l.improve(best, to, to, func() float64 { return 0 }, 0) // a device without parts
	}
	return best
}

// improve gives the last device the parts between two ideals, where that is better.
func (l *loads) improve(best [][][]choice, from, to int, accelerated func() float64, core float64) {
	computing := l.computing(from, to)
	for a := range best {
		for c := range best[a] {
			now := &best[a][c][to]
			if c > 0 {
				if load := max(best[a][c-1][from].seconds, core); load < now.seconds {
					*now = choice{load, from, true}
				}
			}
			if a == 0 || max(best[a-1][c][from].seconds, computing) >= now.seconds {
				continue
			}
			if load := max(best[a-1][c][from].seconds, accelerated()); load < now.seconds {
				*now = choice{load, from, false}
			}
		}
	}
}
