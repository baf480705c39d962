package simd

import (
	"fmt"
	"testing"
)

// BenchmarkBandwidth reports the bytes that loops read and write per second, each
// operand once, beside those of a copy: in the second-level cache and in memory.
func BenchmarkBandwidth(b *testing.B) {
	for _, where := range []struct {
		name  string
		elems int // of each of four arrays of float32
	}{{"L2", 1 << 15}, {"memory", 1 << 23}} {
		n := where.elems
		var a [4][]float32
		for i := range a {
			a[i] = make([]float32, n)
			for j := range a[i] {
				a[i][j] = float32(j*7919%101)/101 - 0.5
			}
		}
		bytes := make([]uint8, n)
		for i := range bytes {
			bytes[i] = uint8(i * 7919 % 101 % 2)
		}
		for _, c := range bandwidthCases(a, bytes, n) {
			for _, l := range supported() {
				if c.name == "copy" && l != Go {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/%v", where.name, c.name, l), func(b *testing.B) {
					b.SetBytes(int64(c.bytes))
					for b.Loop() {
						c.run(l)
					}
				})
			}
		}
	}
}

type bandwidthCase struct {
	name  string
	bytes int // read and written
	run   func(l Level)
}

// bandwidthCases are loops over n elements or a part of them, so that all operands
// together are about as large for each.
func bandwidthCases(a [4][]float32, bytes []uint8, n int) []bandwidthCase {
	q := n / 4
	sgd := SGD[float32]{Rate: 1e-9, Momentum: 0.5, Factor: 1}
	adam := Adam[float32]{0.9, 0.1, 0.999, 0.001, 1e-9, 0.3, 1e-8, 0, 1, 1}
	cases := []bandwidthCase{
		{"copy", 8 * n / 2, func(Level) { copy(a[0][:n/2], a[1]) }},
		{"relu", 9 * q, func(l Level) { ReLU(l, a[0], bytes, a[1][:q]) }},
		{"relu.dx", 9 * q, func(l Level) { ReLUGradient(l, a[0], a[1][:q], bytes) }},
		{"add", 12 * q, func(l Level) { Add(l, a[0], a[1][:q]) }},
		{"load", 5 * q, func(l Level) { DivideBytes(l, a[0], bytes[:q], 255) }},
		{"sgd", 20 * q, func(l Level) { sgd.Step(l, a[0], a[1][:q], a[2]) }},
		{"adam", 28 * q, func(l Level) { adam.Step(l, a[0], a[1][:q], a[2], a[3]) }},
	}
	for _, channels := range []int{1, 4, 6, 32} {
		const side = 16
		rows := n / (side * side * channels) * side / 2
		row := side / 2 * channels
		cases = append(cases, bandwidthCase{fmt.Sprintf("maxpool/%d", channels), rows * row * 21, func(l Level) {
			(&Pooling[float32]{
				Rows: rows, Windows: side / 2, Channels: channels, Size: 2, Step: 2, Y: a[0], Index: bytes, X: a[1], ReLU: true,
				YRow: row, YPixel: channels, IndexRow: row, IndexPixel: channels, XRow: 2 * row, XPixel: channels,
			}).Max(l)
		}}, bandwidthCase{fmt.Sprintf("unpool/%d", channels), rows * row * 21, func(l Level) {
			(&Pooling[float32]{
				Rows: rows, Windows: side / 2, Channels: channels, Size: 2, Step: 2, Y: a[0], Index: bytes, X: a[1],
				YRow: row, YPixel: channels, IndexRow: row, IndexPixel: channels, XRow: 2 * row, XPixel: channels,
			}).Spread(l)
		}})
	}
	for _, m := range [][2]int{{32, 64}, {32, 1024}, {1024, 32}, {6, 196}, {196, 6}} {
		size := m[0] * m[1]
		cases = append(cases, bandwidthCase{fmt.Sprintf("transpose/%dx%d", m[0], m[1]), n / size * size * 8, func(l Level) {
			for i := 0; i+size <= n; i += size {
				(&Transpose[float32]{Rows: m[0], Columns: m[1], To: a[0][i:], From: a[1][i:], ToRow: m[0], FromRow: m[1]}).Run(l)
			}
		}})
	}
	for _, columns := range []int{4, 10, 32, 512} {
		cases = append(cases, bandwidthCase{fmt.Sprintf("columns/%d", columns), n / columns * columns * 4, func(l Level) {
			ColumnSums(l, a[0][:columns], a[1], n/columns, columns, false)
		}})
	}
	return cases
}
