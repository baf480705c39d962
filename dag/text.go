package dag

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The text form of a graph has one line per buffer and one paragraph per task, in program order.
// There is only one way to write a graph:
//
//	graph mlp
//	buffer x float32 [5,7] input home=host
//	buffer w float32 [3,7] parameter
//	buffer y float32 [5,3] activation copies=2
//	buffer g float32 [3,7] gradient accumulators=2
//	view flat x [35]
//	costs add *=120 cuda=40,0.002
//	task fc1.forward[0:2] op=dense type=float32 shape=2x3;2x7;3x7
//	  write y[0:2,:]
//	  read x[0:2,:]
//	  read w
//	  params pad=1 stride=2
//	  work flops=84 bytes=164
//	  labels layer=fc1 phase=forward microbatch=1
//	  after load
//	  costs cpu/go@2GHz=900 cuda=70,0.004
//	  place device=cpu colocate=left
//
// In full, with {} for any number and [] for at most one. Blanks separate the parts of a line.
// Zero and empty parts are left out. Costs of an operation stand before the first task:
//
//	graph    = "graph" word, { buffer | view | costs | task }
//	buffer   = "buffer" name type shape role [ "layout=" word ] [ "home=" word ] [ "accumulators=" int ]
//	           [ "copies=" int ]
//	view     = "view" name name shape              its own name, then the owner's
//	costs    = "costs" word, { cost }              of an operation
//	task     = "task" word [ "op=" word ] [ "type=" type ] [ "shape=" word ] [ "priority=" int ], { detail }
//	detail   = mode region | "params" { word "=" number } | "work" [ "flops=" number ] [ "bytes=" int ]
//	         | "labels" [ "layer=" word ] [ "phase=" word ] [ "microbatch=" int ] [ "stage=" int ] | "after" { word }
//	         | "costs" { cost } | "place" [ "device=" word ] [ "colocate=" word ]
//	mode     = "read" | "write" | "readwrite" | "reduce"
//	region   = name [ "[" range { "," range } "]" ]
//	range    = ":" | int ":" int                   half-open; ":" is the whole extent
//	cost     = word "=" int [ "," number ]         key = nanoseconds, joules
//	shape    = "[" [ int { "," int } ] "]"
//	type     = "uint8" | "int32" | "int64" | "float32" | "float64" | "bfloat16"
//	role     = "activation" | "input" | "parameter" | "gradient" | "state" | "workspace"
//
// A word is a Go string literal in double quotes, or bare characters. A bare word is not empty
// and has no blank, quote, "=" or "#"; the bare name of a buffer also has no "[" or "]". "#"
// begins a comment, and empty lines are skipped. WriteText writes neither, except for one empty
// line before the first task.

// WriteText writes the canonical text form; [ParseText] reads it back.
func (g *Graph) WriteText(w io.Writer) error {
	line := appendWord([]byte("graph "), g.Name, false)
	line = append(line, '\n')
	for i := range g.Buffers {
		line = g.appendBuffer(line, BufferID(i))
	}
	for _, c := range g.OpCosts {
		line = appendWord(append(line, "costs "...), c.Op, false)
		line = append(appendCosts(line, c.Costs), '\n')
	}
	if len(g.Tasks) > 0 {
		line = append(line, '\n')
	}
	var shape lastWord
	for t := range g.Tasks {
		line = g.appendTask(line, TaskID(t), &shape)
		if len(line) < writtenAtOnce {
			continue
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		line = line[:0]
	}
	_, err := w.Write(line)
	return err
}

// writtenAtOnce is the number of bytes that are written together, at least.
const writtenAtOnce = 1 << 13

func (g *Graph) appendBuffer(line []byte, id BufferID) []byte {
	b := &g.Buffers[id]
	if b.ViewOf != None {
		line = appendWord(append(line, "view "...), b.Name, true)
		line = appendWord(append(line, ' '), g.Buffers[b.ViewOf].Name, true)
		line = append(appendShape(append(line, ' '), b.Shape), '\n')
		return line
	}
	line = appendWord(append(line, "buffer "...), b.Name, true)
	line = append(append(append(line, ' '), b.Type.String()...), ' ')
	line = append(append(appendShape(line, b.Shape), ' '), b.Role.String()...)
	line = appendField(line, "layout", b.Layout)
	line = appendField(line, "home", b.Home)
	line = appendInt(line, "accumulators", int64(b.Accumulators))
	line = appendInt(line, "copies", int64(b.Versions))
	return append(line, '\n')
}

// lastWord is a word of the task before, which the next one mostly has, too.
type lastWord struct {
	word string
	text []byte
}

func (l *lastWord) appendField(line []byte, key, value string) []byte {
	if value != l.word {
		l.word, l.text = value, appendField(l.text[:0], key, value)
	}
	return append(line, l.text...)
}

func (g *Graph) appendTask(line []byte, id TaskID, shape *lastWord) []byte {
	t := &g.Tasks[id]
	line = appendWord(append(line, "task "...), t.Name, false)
	line = appendField(line, "op", t.Op)
	if t.Type != 0 {
		line = appendField(line, "type", t.Type.String())
	}
	line = shape.appendField(line, "shape", t.Shape)
	line = append(appendInt(line, "priority", int64(t.Priority)), '\n')
	for i, a := range t.Accesses {
		line = append(append(line, "  "...), a.Mode.String()...)
		line = append(g.appendRegion(append(line, ' '), id, i), '\n')
	}
	if len(t.Params) > 0 {
		line = append(line, "  params"...)
		for _, p := range t.Params {
			line = appendWord(append(line, ' '), p.Name, false)
			line = strconv.AppendFloat(append(line, '='), p.Value, 'g', -1, 64)
		}
		line = append(line, '\n')
	}
	line = g.appendNotes(line, t)
	if t.Costs != nil && !g.fromOp(t) {
		line = append(appendCosts(append(line, "  costs"...), t.Costs), '\n')
	}
	if p := t.Placement; p != nil && *p != (Placement{}) {
		line = appendField(append(line, "  place"...), "device", p.Device)
		line = append(appendField(line, "colocate", p.Colocate), '\n')
	}
	return line
}

// appendNotes writes work, labels and the tasks named by After.
func (g *Graph) appendNotes(line []byte, t *Task) []byte {
	if t.Flops != 0 || t.MovedBytes != 0 {
		line = append(line, "  work"...)
		if t.Flops != 0 {
			line = strconv.AppendFloat(append(line, " flops="...), t.Flops, 'g', -1, 64)
		}
		line = append(appendInt(line, "bytes", t.MovedBytes), '\n')
	}
	if t.Labels != (Labels{}) {
		line = appendField(append(line, "  labels"...), "layer", t.Labels.Layer)
		line = appendField(line, "phase", t.Labels.Phase)
		line = appendInt(line, "microbatch", int64(t.Labels.MicroBatch))
		line = append(appendInt(line, "stage", int64(t.Labels.Stage)), '\n')
	}
	if len(t.After) > 0 {
		line = append(line, "  after"...)
		for _, p := range t.After {
			line = appendWord(append(line, ' '), g.Tasks[p].Name, false)
		}
		line = append(line, '\n')
	}
	return line
}

// fromOp reports whether the task has the costs of its operation.
func (g *Graph) fromOp(t *Task) bool {
	i, ok := slices.BinarySearchFunc(g.OpCosts, t.Op, func(c OpCosts, op string) int { return strings.Compare(c.Op, op) })
	return ok && slices.Equal(g.OpCosts[i].Costs, t.Costs)
}

func appendCosts(line []byte, costs []Cost) []byte {
	for _, c := range costs {
		line = appendWord(append(line, ' '), c.Key, false)
		line = strconv.AppendInt(append(line, '='), c.Ns, 10)
		if c.Joules != 0 {
			line = strconv.AppendFloat(append(line, ','), c.Joules, 'g', -1, 64)
		}
	}
	return line
}

func (g *Graph) appendRegion(line []byte, t TaskID, i int) []byte {
	a := &g.Tasks[t].Accesses[i]
	b := &g.Buffers[a.Buffer]
	line = appendWord(line, b.Name, true)
	return appendBox(line, b.Shape, a.Box)
}

// regionName prints a region as in w[0:4,:], for errors and file formats.
func (g *Graph) regionName(t TaskID, i int) string {
	return string(g.appendRegion(nil, t, i))
}

// appendBox prints a box with ":" for whole extents; nothing for a whole buffer.
func appendBox(text []byte, shape []int, box Box) []byte {
	if box == nil || box.IsWhole(shape) {
		return text
	}
	text = append(text, '[')
	for d, r := range box {
		if d > 0 {
			text = append(text, ',')
		}
		if r.Len() == shape[d] {
			text = append(text, ':')
			continue
		}
		text = strconv.AppendInt(text, int64(r.Lo), 10)
		text = strconv.AppendInt(append(text, ':'), int64(r.Hi), 10)
	}
	return append(text, ']')
}

func appendShape(line []byte, shape []int) []byte {
	line = append(line, '[')
	for d, e := range shape {
		if d > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendInt(line, int64(e), 10)
	}
	return append(line, ']')
}

func appendField(line []byte, key, value string) []byte {
	if value == "" {
		return line
	}
	line = append(append(append(line, ' '), key...), '=')
	return appendWord(line, value, false)
}

func appendInt(line []byte, key string, value int64) []byte {
	if value == 0 {
		return line
	}
	line = append(append(append(line, ' '), key...), '=')
	return strconv.AppendInt(line, value, 10)
}

func appendWord(line []byte, s string, isBuffer bool) []byte {
	if isBareASCII(s, isBuffer) {
		return append(line, s...)
	}
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !isBare(r, isBuffer) }) {
		return strconv.AppendQuote(line, s)
	}
	return append(line, s...)
}

// isBareASCII reports whether a word surely needs no quotes; most words are such.
func isBareASCII(s string, isBuffer bool) bool {
	no := uint8(bareNowhere)
	if isBuffer {
		no |= bareInTasks
	}
	for i := range len(s) {
		if bareness[s[i]]&no != 0 {
			return false
		}
	}
	return s != ""
}

const bareNowhere, bareInTasks = 1, 2

// bareness says of a byte where it is no part of a bare word.
var bareness = func() (of [256]uint8) {
	for c := range of {
		switch {
		case c <= ' ' || c > '~' || c == '"' || c == '=' || c == '#':
			of[c] = bareNowhere
		case c == '[' || c == ']':
			of[c] = bareInTasks
		}
	}
	return of
}()

// hasControl reports characters that a reader refuses, since names reach terminals.
func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// isBare reports whether a character may stand in an unquoted word.
func isBare(r rune, isBuffer bool) bool {
	switch r {
	case '"', '=', '#', unicode.ReplacementChar:
		return false
	case '[', ']':
		return !isBuffer
	}
	return unicode.IsPrint(r) && r != ' '
}
