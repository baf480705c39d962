package dag

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// graphFormat is the value of "format" in a graph file.
const graphFormat = "dahl-graph 1"

// The JSON form. Keys may stand in any order; unknown ones are refused.
//
//	format   "dahl-graph 1"
//	name     of the graph
//	recorded_on  platform file, in the directory of this file, of the machine on which the
//	         times were recorded: dahl scales them to another machine
//	buffers  each with name and, for a buffer of its own: bytes, or shape and type;
//	         role ("activation"), layout, home, accumulators (of a reduction into it),
//	         copies (1): versions, which steps use in turn;
//	         for a view: view_of and shape
//	costs    by operation: {"ns": …, "joules": …}, for the tasks that have no ns
//	tasks    in program order, each with name and any of
//	         writes, updates, reduces, reads: lists of regions, "w" or "w[0:4,:]";
//	           the operands are in this order, lists one after the other
//	         accesses: instead of the four, "mode region" with the mode write,
//	           readwrite, reduce or read, where the operands have another order
//	         op, type, shape (key of a performance model), params (numbers by name)
//	         flops, bytes (moved), priority, labels {layer, phase, micro_batch, stage}
//	         device, colocate, after (earlier tasks it follows without data)
//	         ns: integer nanoseconds, for every device, or by "device or
//	           kind[/variant][@clock]"; joules: likewise, for the keys of ns
type (
	jsonBuffer struct {
		Name         string `json:"name"`
		Bytes        int64  `json:"bytes,omitempty"`
		ViewOf       string `json:"view_of,omitempty"`
		Shape        *[]int `json:"shape,omitempty"`
		Type         string `json:"type,omitempty"`
		Role         string `json:"role,omitempty"`
		Layout       string `json:"layout,omitempty"`
		Home         string `json:"home,omitempty"`
		Accumulators int    `json:"accumulators,omitempty"`
		Copies       int    `json:"copies,omitempty"`
	}
	jsonLabels struct {
		Layer      string `json:"layer,omitempty"`
		Phase      string `json:"phase,omitempty"`
		MicroBatch int32  `json:"micro_batch,omitempty"`
		Stage      int32  `json:"stage,omitempty"`
	}
	jsonCosts struct {
		Ns     any `json:"ns,omitempty"`     // int64, or map[string]int64
		Joules any `json:"joules,omitempty"` // float64, or map[string]float64
	}
	jsonTask struct {
		Name     string             `json:"name"`
		Op       string             `json:"op,omitempty"`
		Type     string             `json:"type,omitempty"`
		Shape    string             `json:"shape,omitempty"`
		Accesses []string           `json:"accesses,omitempty"`
		Writes   []string           `json:"writes,omitempty"`
		Updates  []string           `json:"updates,omitempty"`
		Reduces  []string           `json:"reduces,omitempty"`
		Reads    []string           `json:"reads,omitempty"`
		Params   map[string]float64 `json:"params,omitempty"`
		Flops    float64            `json:"flops,omitempty"`
		Bytes    int64              `json:"bytes,omitempty"`
		Priority int32              `json:"priority,omitempty"`
		Labels   *jsonLabels        `json:"labels,omitempty"`
		Device   string             `json:"device,omitempty"`
		Colocate string             `json:"colocate,omitempty"`
		After    []string           `json:"after,omitempty"`
		jsonCosts
	}
)

// operandOrder is the order of the four lists of regions.
var operandOrder = [...]Mode{Write, ReadWrite, Reduce, Read}

// WriteJSON writes the graph as a graph file, one line per buffer and task;
// [ReadJSON] reads it back.
func (g *Graph) WriteJSON(w io.Writer) error {
	j := jsonWriter{Writer: bufio.NewWriterSize(w, 1<<16)} // it keeps the first error of all writes
	fmt.Fprintf(j, "{\n  \"format\": %q,\n  \"name\": ", graphFormat)
	j.value(g.Name)
	if g.RecordedOn != "" {
		j.WriteString(",\n  \"recorded_on\": ")
		j.value(g.RecordedOn)
	}
	j.WriteString(",\n  \"buffers\": [")
	for i := range g.Buffers {
		j.item(i, g.jsonBuffer(BufferID(i)))
	}
	j.WriteString("\n  ],\n  \"costs\": {")
	for i, c := range g.OpCosts {
		j.item(i, c.Op)
		j.WriteString(": ")
		j.value(costsToJSON(c.Costs))
	}
	j.WriteString("\n  },\n  \"tasks\": [")
	for t := range g.Tasks {
		j.item(t, g.jsonTask(TaskID(t)))
	}
	j.WriteString("\n  ]\n}\n")
	if err := j.Flush(); err != nil {
		return fmt.Errorf("write graph %q: %w", g.Name, err)
	}
	return nil
}

type jsonWriter struct {
	*bufio.Writer
	buf bytes.Buffer
}

// item writes a value on a line of its own, after a comma unless it is the first.
func (j *jsonWriter) item(i int, v any) {
	if i > 0 {
		j.WriteByte(',')
	}
	j.WriteString("\n    ")
	j.value(v)
}

// value writes a value on the present line, with <, > and & as they are.
func (j *jsonWriter) value(v any) {
	j.buf.Reset()
	enc := json.NewEncoder(&j.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("dag: a graph that was built has a value without a JSON form: " + err.Error())
	}
	j.Write(bytes.TrimSuffix(j.buf.Bytes(), []byte{'\n'}))
}

func (g *Graph) jsonBuffer(id BufferID) jsonBuffer {
	b := &g.Buffers[id]
	out := jsonBuffer{Name: b.Name}
	if b.ViewOf != None {
		out.ViewOf, out.Shape = g.Buffers[b.ViewOf].Name, &b.Shape
		return out
	}
	if b.Type == Uint8 && len(b.Shape) == 1 {
		out.Bytes = int64(b.Shape[0])
	} else {
		out.Shape, out.Type = &b.Shape, b.Type.String()
		if b.Shape == nil {
			out.Shape = &[]int{}
		}
	}
	if b.Role != Activation {
		out.Role = b.Role.String()
	}
	out.Layout, out.Home, out.Accumulators, out.Copies = b.Layout, b.Home, b.Accumulators, b.Versions
	return out
}

func (g *Graph) jsonTask(id TaskID) jsonTask {
	t := &g.Tasks[id]
	out := jsonTask{Name: t.Name, Op: t.Op, Shape: t.Shape, Flops: t.Flops, Bytes: t.MovedBytes, Priority: t.Priority}
	if t.Type != 0 {
		out.Type = t.Type.String()
	}
	g.jsonAccesses(id, &out)
	if len(t.Params) > 0 {
		out.Params = map[string]float64{}
		for _, p := range t.Params {
			out.Params[p.Name] = p.Value
		}
	}
	if t.Labels != (Labels{}) {
		out.Labels = &jsonLabels{t.Labels.Layer, t.Labels.Phase, t.Labels.MicroBatch, t.Labels.Stage}
	}
	if t.Placement != nil {
		out.Device, out.Colocate = t.Placement.Device, t.Placement.Colocate
	}
	for _, p := range t.After {
		out.After = append(out.After, g.Tasks[p].Name)
	}
	if t.Costs != nil && !g.fromOp(t) {
		out.jsonCosts = costsToJSON(t.Costs)
	}
	return out
}

// jsonAccesses fills the four lists when they give the operands in their order,
// and accesses when not.
func (g *Graph) jsonAccesses(id TaskID, out *jsonTask) {
	lists := map[Mode]*[]string{Write: &out.Writes, ReadWrite: &out.Updates, Reduce: &out.Reduces, Read: &out.Reads}
	accesses := g.Tasks[id].Accesses
	next := 0
	for _, mode := range operandOrder {
		for ; next < len(accesses) && accesses[next].Mode == mode; next++ {
			*lists[mode] = append(*lists[mode], g.regionName(id, next))
		}
	}
	if next == len(accesses) {
		return
	}
	for _, list := range lists {
		*list = nil
	}
	for i, a := range accesses {
		out.Accesses = append(out.Accesses, a.Mode.String()+" "+g.regionName(id, i))
	}
}

func costsToJSON(costs []Cost) jsonCosts {
	if len(costs) == 1 && costs[0].Key == AnyDevice {
		out := jsonCosts{Ns: costs[0].Ns}
		if costs[0].Joules != 0 {
			out.Joules = costs[0].Joules
		}
		return out
	}
	ns, joules := map[string]int64{}, map[string]float64{}
	for _, c := range costs {
		ns[c.Key] = c.Ns
		if c.Joules != 0 {
			joules[c.Key] = c.Joules
		}
	}
	out := jsonCosts{Ns: ns}
	if len(joules) > 0 {
		out.Joules = joules
	}
	return out
}
