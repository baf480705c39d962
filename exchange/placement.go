package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"

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
		return fmt.Errorf("%s is neither true nor false; write one of them, or 1 or 0", text)
	}
	return nil
}

// placementReader knows the line of what it decodes.
type placementReader struct {
	*file
	src  []byte
	dec  *json.Decoder
	at   int64 // where line is
	line int   // of the value that is decoded

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
	if f.Unit != 0 {
		return fmt.Errorf("%s: times of this format are milliseconds; leave the unit out", f.name)
	}
	r := placementReader{file: f, src: src, dec: json.NewDecoder(bytes.NewReader(src)), line: 1, byID: map[int64]int{}, output: map[int]placementOutput{}}
	err := r.inside('{', func() error {
		key, err := r.dec.Token()
		switch {
		case err != nil:
			return r.wrong(err)
		case key == "nodes":
			return elements(&r, r.node)
		case key == "edges":
			return elements(&r, r.edge)
		}
		return r.decode(new(json.RawMessage)) // the machine, or for people
	})
	if err != nil {
		return err
	}
	r.advance()
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return r.errorf(r.line, "more text after the end of the graph; take it out")
	}
	for i := range r.edges {
		if err := r.connect(&r.edges[i], r.lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// inside reads an object or an array, and calls each before every element.
func (r *placementReader) inside(open json.Delim, each func() error) error {
	r.advance()
	t, err := r.dec.Token()
	if err != nil {
		return r.wrong(err)
	}
	if t != open {
		return r.errorf(r.line, "%v stands where %v has to", t, open)
	}
	for r.dec.More() {
		if err := each(); err != nil {
			return err
		}
	}
	if _, err = r.dec.Token(); err != nil {
		return r.wrong(err)
	}
	return nil
}

// elements reads an array of values of one type.
func elements[T any](r *placementReader, add func(*T) error) error {
	return r.inside('[', func() error {
		var v T
		if err := r.decode(&v); err != nil {
			return err
		}
		return add(&v)
	})
}

func (r *placementReader) decode(v any) error {
	r.advance()
	if err := r.dec.Decode(v); err != nil {
		return r.wrong(err)
	}
	return nil
}

// advance moves line to the next value.
func (r *placementReader) advance() {
	from := r.dec.InputOffset()
	to := from + int64(len(r.src[from:])-len(bytes.TrimLeft(r.src[from:], " \t\r\n,:")))
	r.line += bytes.Count(r.src[r.at:to], []byte{'\n'})
	r.at = to
}

// wrong says what cannot be decoded, in words of the file.
func (r *placementReader) wrong(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.errorf(1+bytes.Count(r.src, []byte{'\n'}), "the file ends in the middle; it was cut off")
	}
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		want := map[reflect.Kind]string{reflect.Int64: "an integer", reflect.Float64: "a number", reflect.String: "a text"}[kind.Type.Kind()]
		return r.errorf(r.line, "%s is a %s; write %s", cmp.Or(kind.Field, "an element"), kind.Value, cmp.Or(want, "an object"))
	}
	return r.errorf(r.line, "not JSON of this format: %w", err)
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
