package execute

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"dahl/dag"
	"dahl/execute/driver"
)

// TestBoxesAreCopiedByRows moves random boxes between buffers of different shapes by the
// parts of appendBox, and element by element.
func TestBoxesAreCopiedByRows(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 31))
		rank := rng.IntN(5)
		types := []dag.DType{dag.Uint8, dag.Int32, dag.Float64}
		from := &dag.Buffer{Type: types[rng.IntN(len(types))]}
		to := &dag.Buffer{Type: from.Type}
		var fromBox, toBox dag.Box
		for range rank {
			n := 1 + rng.IntN(5)
			a, b := 0, 0
			if rng.IntN(2) == 0 {
				a, b = rng.IntN(3), rng.IntN(3)
			}
			from.Shape, to.Shape = append(from.Shape, n+a+rng.IntN(2)*a), append(to.Shape, n+b+rng.IntN(2)*b)
			fromBox, toBox = append(fromBox, dag.Range{Lo: a, Hi: a + n}), append(toBox, dag.Range{Lo: b, Hi: b + n})
		}
		src, got, want := make([]byte, from.Bytes()), make([]byte, to.Bytes()), make([]byte, to.Bytes())
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		at := driver.Copy{From: driver.Plane{Host: unsafe.Pointer(unsafe.SliceData(src))}, To: driver.Plane{Host: unsafe.Pointer(unsafe.SliceData(got))}}
		total := int64(0)
		for _, c := range appendBox(nil, at, from, fromBox, to, toBox) {
			total += c.Rows * c.RowBytes
			for r := range c.Rows {
				row := func(p driver.Plane) []byte { return unsafe.Slice((*byte)(unsafe.Add(p.Host, r*p.Pitch)), c.RowBytes) }
				copy(row(c.To), row(c.From))
			}
		}
		moveByElements(src, from, fromBox, want, to, toBox)
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: box %v of %v to box %v of %v moves something else", seed, fromBox, from.Shape, toBox, to.Shape)
		}
		if boxBytes := fromBox.Elems() * from.Type.SizeBytes(); total != boxBytes {
			t.Fatalf("seed %d: %d bytes moved, the box has %d", seed, total, boxBytes)
		}
	}
}

func moveByElements(src []byte, from *dag.Buffer, fromBox dag.Box, dst []byte, to *dag.Buffer, toBox dag.Box) {
	size := int(from.Type.SizeBytes())
	var walk func(d, f, t int)
	walk = func(d, f, t int) {
		if d == len(fromBox) {
			copy(dst[t*size:(t+1)*size], src[f*size:(f+1)*size])
			return
		}
		for i := range fromBox[d].Len() {
			walk(d+1, f*from.Shape[d]+fromBox[d].Lo+i, t*to.Shape[d]+toBox[d].Lo+i)
		}
	}
	walk(0, 0, 0)
}

// By hand: columns 3 to 4 of 3×4×5 elements of 4 bytes are 12 rows of 4 bytes, 4 rows
// in each of 3 copies; planes 1 and 2 as a whole are one row of 2·4·5·4 bytes.
func TestCopiesOfABox(t *testing.T) {
	b := &dag.Buffer{Type: dag.Float32, Shape: []int{3, 4, 5}}
	for _, c := range []struct {
		box  dag.Box
		want string
	}{
		{dag.Box{{Lo: 0, Hi: 3}, {Lo: 0, Hi: 4}, {Lo: 3, Hi: 4}}, "4×4 4×4 4×4"},
		{dag.Box{{Lo: 1, Hi: 3}, {Lo: 0, Hi: 4}, {Lo: 0, Hi: 5}}, "1×160"},
		{dag.Box{{Lo: 0, Hi: 3}, {Lo: 1, Hi: 3}, {Lo: 0, Hi: 5}}, "3×40"},
		{nil, "1×240"},
	} {
		got := ""
		for _, part := range appendBox(nil, driver.Copy{}, b, c.box, b, c.box) {
			if got != "" {
				got += " "
			}
			got += fmt.Sprintf("%d×%d", part.Rows, part.RowBytes)
		}
		if got != c.want {
			t.Errorf("box %v: copies of %s rows×bytes, want %s", c.box, got, c.want)
		}
	}
}
