package kernels

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dahl/kernels/calls"
)

// An operation is stated as a loop nest. Its loops are the iteration space, and each dimension of
// each operand is an index, an affine map of the loops. The convolution over rows of one image is
//
//	for oh, i:  y[oh] += x[oh·stride + i - top] · w[i]
//
// and its three lines of the table are
//
//	conv     y "oh"                 x "oh*stride+i-top"    w "i"
//	conv.dx  dx "oh*stride+i-top"   dy "oh"                w "i"
//	conv.dw  dw "i"                 dy "oh"                x "oh*stride+i-top"
//
// The first operand is written. A loop that it lacks is reduced: its contributions are added up.
// (TVM's te.compute and Halide's bounds inference state the same; there the result is always
// indexed by loops alone, so a gradient needs a statement of another form.)
//
// A tile is a range of each loop. What it touches follows from the indices. Of an operand that is
// indexed by loops it is those ranges. Of an affine index it is the image of the ranges, cut off
// where the operand ends; beyond lie zeros, or what else the operation says. If the written
// operand has the affine index, a tile is a range of that operand, and the range of the first
// loop of the index is the pre-image. With k the extent of i, rows lo to hi of dx get
// contributions from the rows of dy
//
//	⌈(lo + top - (k-1)) / stride⌉  to  ⌊(hi-1 + top) / stride⌋
//
// An index of the tile's operands counts from the first element of its boxes. So a tile is a call
// of the same operation in which only the offset differs:
//
//	top' = top + lo_x - stride·lo_oh - lo_i
//
// As an example, x has 9 rows under a window of k = 3 at stride 2 with top = 1. Then y has 5 rows.
// The tile with rows 2 to 5 of y takes the rows 2·2+0-1 = 3 to 4·2+2-1 = 9 of x, of which row 9
// does not exist, hence the box 3 to 9 (without 9) and top' = 1 + 3 - 2·2 = 0. The tile with rows
// 0 to 2 of y takes the box 0 to 4 (row -1 does not exist) and has top' = 1. Row 3 is in both: the
// halo. The tile with rows 3 to 6 of dx takes of dy the rows ⌈(3+1-2)/2⌉ = 1 to ⌊(5+1)/2⌋ = 3 and
// has top' = 1 + 3 - 2·1 = 2; the row of x before its first one belongs to another tile.
//
// Where taps are some rows apart (a dilation), windows have gaps. A box is then from the first row
// that a window spans to the last, though a tap may touch neither.

// Subscript says which element of one dimension of an operand a point of the iteration space touches:
//
//	index     = number | "..." | ["-"] loop | loop ":" loop | term {"+" term} ["-" parameter] .
//	term      = loop {"*" parameter} .
//
// A number is an extent of which all is touched. "..." stands for any further dimensions, each
// with a loop of its own. "-i" is i counted from the end. "g:f" is f counted within block g of a
// dimension of equal blocks, as the channels of a grouped convolution are. A tile has some of one
// block, or whole blocks. So a tile within a block is a call with one block.
type Subscript struct {
	Terms    []Term // none: a number, or "..."
	Block    string // the loop over blocks; empty means none
	Offset   string // the parameter that is subtracted; empty means none
	Extent   int    // of a number
	Reversed bool
	Text     string
}

// Term is a loop, and the parameters by which it is multiplied.
type Term struct {
	Loop    string
	Factors []string
}

const restText = "..."

// isLoop reports whether the index is a loop by itself, possibly reversed.
func (x *Subscript) isLoop() bool {
	return len(x.Terms) == 1 && len(x.Terms[0].Factors) == 0 && x.Offset == ""
}

// isWindow reports whether the index is any other affine map. Its first loop counts windows, and
// the others the positions in one.
func (x *Subscript) isWindow() bool { return len(x.Terms) > 0 && !x.isLoop() }

// has reports whether the index depends on a loop.
func (x *Subscript) has(loop string) bool {
	return x.Block == loop || slices.ContainsFunc(x.Terms, func(t Term) bool { return t.Loop == loop })
}

// parseSubscripts reads the Dims of an operand.
func parseSubscripts(dims string) ([]Subscript, error) {
	var all []Subscript
	for _, text := range strings.Fields(dims) {
		x := Subscript{Text: text}
		n, err := strconv.Atoi(text)
		rest, reversed := strings.CutPrefix(text, "-")
		block, within, blocks := strings.Cut(text, ":")
		switch {
		case text == restText:
		case err == nil && n > 0:
			x.Extent = n
		case reversed:
			x.Reversed, x.Terms = true, []Term{{Loop: rest}}
		case blocks:
			x.Block, x.Terms = block, []Term{{Loop: within}}
		default:
			sum, offset, _ := strings.Cut(text, "-")
			x.Offset = offset
			for _, product := range strings.Split(sum, "+") {
				names := strings.Split(product, "*")
				x.Terms = append(x.Terms, Term{Loop: names[0], Factors: names[1:]})
			}
		}
		for _, name := range x.names() {
			if !isName(name) {
				return nil, fmt.Errorf("index %q: %q is no name of a loop or a parameter", text, name)
			}
		}
		all = append(all, x)
	}
	return all, nil
}

// names lists the loops and parameters of the index.
func (x *Subscript) names() []string {
	var all []string
	for _, t := range x.Terms {
		all = append(append(all, t.Loop), t.Factors...)
	}
	for _, name := range []string{x.Offset, x.Block} {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// statement is the Dims, Sizes and Options of a line of the table, parsed.
type statement struct {
	operands [][]Subscript
	sizes    []size
	calls.Options
}

// size is a loop whose extent is a parameter.
type size struct{ loop, param string }

// stated parses the statements of a table, and completes what follows from them.
func stated(table []Kernel) []Kernel {
	for i := range table {
		k := &table[i]
		var err error
		if k.statement, err = k.parse(); err != nil {
			panic("kernels: " + k.Op + ": " + err.Error())
		}
		k.Base = cmp.Or(k.Base, k.Op)
		k.eachBlock()
		for v := range k.Variants {
			k.Variants[v] = widened(k.Variants[v])
		}
	}
	return table
}

// parse reads the statement of a kernel and checks that its parameters exist.
func (k *Kernel) parse() (s statement, err error) {
	params := slices.Clone(k.Params)
	for _, o := range calls.ParseOptions(k.Options) {
		if o.Other != "" && !slices.Contains(params, o.Other) {
			return s, fmt.Errorf("option %q: there is no parameter %s before it", o.Name, o.Other)
		}
		s.Options, params = append(s.Options, o), append(params, o.Name)
	}
	for i := range k.Operands {
		o := &k.Operands[i]
		indices, err := parseSubscripts(o.Dims)
		if err != nil {
			return s, fmt.Errorf("operand %s: %w", o.Name, err)
		}
		for _, x := range indices {
			if x.isWindow() && x.Offset == "" {
				return s, fmt.Errorf("operand %s: index %q subtracts no parameter", o.Name, x.Text)
			}
			for _, name := range x.params() {
				if !slices.Contains(params, name) {
					return s, fmt.Errorf("operand %s: index %q: there is no parameter %s", o.Name, x.Text, name)
				}
			}
		}
		s.operands = append(s.operands, indices)
	}
	for _, text := range strings.Fields(k.Sizes) {
		loop, param, ok := strings.Cut(text, "=")
		if !ok || !slices.Contains(params, param) {
			return s, fmt.Errorf("size %q is not of the form loop=parameter", text)
		}
		s.sizes = append(s.sizes, size{loop, param})
	}
	for _, x := range slices.Concat(s.operands...) {
		if x.Block != "" && !slices.ContainsFunc(s.sizes, func(z size) bool { return z.loop == x.Block }) {
			return s, fmt.Errorf("index %q: the number of blocks is no size", x.Text)
		}
	}
	return s, nil
}

// params lists the parameters of the index.
func (x *Subscript) params() []string {
	var all []string
	for _, t := range x.Terms {
		all = append(all, t.Factors...)
	}
	if x.Offset != "" {
		all = append(all, x.Offset)
	}
	return all
}

// Subscripts is the statement of the operation: by operand, the index of each dimension.
func (k *Kernel) Subscripts() ([][]Subscript, error) {
	s, err := k.parse()
	return s.operands, err
}

// extent is the value of a loop, or of a window's index, in a call, and the operand where it was
// first seen.
type extent struct {
	name    string
	value   int
	operand string
	dim     int
	index   *Subscript // of a window; else nil
}

// Space is the iteration space of a call.
type Space struct {
	statement
	kernel  *Kernel
	spec    *calls.Spec
	extents []extent // of loops by name, of windows' indices by text
}

// SpaceOf returns the iteration space of a call, or what is wrong with its shapes.
func SpaceOf(s *calls.Spec) (*Space, error) {
	return (*Table)(nil).SpaceOf(s)
}

// space compares the operands' shapes with the statement.
func (k *Kernel) space(s *calls.Spec) (*Space, error) {
	p := &Space{statement: k.statement, kernel: k, spec: s, extents: make([]extent, 0, 12)}
	if p.operands == nil { // no line of the table
		var err error
		if p.statement, err = k.parse(); err != nil {
			return nil, err
		}
	}
	for _, z := range p.sizes {
		most := maxGeometry
		if k.marks() {
			most = maxWindow
		}
		v, err := p.intParam(z.param, 1, most)
		if err != nil {
			return nil, err
		}
		p.extents = append(p.extents, extent{name: z.loop, value: v, dim: -1})
	}
	for i := range s.Operands {
		if err := p.bindOperand(i); err != nil {
			return nil, err
		}
	}
	return p, p.checkWindows()
}

// marks reports whether an operand has positions in windows.
func (k *Kernel) marks() bool {
	return slices.ContainsFunc(k.Operands, func(o Operand) bool { return o.Kind == Mask })
}

// bindOperand binds the extents of an operand. Dimensions of "..." are named by their distance from
// the last one.
func (p *Space) bindOperand(i int) error {
	o, shape, indices := &p.kernel.Operands[i], p.spec.Operands[i].Shape, p.operands[i]
	rest := len(indices) > 0 && indices[len(indices)-1].Text == restText
	if rest {
		indices = indices[:len(indices)-1]
	}
	if len(shape) < len(indices) || !rest && len(shape) > len(indices) {
		return fmt.Errorf("operand %s has shape %v, want dimensions (%s)", o.Name, shape, o.Dims)
	}
	for d, e := range shape {
		bound := extent{name: restName(len(shape) - d), value: e, operand: o.Name, dim: d}
		if d < len(indices) {
			x := &indices[d]
			bound.name = x.Text
			switch {
			case x.Extent > 0 && x.Extent != e:
				return fmt.Errorf("%s[%d] is %d, want %d", o.Name, d, e, x.Extent)
			case x.Extent > 0:
				continue
			case x.isLoop():
				bound.name = x.Terms[0].Loop
				if x.Block != "" {
					blocks := p.extent(x.Block)
					if e%blocks != 0 {
						return fmt.Errorf("%s[%d] is %d, want a multiple of %d", o.Name, d, e, blocks)
					}
					bound.value = e / blocks
				}
			default:
				bound.index = x
			}
		}
		if err := p.bind(bound); err != nil {
			return err
		}
	}
	if rest {
		return p.bind(extent{name: restText, value: len(shape) - len(indices), operand: o.Name, dim: -1})
	}
	return nil
}

// restName names a dimension of "..." by its distance from the end.
func restName(fromEnd int) string {
	if fromEnd < len(restNames) {
		return restNames[fromEnd]
	}
	return fmt.Sprintf("-%d of ...", fromEnd)
}

// restNames are the names for images and operands of as few dimensions: a graph asks for millions.
var restNames = [...]string{"", "-1 of ...", "-2 of ...", "-3 of ...", "-4 of ..."}

// bind compares an extent with the one bound to its name, or binds it.
func (p *Space) bind(e extent) error {
	b := p.bound(e.name)
	switch {
	case b == nil:
		p.extents = append(p.extents, e)
	case b.value == e.value:
	case e.dim < 0:
		return fmt.Errorf("%s and %s differ in their number of dimensions", b.operand, e.operand)
	default:
		return fmt.Errorf("extent %s is %d in %s[%d] and %d in %s[%d]",
			e.name, b.value, b.operand, b.dim, e.value, e.operand, e.dim)
	}
	return nil
}

func (p *Space) bound(name string) *extent {
	for i := range p.extents {
		if p.extents[i].name == name {
			return &p.extents[i]
		}
	}
	return nil
}

// extent is the extent of a loop. An unbound loop belongs to an operand that the call does
// not have.
func (p *Space) extent(loop string) int {
	if e := p.bound(loop); e != nil {
		return e.value
	}
	return 1
}

// factor is the product of a term's parameters.
func (p *Space) factor(t *Term) int {
	f := 1
	for _, name := range t.Factors {
		f *= int(p.Value(p.spec, name))
	}
	return f
}

// offset is the number that an index subtracts.
func (p *Space) offset(x *Subscript) int {
	if x.Offset == "" {
		return 0
	}
	return int(p.spec.Param(x.Offset))
}

// intParam is a parameter that must be an integer from low to high.
func (p *Space) intParam(name string, low, high int) (int, error) {
	return integer(name, p.Value(p.spec, name), low, high)
}

// span is the distance from the first to the last element of one window, and one more.
func (p *Space) span(x *Subscript) int {
	n := 1
	for i := range x.Terms[1:] {
		t := &x.Terms[1+i]
		n += p.factor(t) * (p.extent(t.Loop) - 1)
	}
	return n
}

// checkWindows compares the windows with the dimension under them. Any may reach beyond its end, since
// there is no parameter for the padding there. But no whole window may be missing at either
// end: then a stride or an extent is wrong.
func (p *Space) checkWindows() error {
	for i := range p.extents {
		e := &p.extents[i]
		if e.index == nil {
			continue
		}
		for _, name := range e.index.params() {
			low := 1
			if name == e.index.Offset {
				low = -maxGeometry
			}
			if _, err := p.intParam(name, low, maxGeometry); err != nil {
				return err
			}
		}
		if err := p.checkWindow(e); err != nil {
			return err
		}
	}
	return nil
}

func (p *Space) checkWindow(e *extent) error {
	x := e.index
	out, stride, span, before := p.bound(x.Terms[0].Loop), p.factor(&x.Terms[0]), p.span(x), p.offset(x)
	about := func() string {
		return fmt.Sprintf("windows of %d at stride %d over %s[%d] = %d from %d on", span, stride, e.operand, e.dim, e.value, -before)
	}
	inside := func(window int) bool {
		at := window*stride - before
		return at >= 0 && at+span <= e.value
	}
	switch {
	case inside(out.value):
		return fmt.Errorf("%s[%d] is %d, want at least %d: %s", out.operand, out.dim, out.value, (e.value-span+before)/stride+1, about())
	case inside(-1):
		return fmt.Errorf("parameter %s is %g, want more than %d: %s", x.Offset, p.spec.Param(x.Offset), -stride, about())
	}
	return nil
}

// Terms is how many points touch one element of the written operand, at most.
func (p *Space) Terms() int {
	n := 1
	for _, e := range p.extents {
		if e.index == nil && e.name != restText && !slices.ContainsFunc(p.operands[0], func(x Subscript) bool {
			return len(x.Terms) > 0 && x.Terms[0].Loop == e.name || x.Block == e.name
		}) {
			n *= e.value
		}
	}
	return n
}

// Points is the number of points of the iteration space.
func (p *Space) Points() float64 {
	n := 1.0
	for _, e := range p.extents {
		if e.index == nil && e.name != restText {
			n *= float64(e.value)
		}
	}
	return n
}
