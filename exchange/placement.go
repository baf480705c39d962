package exchange

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/platform"
)

// placementNode and placementEdge are elements of the file; nil where a key is missing.
type (
	placementNode struct {
		ID             *int64         `json:"id"`
		Name           string         `json:"name"`
		Supported      *placementFlag `json:"supportedOnFpga"`
		CPULatency     *float64       `json:"cpuLatency"`
		FPGALatency    *float64       `json:"fpgaLatency"`
		IsBackwardNode placementFlag  `json:"isBackwardNode"`
		ColorClass     *int64         `json:"colorClass"`
		Size           *float64       `json:"size"`
	}
	placementEdge struct {
		SourceID *int64   `json:"sourceId"`
		DestID   *int64   `json:"destId"`
		Cost     *float64 `json:"cost"`
		Size     *float64 `json:"size"`
	}
)

// placementFlag is a bool, or 0 or 1.
type placementFlag bool

func (p *placementFlag) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "true", "1":
		*p = true
	case "false", "0":
		*p = false
	default:
		return fmt.Errorf("%s is neither true nor false; write one of them, or 1 or 0", strings.Join(strings.Fields(string(text)), " "))
	}
	return nil
}

type placementReader struct {
	jsonReader
	byID   map[int64]int
	edges  []placementEdge // kept until all nodes are known
	lines  []int           // of edges
	output map[int]placementOutput
}

// placementOutput is the output of a node: one datum for all its edges.
type placementOutput struct {
	cost float64
	data int
}

// nsPerMs is the unit of this format's times.
const nsPerMs = 1e6

func (f *file) readPlacement(src []byte) error {
	r := placementReader{jsonReader: newJSONReader(f, src), byID: map[int64]int{}, output: map[int]placementOutput{}}
	err := r.whole(func(key string) error {
		switch key {
		case "nodes":
			return elements(&r.jsonReader, r.node)
		case "edges":
			return elements(&r.jsonReader, r.edge)
		}
		r.leave("notes on the machine or for people", 1)
		return r.decode(new(json.RawMessage))
	})
	if err != nil {
		return err
	}
	for i := range r.edges {
		if err := r.connect(&r.edges[i], r.lines[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *placementReader) node(v *placementNode) error {
	if v.ID == nil || v.Supported == nil || v.CPULatency == nil || v.FPGALatency == nil || v.Size == nil {
		return r.errorf(r.line, "a node lacks a key; write id, supportedOnFpga, cpuLatency, fpgaLatency and size")
	}
	if _, ok := r.byID[*v.ID]; ok {
		return r.errorf(r.line, "node %d is given twice; write another id", *v.ID)
	}
	onCPU, err := r.amount(r.line, "cpuLatency", *v.CPULatency, nsPerMs)
	if err != nil {
		return err
	}
	elsewhere, err := r.amount(r.line, "fpgaLatency", *v.FPGALatency, nsPerMs)
	if err != nil {
		return err
	}
	n := node{line: r.line}
	if n.memoryBytes, err = r.amount(r.line, "size", *v.Size, 1); err != nil {
		return err
	}
	id := strconv.FormatInt(*v.ID, 10)
	n.task.Name = id + " " + v.Name // names are for people, and need not be unique
	if v.Name == "" {
		n.task.Name = id
	}
	if *v.Supported {
		n.task.Costs = everywhere(elsewhere)
	}
	n.task.Costs = append(n.task.Costs, dag.Cost{Key: platform.CPU, Ns: onCPU})
	n.task.Labels.Phase = "forward"
	if v.IsBackwardNode {
		n.task.Labels.Phase = "backward"
	}
	if v.ColorClass != nil {
		n.task.Placement = &dag.Placement{Colocate: strconv.FormatInt(*v.ColorClass, 10)}
	}
	r.byID[*v.ID] = len(r.nodes)
	r.nodes = append(r.nodes, n)
	return nil
}

func (r *placementReader) edge(v *placementEdge) error {
	if v.SourceID == nil || v.DestID == nil || v.Cost == nil {
		return r.errorf(r.line, "an edge lacks a key; write sourceId, destId and cost")
	}
	if v.Size != nil {
		r.leave("bytes of edges", 1)
	}
	r.edges, r.lines = append(r.edges, *v), append(r.lines, r.line)
	return nil
}

// connect adds an edge. All edges of a node carry its one output.
func (r *placementReader) connect(v *placementEdge, line int) error {
	from, okFrom := r.byID[*v.SourceID]
	to, okTo := r.byID[*v.DestID]
	if !okFrom || !okTo {
		return r.errorf(line, "an edge from %d to %d, and one of them is no node; write ids of nodes", *v.SourceID, *v.DestID)
	}
	out, ok := r.output[from]
	if !ok {
		bytes, err := r.amount(line, "cost", *v.Cost, nsPerMs)
		if err != nil {
			return err
		}
		out = placementOutput{*v.Cost, r.addDatum(from, r.nodes[from].task.Name, bytes, line)}
		r.output[from] = out
	}
	if out.cost != *v.Cost {
		return r.errorf(line, "an edge of node %d costs %g, and one before it %g; write one cost, since all carry its output", *v.SourceID, *v.Cost, out.cost)
	}
	r.file.edges = append(r.file.edges, edge{from, to, out.data, line})
	return nil
}
