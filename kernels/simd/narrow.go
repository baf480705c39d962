package simd

import "unsafe"

// narrowArgs is the argument of one call of the assembly for windows of 2×2 over few channels.
// Distances are in bytes. gen/narrow.go knows the order of the fields.
type narrowArgs struct {
	y, index, x             unsafe.Pointer
	_                       [3]int // yAt, indexAt, xAt: the assembly notes where the present row begins
	rows, vectors           int    // of a row, those stored whole
	parts, tail             int    // those masked, elements beyond them
	mask                    uintptr
	pixels                  [2]uintptr // masks of two vectors of pixels
	tailMask                uintptr
	tailPixels              [2]uintptr
	yRow, indexRow, xRows   int
	xRow                    int
	yStep, indexStep, xStep int // from a vector to the next
	limit                   uint64
	one, none               int
	tables                  *narrowTable
}

// narrowTable says where each element goes, for one number of channels. A vector is words or,
// with AVX-512, elements.
type narrowTable struct {
	tap    [2][16]uint32 // the left and the right pixel of each window, in two vectors
	high   [2][16]uint32 // -1 where that pixel is in the second vector
	expand [2][16]uint32 // the window of each element of two vectors of pixels
	column [2][16]uint32 // 0 where that element belongs to a left pixel, 1 to a right one
}

// mostNarrow is the largest number of channels of which a vector holds two windows.
const mostNarrow = 8

// narrowTables are by level, size of elements in words, and channels.
var narrowTables = makeNarrowTables()

func makeNarrowTables() (all [AVX512 + 1][3][mostNarrow + 1]narrowTable) {
	for _, l := range []Level{AVX2, AVX512} {
		for words := 1; words <= 2; words++ {
			for channels := 1; channels <= mostNarrow; channels++ {
				all[l][words][channels].fill(l, words, channels)
			}
		}
	}
	return all
}

func (t *narrowTable) fill(l Level, words, channels int) {
	lanes := l.bytes() / 4 / words
	for i := range lanes / channels * channels {
		window, c := i/channels, i%channels
		for column := range 2 {
			from := (2*window+column)*channels + c
			t.put(&t.tap[column], l, words, i, from%lanes+l.second(from/lanes*lanes))
			for w := range words {
				t.high[column][i*words+w] = -uint32(from / lanes)
			}
		}
	}
	for i := range lanes / channels * channels * 2 {
		pixel, c := i/channels, i%channels
		t.put(&t.expand[i/lanes], l, words, i%lanes, pixel/2*channels+c)
		t.column[i/lanes][i%lanes*words] = uint32(pixel % 2)
	}
}

// second is the offset of the second of two vectors in an index, where one instruction looks into
// both.
func (l Level) second(lanes int) int {
	if l == AVX512 {
		return lanes
	}
	return 0
}

// put sets element i of a permutation: AVX2 permutes words, AVX-512 elements.
func (t *narrowTable) put(table *[16]uint32, l Level, words, i, from int) {
	if l == AVX512 {
		table[i*words] = uint32(from)
		return
	}
	for w := range words {
		table[i*words+w] = uint32(from*words + w)
	}
}

// narrow is the level at which windows of 2×2 side by side, without gaps between pixels,
// are computed two or more in a vector, or Go if they are not such: the narrower one if
// a row of windows has no more.
func (p *Pooling[T]) narrow(l Level, size int) Level {
	c := p.Channels
	if p.Size != 2 || p.Step != 2 || p.width() != 2 || p.across() != 2 || p.XPixel != c || p.YPixel != c || p.IndexPixel != c {
		return Go
	}
	fits := func(l Level) bool { return 2*c <= l.bytes()/size && (l == AVX512 || l.bytes()/size%c == 0) }
	switch {
	case fits(AVX2) && (l == AVX2 || p.Windows*c <= AVX2.bytes()/size):
		return AVX2
	case fits(l):
		return l
	}
	return Go
}

func (p *Pooling[T]) narrowArgs(l Level, size int) narrowArgs {
	lanes := l.bytes() / size
	windows := lanes / p.Channels
	whole, tail := windows*p.Channels, p.Windows%windows*p.Channels
	pixels := func(elements int) [2]uintptr {
		return [2]uintptr{l.mask(min(2*elements, lanes), size), l.mask(max(2*elements-lanes, 0), size)}
	}
	vectors, parts := p.Windows/windows, 0
	if whole < lanes && vectors > 0 {
		vectors, parts = vectors-1, 1
	}
	return narrowArgs{
		y: pointer(p.Y), index: pointer(p.Index), x: pointer(p.X), limit: p.limit(),
		rows: p.rows(), vectors: vectors, parts: parts, tail: tail,
		mask: l.mask(whole, size), pixels: pixels(whole),
		tailMask: l.mask(tail, size), tailPixels: pixels(tail),
		yRow: p.YRow * size, indexRow: p.IndexRow, xRows: 2 * p.XRow * size, xRow: p.XRow * size,
		yStep: whole * size, indexStep: whole, xStep: 2 * whole * size,
		one: 1, none: NoMaximum,
		tables: &narrowTables[l][size/4][p.Channels],
	}
}
