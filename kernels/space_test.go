package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/must"
)

// TestTilesByHand takes the tiles of the worked example in space.go: 9 rows under windows of 3 at
// stride 2 with one row of padding.
func TestTilesByHand(t *testing.T) {
	x, y, w := []int{1, 9, 1, 1}, []int{1, 5, 1, 1}, []int{3, 1, 1, 1}
	rows := func(lo, hi int) dag.Box {
		return dag.Box{{Lo: 0, Hi: 1}, {Lo: lo, Hi: hi}, {Lo: 0, Hi: 1}, {Lo: 0, Hi: 1}}
	}
	for _, c := range []struct {
		op     string
		shapes [][]int
		box    dag.Box // of rows of operand 0, or all of it
		cut    map[string]dag.Range
		want   dag.Range // rows of operand 1, or of operand 2 in dw
		top    float64
		first  bool
	}{
		{"conv2d.nhwc", [][]int{y, x, w}, rows(2, 5), nil, dag.Range{Lo: 3, Hi: 9}, 0, true},
		{"conv2d.nhwc", [][]int{y, x, w}, rows(0, 2), nil, dag.Range{Lo: 0, Hi: 4}, 1, true},
		{"conv2d.nhwc.dx", [][]int{x, y, w}, rows(3, 6), nil, dag.Range{Lo: 1, Hi: 4}, 2, true},
		// Row 8 is reached by window 4 only, which begins at 7: ⌈(8+1-2)/2⌉ = 4, top = 1+8-2·4.
		{"conv2d.nhwc.dx", [][]int{x, y, w}, rows(8, 9), nil, dag.Range{Lo: 4, Hi: 5}, 1, true},
		// The windows 1 and 2 hold the rows 1 to 5.
		{"conv2d.nhwc.dw", [][]int{w, y, x}, nil, map[string]dag.Range{"oh": {Lo: 1, Hi: 3}}, dag.Range{Lo: 1, Hi: 6}, 1 + 1 - 2, false},
		// The last row of the windows meets rows 1, 3, 5, 7 and 9, which is outside; top = 1+1-2.
		{"conv2d.nhwc.dw", [][]int{w, y, x}, dag.Box{{Lo: 2, Hi: 3}, {Lo: 0, Hi: 1}, {Lo: 0, Hi: 1}, {Lo: 0, Hi: 1}}, nil, dag.Range{Lo: 1, Hi: 8}, 0, true},
	} {
		s := specOf(t, c.op, c.shapes, kerneltest.ConvReLUParams(1, 2, 0))
		space := must.Get(kernels.SpaceOf(s))(t)
		set(s.Params, "left", 0)
		tile := space.Tile(c.box, c.cut)
		read := tile.Boxes[1]
		if c.op == "conv2d.nhwc.dw" {
			read = tile.Boxes[2]
		}
		if top, _ := tile.Params.Get("top"); read[1] != c.want || top != c.top || tile.First != c.first {
			t.Errorf("%s %v %v: rows %v with top %g, first %v", c.op, c.box, c.cut, read[1], top, tile.First)
		}
	}
}

// TestDilatedTilesByHand: 9 rows under 3 taps that are 2 rows apart, with two rows of padding, have 9
// windows of 5 rows. Rows 3 and 4 of y take the rows 3-2 to 4+4-2, and lie 3-1 windows behind their first row. Rows
// 4 and 5 of dx get from the windows 4+2-4 to 5+2.
func TestDilatedTilesByHand(t *testing.T) {
	image, w := []int{1, 9, 1, 1}, []int{3, 1, 1, 1}
	for _, c := range []struct {
		op   string
		rows dag.Range
		want dag.Range
		top  float64
	}{
		{"conv2d.nhwc", dag.Range{Lo: 3, Hi: 5}, dag.Range{Lo: 1, Hi: 7}, 2 + 1 - 3},
		{"conv2d.nhwc.dx", dag.Range{Lo: 4, Hi: 6}, dag.Range{Lo: 2, Hi: 8}, 2 + 4 - 2},
	} {
		params := append(kerneltest.ConvReLUParams(2, 1, 0), dag.Param{Name: "dilation", Value: 2}, dag.Param{Name: "column_dilation", Value: 1})
		s := specOf(t, c.op, [][]int{image, image, w}, params)
		space := must.Get(kernels.SpaceOf(s))(t)
		box := dag.Whole(image)
		box[1] = c.rows
		tile := space.Tile(box, nil)
		if top, _ := tile.Params.Get("top"); tile.Boxes[1][1] != c.want || top != c.top {
			t.Errorf("%s: rows %v with top %g, want %v with %g", c.op, tile.Boxes[1][1], top, c.want, c.top)
		}
	}
}

// TestTilesOfGroups: three groups of 2 channels and 3 filters. Filters 3 and 4 see the channels 2 and 3, and
// are a convolution without groups, as one whole group is.
func TestTilesOfGroups(t *testing.T) {
	params := append(kerneltest.ConvReLUParams(0, 1, 0), dag.Param{Name: "groups", Value: 3})
	s := specOf(t, "conv2d.nhwc", [][]int{{1, 1, 1, 9}, {1, 1, 1, 6}, {1, 1, 2, 9}}, params)
	space, err := kernels.SpaceOf(s)
	if err != nil || space.Block(3) != 3 || space.Points() != 3*3*2 || space.Terms() != 2 {
		t.Fatalf("error %v, blocks of %d, %g points, %d terms", err, space.Block(3), space.Points(), space.Terms())
	}
	for _, c := range []struct {
		filters, channels dag.Range
		groups            float64 // 0: the tile has no such parameter
	}{
		{dag.Range{Lo: 3, Hi: 5}, dag.Range{Lo: 2, Hi: 4}, 0},
		{dag.Range{Lo: 8, Hi: 9}, dag.Range{Lo: 4, Hi: 6}, 0},
		{dag.Range{Lo: 3, Hi: 6}, dag.Range{Lo: 2, Hi: 4}, 0},
		{dag.Range{Lo: 3, Hi: 9}, dag.Range{Lo: 2, Hi: 6}, 2},
		{dag.Range{Lo: 0, Hi: 9}, dag.Range{Lo: 0, Hi: 6}, 3},
	} {
		tile := space.Tile(dag.Box{{Lo: 0, Hi: 1}, {Lo: 0, Hi: 1}, {Lo: 0, Hi: 1}, c.filters}, nil)
		groups, _ := tile.Params.Get("groups")
		if tile.Boxes[1][3] != c.channels || tile.Boxes[2][3] != c.filters || tile.Boxes[2][2] != (dag.Range{Lo: 0, Hi: 2}) || groups != c.groups || !tile.First {
			t.Errorf("filters %v: %v, %g groups", c.filters, tile.Boxes, groups)
		}
	}
}

// set changes a parameter.
func set(params dag.Params, name string, value float64) {
	for i := range params {
		if params[i].Name == name {
			params[i].Value = value
		}
	}
}

// specOf is a call with the first modes and without padding to the left.
func specOf(t *testing.T, op string, shapes [][]int, params dag.Params) *calls.Spec {
	t.Helper()
	k := must.Get(kernels.KernelByName(op))(t)
	set(params, "left", 0)
	return &kerneltest.New(k, dag.Float64, shapes, kerneltest.FirstModes(k)[:len(shapes)], params, 0).Spec
}

// cut is the parts of one dimension: of the written operand, or a loop that is reduced.
type cut struct {
	dim   int
	loop  string // "" for a dimension of the written operand
	parts []dag.Range
}

// cutsOf are all single cuts that a space allows, into up to three parts anywhere.
func cutsOf(space *kernels.Space, s *calls.Spec, rng *rand.Rand) []cut {
	parts := func(extent int) []dag.Range {
		at := []int{0, 1 + rng.IntN(extent), 1 + rng.IntN(extent), extent}
		slices.Sort(at)
		var all []dag.Range
		for i := range 3 {
			if at[i] < at[i+1] {
				all = append(all, dag.Range{Lo: at[i], Hi: at[i+1]})
			}
		}
		return all
	}
	var all []cut
	for d, e := range s.Operands[0].Shape {
		if !space.Cuttable(d) {
			continue
		}
		block := space.Block(d)
		if !space.WholeBlocks(d) {
			all = append(all, cut{dim: d, parts: alongBlocks(parts(e), block)})
			continue
		}
		c := cut{dim: d}
		for _, r := range parts(e / block) {
			c.parts = append(c.parts, dag.Range{Lo: r.Lo * block, Hi: r.Hi * block})
		}
		all = append(all, c)
	}
	for _, l := range space.Reduced() {
		all = append(all, cut{loop: l.Name, parts: parts(l.Extent)})
	}
	return all
}

// alongBlocks cuts ranges that have parts of several blocks where these begin and end.
func alongBlocks(parts []dag.Range, block int) (all []dag.Range) {
	for _, r := range parts {
		for r.Lo/block != (r.Hi-1)/block && (r.Lo%block > 0 || r.Hi%block > 0) {
			at := (r.Lo/block + 1) * block
			if r.Lo%block == 0 {
				at = r.Hi / block * block
			}
			all = append(all, dag.Range{Lo: r.Lo, Hi: at})
			r.Lo = at
		}
		all = append(all, r)
	}
	return all
}

// eachTile visits the tiles of some cuts.
func eachTile(space *kernels.Space, s *calls.Spec, cuts []cut, visit func(box dag.Box, reduced map[string]dag.Range)) {
	box, reduced := dag.Whole(s.Operands[0].Shape), map[string]dag.Range{}
	var walk func(i int)
	walk = func(i int) {
		if i == len(cuts) {
			visit(slices.Clone(box), reduced)
			return
		}
		for _, r := range cuts[i].parts {
			if cuts[i].loop == "" {
				box[cuts[i].dim] = r
			} else {
				reduced[cuts[i].loop] = r
			}
			walk(i + 1)
		}
	}
	walk(0)
}

// TestTilesMakeTheWhole: for every operation and random calls, each single cut and random pairs,
// the tiles run by the reference give the result of the whole call. Bits are equal where no sum is
// cut. Else the terms of the sum are the same in another order, for which [kerneltest.Expected]
// has the bound.
func TestTilesMakeTheWhole(t *testing.T) {
	kerneltest.Each(t, 12, func(t *testing.T, c *kerneltest.Case) {
		rng := rand.New(rand.NewPCG(uint64(len(c.Spec.Key())), 41))
		space := must.Get(kernels.SpaceOf(&c.Spec))(t)
		expected, whole, cuts := kerneltest.Expect(c), c.Clone(), cutsOf(space, &c.Spec, rng)
		whole.Run(&c.Kernel.Variants[0])
		check := func(cuts ...cut) {
			got := tilesTogether(t, c, space, cuts)
			if err := expected.Compare(got, &c.Kernel.Variants[0]); err != nil {
				t.Fatalf("cut %v: %v", cuts, err)
			}
			for i := range c.Buffers {
				if sums := slices.ContainsFunc(cuts, func(c cut) bool { return c.loop != "" }); !sums && !got.SameBytes(whole, i) {
					t.Fatalf("%s, cut %v: operand %s differs from that of the whole call", c.Spec.Key(), cuts, c.Kernel.Operands[i].Name)
				}
			}
		}
		for i := range cuts {
			check(cuts[i])
			if j := rng.IntN(len(cuts)); j != i {
				check(cuts[min(i, j)], cuts[max(i, j)])
			}
		}
	})
}

// tilesTogether is a case of which the reference has run the tiles.
func tilesTogether(t *testing.T, c *kerneltest.Case, space *kernels.Space, cuts []cut) *kerneltest.Case {
	t.Helper()
	got, ref := c.Clone(), &c.Kernel.Variants[0]
	eachTile(space, &c.Spec, cuts, func(box dag.Box, reduced map[string]dag.Range) {
		tile := tileOf(got, space.Tile(box, reduced))
		if err := kernels.Validate(&tile.Spec); err != nil {
			t.Fatalf("%s, tile %v %v: %v", c.Spec.Key(), box, reduced, err)
		}
		tile.Run(ref)
	})
	return got
}

// tileOf is a tile of a case, on the same data.
func tileOf(c *kerneltest.Case, tile *kernels.Tile) *kerneltest.Case {
	part := *c
	part.Boxes, part.Buffers, part.Data, part.Spec.Operands, part.Spec.Params = nil, nil, nil, nil, tile.Params
	for i, box := range tile.Boxes {
		if box == nil {
			continue
		}
		o, at := c.Spec.Operands[i], dag.Box{}
		o.Shape = nil
		for d, r := range box {
			at = append(at, dag.Range{Lo: c.Boxes[i][d].Lo + r.Lo, Hi: c.Boxes[i][d].Lo + r.Hi})
			o.Shape = append(o.Shape, r.Len())
		}
		if o.Mode == dag.Write && !tile.First {
			o.Mode = dag.ReadWrite
		}
		part.Boxes, part.Buffers, part.Data = append(part.Boxes, at), append(part.Buffers, c.Buffers[i]), append(part.Data, c.Data[i])
		part.Spec.Operands = append(part.Spec.Operands, o)
	}
	return &part
}

// TestBoxesAreMinimal compares each box of a tile with what the points of the tile touch, one by
// one: the first and the last index of the box are touched, and where windows leave no gaps all
// are. Of an operand that no point touches the box has one index. Tiles that a Tiler makes one after the other are the same.
func TestBoxesAreMinimal(t *testing.T) {
	kerneltest.Each(t, 12, func(t *testing.T, c *kerneltest.Case) {
		rng := rand.New(rand.NewPCG(uint64(len(c.Spec.Key())), 43))
		space := must.Get(kernels.SpaceOf(&c.Spec))(t)
		cuts := cutsOf(space, &c.Spec, rng)
		tiler := kernels.Tiler{Space: space}
		for i := range cuts {
			eachTile(space, &c.Spec, cuts[i:i+1], func(box dag.Box, reduced map[string]dag.Range) {
				tile := space.Tile(box, reduced)
				if of := tiler.Tile(box, reduced); !reflect.DeepEqual(of, tile) {
					t.Fatalf("%s, tile %v %v: a tiler gives %+v, not %+v", c.Spec.Key(), box, reduced, of, tile)
				}
				boxesAreMinimal(t, c, tile, box, reduced)
			})
		}
	})
}

func boxesAreMinimal(t *testing.T, c *kerneltest.Case, tile *kernels.Tile, written dag.Box, reduced map[string]dag.Range) {
	t.Helper()
	p := pointsOf(t, c, written, reduced)
	for i := 1; i < len(tile.Boxes); i++ {
		for d := range tile.Boxes[i] {
			if d >= len(p.indices[i]) || len(p.indices[i][d].Terms) == 0 {
				continue // a number, or "..."
			}
			x, r := &p.indices[i][d], tile.Boxes[i][d]
			if slices.ContainsFunc(p.indices[0], func(w kernels.Subscript) bool {
				return w.Text == x.Text || len(w.Terms) > 1 && slices.ContainsFunc(w.Terms[1:], func(t kernels.Term) bool { return t.Loop == x.Terms[0].Loop })
			}) {
				continue // the written box itself, or filters, of which a gradient has all
			}
			if len(x.Terms) > 2 && p.factor(&x.Terms[1]) > p.length(x.Terms[2].Loop) || len(x.Terms) > 1 && p.factor(&x.Terms[len(x.Terms)-1]) > 1 {
				continue // gaps within the windows
			}
			touched := p.touched(x, c.Spec.Operands[i].Shape[d])
			what := fmt.Sprintf("%s, tile %v %v: %s[%d] is %v", c.Spec.Key(), written, reduced, c.Kernel.Operands[i].Name, d, r)
			if len(touched) == 0 {
				if r.Len() != 1 {
					t.Fatalf("%s, and nothing is touched", what)
				}
				continue
			}
			if slices.Min(touched) != r.Lo || slices.Max(touched) != r.Hi-1 {
				t.Fatalf("%s, touched are %v", what, touched)
			}
		}
	}
}

// points is the iteration space of a tile, visited point by point.
type points struct {
	c       *kerneltest.Case
	indices [][]kernels.Subscript
	extents map[string]int // of loops
	written dag.Box
	reduced map[string]dag.Range
}

func pointsOf(t *testing.T, c *kerneltest.Case, written dag.Box, reduced map[string]dag.Range) *points {
	t.Helper()
	indices := must.Get(c.Kernel.Subscripts())(t)
	p := &points{c, indices, map[string]int{}, written, reduced}
	for _, text := range strings.Fields(c.Kernel.Sizes) {
		loop, param, _ := strings.Cut(text, "=")
		p.extents[loop] = c.Value(param)
	}
	for i, o := range c.Spec.Operands {
		for d, x := range indices[i] {
			if len(x.Terms) == 1 && x.Offset == "" {
				p.extents[x.Terms[0].Loop] = o.Shape[d] / max(1, p.extents[x.Block])
			}
		}
	}
	return p
}

// length is the extent of a loop in the tile.
func (p *points) length(loop string) int {
	for d, x := range p.indices[0] {
		if len(x.Terms) == 1 && x.Block == "" && x.Terms[0].Loop == loop {
			return p.written[d].Len()
		}
	}
	return p.extents[loop]
}

// factor is that of a term.
func (p *points) factor(t *kernels.Term) int {
	f := 1
	for _, name := range t.Factors {
		f *= p.c.Value(name)
	}
	return f
}

// value is an index at a point.
func (p *points) value(x *kernels.Subscript, at map[string]int) int {
	v := 0
	for _, t := range x.Terms {
		v += p.factor(&t) * at[t.Loop]
	}
	if x.Block != "" {
		v += at[x.Block] * p.extents[x.Terms[0].Loop]
	}
	if x.Offset != "" {
		v -= int(p.c.Spec.Param(x.Offset))
	}
	if x.Reversed {
		v = p.extents[x.Terms[0].Loop] - 1 - v
	}
	return v
}

// touched lists the values of an index below an extent, at all points of the tile.
func (p *points) touched(x *kernels.Subscript, extent int) []int {
	var loops []string
	add := func(x *kernels.Subscript) {
		for _, t := range append([]kernels.Term{{Loop: x.Block}}, x.Terms...) {
			if t.Loop != "" && !slices.Contains(loops, t.Loop) {
				loops = append(loops, t.Loop)
			}
		}
	}
	add(x)
	for i := range p.indices[0] { // that depend on the same loops
		w := &p.indices[0][i]
		if slices.ContainsFunc(w.Terms, func(t kernels.Term) bool { return slices.Contains(loops, t.Loop) }) || w.Block != "" && slices.Contains(loops, w.Block) {
			add(w)
		}
	}
	seen, at := map[int]bool{}, map[string]int{}
	var walk func(n int)
	walk = func(n int) {
		if n < len(loops) {
			for v := range p.extents[loops[n]] {
				at[loops[n]] = v
				walk(n + 1)
			}
			return
		}
		if p.inTile(loops, at) {
			limit, summed := p.reduced[x.Text]
			if v := p.value(x, at); v >= 0 && v < extent && (!summed || limit.Lo <= v && v < limit.Hi) {
				seen[v] = true
			}
		}
	}
	walk(0)
	var all []int
	for v := range seen {
		all = append(all, v)
	}
	return all
}

// inTile reports whether a point of some loops belongs to the tile.
func (p *points) inTile(loops []string, at map[string]int) bool {
	for loop, r := range p.reduced {
		if v, ok := at[loop]; ok && (v < r.Lo || v >= r.Hi) {
			return false
		}
	}
	for d := range p.indices[0] {
		w := &p.indices[0][d]
		if len(w.Terms) == 0 || !slices.Contains(loops, w.Terms[0].Loop) {
			continue
		}
		if v := p.value(w, at); v < p.written[d].Lo || v >= p.written[d].Hi {
			return false
		}
	}
	return true
}

// TestCuts says for some operations by hand what may be cut.
func TestCuts(t *testing.T) {
	conv := [][]int{{2, 6, 7, 5}, {2, 7, 8, 3}, {2, 2, 3, 5}, {5}}
	for _, c := range []struct {
		op      string
		shapes  [][]int
		params  dag.Params
		written []int
		reduced string
	}{
		{"conv2d.nhwc", conv, kerneltest.ConvReLUParams(0, 1, 0), []int{0, 1, 2, 3}, "c i j"},
		{"conv2d.nhwc", conv, kerneltest.ConvReLUParams(0, 1, 1), []int{0, 1, 2, 3}, ""}, // the sum is cut off
		{"conv2d.nhwc.dx", [][]int{{2, 7, 8, 3}, {2, 6, 7, 5}, {2, 2, 5, 3}}, kerneltest.ConvParams(0, 1), []int{0, 1, 2, 3}, "f"},
		{"conv2d.nhwc.dx", [][]int{{2, 7, 8, 3}, {2, 6, 7, 5}, {2, 2, 5, 3}, {2, 7, 8, 3}}, kerneltest.ConvParams(0, 1), []int{0, 1, 2, 3}, ""},
		{"conv2d.nhwc.dw", [][]int{{2, 2, 3, 5}, {2, 6, 7, 5}, {2, 7, 8, 3}, {5}}, kerneltest.ConvParams(0, 1), []int{0, 1, 2, 3}, "n oh ow"},
		// Some channels of each of two groups are no box.
		{"conv2d.nhwc", [][]int{{2, 6, 7, 4}, {2, 7, 8, 6}, {2, 2, 3, 4}}, append(kerneltest.ConvReLUParams(0, 1, 0), dag.Param{Name: "groups", Value: 2}), []int{0, 1, 2, 3}, "i j"},
		{"conv2d.nhwc.dx", [][]int{{2, 7, 8, 6}, {2, 6, 7, 4}, {2, 2, 4, 3}}, options("groups", 2), []int{0, 1, 2, 3}, ""},
		{"conv2d.nhwc.dw", [][]int{{2, 2, 3, 4}, {2, 6, 7, 4}, {2, 7, 8, 6}, {4}}, options("groups", 2), []int{0, 1, 3}, "n oh ow"},
		// The bias has no channels and is updated in one task.
		{"conv2d.nhwc.dw.sgd", [][]int{{5, 3, 2, 2}, {2, 6, 7, 5}, {2, 7, 8, 3}, {2}, {5}}, append(kerneltest.ConvParams(0, 1), kerneltest.SGDParams(0, 0, 0)...), []int{0}, ""},
		{"conv2d.nhwc.dw.sgd.nobias", [][]int{{5, 3, 2, 2}, {2, 6, 7, 5}, {2, 7, 8, 3}, {2}}, append(kerneltest.ConvParams(0, 1), kerneltest.SGDParams(0, 0, 0)...), []int{0, 1, 2, 3}, ""},
		{"conv2d.nhwc.pool.dw", [][]int{{2, 2, 3, 5}, {2, 3, 3, 5}, {2, 3, 3, 5}, {2, 7, 8, 3}, {5}}, kerneltest.ConvPoolParams(0, 1, 2, 2), []int{0, 1, 2, 3}, "n ph pw"},
		{"maxpool.nhwc", [][]int{{2, 4, 5, 3}, {2, 4, 5, 3}, {2, 8, 11, 3}}, kerneltest.PoolParams(2, 2), []int{0, 1, 2, 3}, ""},
		{"dense", [][]int{{2, 5}, {2, 7}, {5, 7}, {5}}, nil, []int{0, 1}, "c"},
		{"dense.relu", [][]int{{2, 5}, {2, 7}, {5, 7}, {5}}, nil, []int{0, 1}, ""},
		{"relu", [][]int{{2, 3, 5}, {2, 3, 5}, {2, 3, 5}}, nil, []int{0, 1, 2}, ""},
		// loss and correct are one for all classes.
		{"softmax_xent", [][]int{{5, 7}, {5}, {5}, {5, 7}, {5}}, dag.Params{{Name: "batch", Value: 5}}, []int{0}, ""},
		{"mean", [][]int{{1}, {5}}, nil, nil, ""},
	} {
		s := specOf(t, c.op, c.shapes, c.params)
		space := must.Get(kernels.SpaceOf(s))(t)
		var written []int
		for d := range s.Operands[0].Shape {
			if space.Cuttable(d) {
				written = append(written, d)
			}
		}
		var reduced []string
		for _, l := range space.Reduced() {
			reduced = append(reduced, l.Name)
		}
		slices.Sort(reduced)
		if !slices.Equal(written, c.written) || strings.Join(reduced, " ") != c.reduced {
			t.Errorf("%s: dimensions %v and loops %v may be cut", c.op, written, reduced)
		}
	}
}

// TestStatementErrors: a statement that makes no sense is refused.
func TestStatementErrors(t *testing.T) {
	for _, c := range []struct{ dims, sizes, want string }{
		{"n g:f", "", `index "g:f": the number of blocks is no size`},
		{"n oh*pace-top", "", `index "oh*pace-top": there is no parameter pace`},
		{"oh*stride+i", "", `index "oh*stride+i" subtracts no parameter`},
		{"n +i", "", `"" is no name of a loop or a parameter`},
		{"n 0", "", `"0" is no name`},
		{"oh*stride+i-top", "i", `size "i" is not of the form loop=parameter`},
		{"oh*stride+i-top", "i=size", `size "i=size" is not`},
	} {
		k := &kernels.Kernel{Op: "new", Params: []string{"stride", "top"}, Sizes: c.sizes,
			Operands: []kernels.Operand{{Name: "x", Dims: c.dims, Modes: []dag.Mode{dag.Read}}}}
		if _, err := k.Subscripts(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: error %v, want %s", c.dims, c.sizes, err, c.want)
		}
	}
	k := &kernels.Kernel{Op: "new", Params: []string{"stride"}, Options: "across=along along=stride"}
	if _, err := k.Subscripts(); err == nil || !strings.Contains(err.Error(), `option "across": there is no parameter along before it`) {
		t.Errorf("an option of one that comes later: %v", err)
	}
}
