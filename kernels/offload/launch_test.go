package offload

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestParams: fields lie as C lays them out, each at a multiple of its size: 8 bytes at 0,
// 4 at 8, 4 of padding, 8 at 16, then two of 4, 4 more and 4 of padding at the end, 40 in all. Padding is zero.
func TestParams(t *testing.T) {
	b := Params(struct {
		Addr   uint64
		N      int32
		Rate   float64
		Stride [2]int32
		Scale  float32
	}{1 << 40, 7, 0.1, [2]int32{11, 13}, 0.5})
	at := binary.LittleEndian
	if len(b) != 40 || at.Uint64(b) != 1<<40 || at.Uint32(b[8:]) != 7 || at.Uint64(b[16:]) != math.Float64bits(0.1) ||
		at.Uint32(b[12:]) != 0 || at.Uint32(b[24:]) != 11 || at.Uint32(b[28:]) != 13 || at.Uint32(b[32:]) != math.Float32bits(0.5) || at.Uint32(b[36:]) != 0 {
		t.Errorf("bytes % x", b)
	}
	defer func() {
		if recover() == nil {
			t.Error("a field of type int is accepted")
		}
	}()
	Params(struct{ N int }{})
}
