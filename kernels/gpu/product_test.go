package gpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
	"dahl/must"
)

// TestDivideBy compares with division: for small divisors, powers of two and their
// neighbours and random ones, dividends at and beside multiples up to 2^31-1.
func TestDivideBy(t *testing.T) {
	divisors := []int{}
	for d := 1; d < 300; d++ {
		divisors = append(divisors, d)
	}
	for l := 8; l < 31; l++ {
		divisors = append(divisors, 1<<l-1, 1<<l, 1<<l+1)
	}
	rng := rand.New(rand.NewPCG(3, 5))
	for range 300 {
		divisors = append(divisors, 1+rng.IntN(math.MaxInt32))
	}
	for _, d := range divisors {
		by := divideBy(d)
		check := func(x int) {
			if x < 0 || x > math.MaxInt32 {
				return
			}
			if q := uint64(x) * uint64(by.multiplier) >> by.shift; q != uint64(x/d) {
				t.Fatalf("%d/%d gives %d", x, d, q)
			}
		}
		for _, q := range []int{0, 1, 2, math.MaxInt32/d - 1, math.MaxInt32 / d, rng.IntN(math.MaxInt32/d + 1)} {
			check(q*d - 1)
			check(q * d)
			check(q*d + 1)
		}
		check(math.MaxInt32)
	}
}

var comments = regexp.MustCompile(`//.*`)

func cudaSources(t *testing.T, names ...string) string {
	var all strings.Builder
	for _, n := range names {
		text := must.Get(os.ReadFile("../cuda/" + n))(t)
		all.Write(text)
	}
	return comments.ReplaceAllString(all.String(), "")
}

// TestProductSymbols compares the products that are compiled with those that can be launched,
// and the tiles' extents on both sides.
func TestProductSymbols(t *testing.T) {
	tiles := map[string]productTile{}
	using := regexp.MustCompile(`using (T\w+) = Product<Math, (\d+), (\d+), ([^,]+),`)
	for _, m := range using.FindAllStringSubmatch(cudaSources(t, "product_entries.h"), -1) {
		rows, _ := strconv.Atoi(m[2])
		columns, _ := strconv.Atoi(m[3])
		tiles[m[1]+" "+m[4]] = productTile{rows: rows, columns: columns}
	}
	depths := map[string]func(productMath) int{}
	for key := range tiles {
		depths[strings.Fields(key)[0]] = depthOf(t, strings.SplitN(key, " ", 2)[1])
	}

	compiled := map[string]string{}
	product := regexp.MustCompile(`PRODUCT\((\w+), (\w+), (\w+),`)
	for _, m := range product.FindAllStringSubmatch(cudaSources(t, "dense.cu", "dense_tensor.cu", "conv2d_nhwc.cu", "conv2d_nhwc_tensor.cu",
		"conv2d_nhwc_pool.cu", "conv2d_nhwc_pool_tensor.cu"), -1) {
		compiled[m[1]] = m[2] + " " + m[3]
	}
	launched := map[string]bool{}
	for _, f := range productFamilies() {
		for _, math := range []productMath{mathSIMT, mathTF32, mathBF16} {
			for _, real := range []dag.DType{dag.Float32, dag.Float64} {
				if math.tensor && real == dag.Float64 {
					continue
				}
				for _, tile := range f.tiles(real, math) {
					symbol := f.symbol(real, math, tile)
					launched[symbol] = true
					line, ok := compiled[symbol]
					if !ok {
						t.Errorf("%s is launched and not compiled", symbol)
						continue
					}
					alias := strings.Fields(line)[1]
					if !strings.HasSuffix(alias, tile.String()) {
						t.Errorf("%s is compiled with %s", symbol, alias)
					}
					if want := depths[alias](math); real == dag.Float32 && math.depth(tile) != want {
						t.Errorf("%s takes %d steps at a time, %s %d", symbol, math.depth(tile), alias, want)
					}
				}
			}
		}
	}
	for symbol := range compiled {
		if !launched[symbol] {
			t.Errorf("%s is compiled and never launched", symbol)
		}
	}
}

// depthOf evaluates the depth of a tile as product_entries.h writes it, for float32.
func depthOf(t *testing.T, expression string) func(productMath) int {
	base, packed := strings.CutSuffix(expression, " * Math::pack")
	base, sized := strings.CutSuffix(base, " / sizeof(typename Math::Real)")
	depth, err := strconv.Atoi(base)
	if err != nil {
		t.Fatalf("depth of a tile: %v", err)
	}
	if sized {
		depth /= 4
	}
	return func(m productMath) int {
		if packed {
			return depth * m.pack
		}
		return depth
	}
}

func productFamilies() []*productFamily {
	return []*productFamily{
		&DenseTiles, &DenseDxTiles, &DenseDwTiles, UnpooledWeights,
		ConvolutionLast.Maps, ConvolutionLast.Weights,
	}
}

// TestCut: for any extents the tiles cover the result and the splits the sum, none of them
// in vain, and what pools is not split.
func TestCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	extent := func(bits int) int32 { return 1 + rng.Int32N(1<<rng.IntN(bits)) }
	for range 3000 {
		f := productFamilies()[rng.IntN(len(productFamilies()))]
		math := []productMath{mathSIMT, mathTF32, mathBF16}[rng.IntN(3)]
		p := productParams{m: extent(21), n: extent(14), k: extent(21), after: int32(rng.IntN(3))}
		real := []dag.DType{dag.Float32, dag.Float64}[rng.IntN(2)]
		if math.tensor && (f.tensor == nil || real == dag.Float64) {
			continue
		}
		c := f.cut(real, math, &p)
		what := fmt.Sprintf("%s %s %d×%d, sum of %d: %+v", f.name, math.name, p.m, p.n, p.k, c)
		if !slices.Contains(f.tiles(real, math), c.tile) {
			t.Fatalf("%s: no such tile", what)
		}
		depth := math.depth(c.tile)
		for _, d := range [][3]int{{c.tilesM, c.tile.rows, int(p.m)}, {c.tilesN, c.tile.columns, int(p.n)}, {c.splits, c.steps * depth, int(p.k)}} {
			if parts, part, whole := d[0], d[1], d[2]; parts*part < whole || (parts-1)*part >= whole {
				t.Fatalf("%s: %d parts of %d for %d", what, parts, part, whole)
			}
		}
		if p.after == afterPool && c.splits > 1 {
			t.Fatalf("%s: what pools is split", what)
		}
		if blocks := c.tilesM * c.tilesN; c.splits > 1 && blocks*c.splits > maxBlocks {
			t.Fatalf("%s: split into %d blocks", what, blocks*c.splits)
		}
	}
}

// TestEveryTileIsChosen: no tile is compiled in vain. Extents are a third apart.
func TestEveryTileIsChosen(t *testing.T) {
	var extents []int32
	for e := int32(1); e <= 1<<20; e = 4*e/3 + 1 {
		extents = append(extents, e)
	}
	for _, f := range productFamilies() {
		for _, math := range []productMath{mathSIMT, mathTF32, mathBF16} {
			for _, real := range []dag.DType{dag.Float32, dag.Float64} {
				if math.tensor && real == dag.Float64 {
					continue
				}
				chosen := map[productTile]bool{}
				for i, m := range extents {
					for j, n := range extents {
						p := productParams{m: m, n: n, k: extents[(7*i+11*j)%len(extents)]}
						if f.tiles(real, math) != nil {
							chosen[f.cut(real, math, &p).tile] = true
						}
					}
				}
				for _, tile := range f.tiles(real, math) {
					if !chosen[tile] {
						t.Errorf("%s %s %v: nothing is cut into tiles of %v", f.name, math.name, real, tile)
					}
				}
			}
		}
	}
}

// TestCutOfKnownShapes derives some cuts by hand. The ten classes of dahl32 at batch 64 are one
// tile of 128×16 and 5408/16 = 338 steps: without splits 338 load latencies, 0.12 ms, so the
// sum must be cut into about as many parts as there are multiprocessors. A product of 4096³
// is cut into the largest tiles and needs no splits.
func TestCutOfKnownShapes(t *testing.T) {
	c := DenseTiles.cut(dag.Float32, mathSIMT, &productParams{m: 64, n: 10, k: 5408})
	if c.tile != tile128x16 || c.splits < multiprocessors/2 || c.splits > 2*multiprocessors {
		t.Errorf("ten classes: %+v", c)
	}
	for _, m := range []struct {
		math productMath
		tile productTile
	}{{mathSIMT, tile128x64}, {mathTF32, tensor128x128}, {mathBF16, tensor128x128}} {
		if c := DenseTiles.cut(dag.Float32, m.math, &productParams{m: 4096, n: 4096, k: 4096}); c.tile != m.tile || c.splits != 1 {
			t.Errorf("%s, 4096³: %+v", m.math.name, c)
		}
	}
}

// TestPhases compares with the definition: pixel a of the image gets from pixel u of dy at tap
// i of the window where u·stride + i·dilation - pad = a.
func TestPhases(t *testing.T) {
	type meeting struct{ a, tap, u int }
	for _, c := range [][5]int{{13, 3, 1, 1, 1}, {13, 3, 0, 2, 1}, {17, 5, 2, 3, 1}, {7, 1, 0, 3, 1}, {2, 3, 2, 5, 1}, {11, 2, 3, 2, 1}, {1, 1, 0, 1, 1},
		{13, 3, 1, 1, 2}, {17, 5, 2, 3, 2}, {19, 5, 3, 2, 2}, {23, 4, 5, 4, 6}, {29, 3, 1, 3, 5}} {
		extent, k, pad, stride, dilation := c[0], c[1], c[2], c[3], c[4]
		pixels := calls.Windows(extent, (k-1)*dilation+1, pad, stride)
		want := map[meeting]bool{}
		for u := range pixels {
			for i := range k {
				if a := u*stride + i*dilation - pad; a >= 0 && a < extent {
					want[meeting{a, i, u}] = true
				}
			}
		}
		got, seen := map[meeting]bool{}, make([]int, extent)
		for _, p := range phases(extent, pixels, k, calls.Axis{Before: pad, Stride: stride, Dilation: dilation}) {
			for a := range p.pixels {
				seen[p.first+a*stride]++
				for i := range p.taps {
					if u := a + p.origin - i*p.dilation; u >= 0 && u < pixels {
						got[meeting{p.first + a*stride, p.tap + i*p.every, u}] = true
					}
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: pixels meet %v, want %v", c, got, want)
		}
		for a, n := range seen {
			if n != 1 {
				t.Errorf("%v: pixel %d lies in %d phases", c, a, n)
			}
		}
	}
}

// TestVectorised: groups of 16 bytes need runs, strides and a first address that are
// multiples of them.
func TestVectorised(t *testing.T) {
	matrix := func(address uint64, columns, stride int) calls.DeviceArg {
		return calls.DeviceArg{Addr: address, Shape: []int{5, columns}, Stride: []int{stride, 1}}
	}
	for _, c := range []struct {
		real            dag.DType
		address         uint64
		columns, stride int
		want            int32
	}{
		{dag.Float32, 256, 8, 12, 1},
		{dag.Float32, 272, 8, 8, 1},
		{dag.Float32, 260, 8, 12, 0}, // begins between groups
		{dag.Float32, 256, 6, 12, 0}, // ends between them
		{dag.Float32, 256, 8, 10, 0}, // rows begin between them
		{dag.Float64, 256, 6, 10, 1}, // groups of two
		{dag.Float64, 256, 7, 10, 0},
	} {
		a := matrix(c.address, c.columns, c.stride)
		if o := matrixOperand(&a).vectorised(c.real, c.columns); o.vector != c.want {
			t.Errorf("%+v: vector = %d", c, o.vector)
		}
	}
	image := calls.DeviceArg{Addr: 256, Shape: []int{2, 7, 11, 8}, Stride: []int{616, 88, 8, 1}}
	s := forwardSweep(calls.Triple{2, 7, 11}, 3, 3, calls.Windowing{Rows: calls.Axis{Before: 1, Stride: 1, Dilation: 1}, Columns: calls.Axis{Before: 1, Stride: 1, Dilation: 1}, Groups: 1})
	if o := windowOperand(&image, s).vectorised(dag.Float32, 8); o.vector != 1 {
		t.Error("8 channels, last, are not loaded in groups")
	}
}

// TestWorkspaceHoldsSplits: the workspace of a spec is what the launches of a call of any
// strides write sums into.
func TestWorkspaceHoldsSplits(t *testing.T) {
	s := &calls.Spec{Op: "dense.dw", Type: dag.Float32}
	call := &calls.DeviceCall{Type: s.Type, Work: 1 << 20}
	for _, shape := range [][]int{{3, 7}, {100003, 3}, {100003, 7}, {3}} {
		s.Operands = append(s.Operands, calls.OperandSpec{Type: s.Type, Shape: shape})
		stride := []int{shape[len(shape)-1] + 5, 1}[2-len(shape):]
		call.Args = append(call.Args, calls.DeviceArg{Addr: 4, Shape: shape, Stride: stride})
	}
	v := DenseDwTiles.Variants(DenseDwProducts)[0]
	launches := v.Launches(call)
	if len(launches) != 2 || launches[1].Symbol != "product_sum_f32" {
		t.Fatalf("a sum of 100003 is not split: %d launches", len(launches))
	}
	// 3 rows of 7 and one more element for the bias, which is 8 floats.
	if want := int64(launches[0].Grid[1]) * 3 * 8 * 4; v.WorkspaceBytes(s) != want {
		t.Errorf("workspace of %d bytes, %d splits need %d", v.WorkspaceBytes(s), launches[0].Grid[1], want)
	}
	for _, l := range launches {
		if want := len(offload.Params(productParams{})); len(l.Params) != want {
			t.Errorf("%s: parameter of %d bytes, want %d", l.Symbol, len(l.Params), want)
		}
	}
}
