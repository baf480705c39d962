package data

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"dahl/dag"
	"dahl/must"
)

func TestParseTokens(t *testing.T) {
	for spec, want := range map[string]Tokens{"": {64, 1000, 64}, "7": {7, 1000, 64}, "7:11": {7, 11, 64}, "7:11:50257": {7, 11, 50257}} {
		if got, err := ParseTokens(spec); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", spec, got, err, want)
		}
	}
	for _, spec := range []string{"7:11:13:17", "7x3", "0", "7:", "7:11:-1", "99999999999"} {
		wantError(t, "tokens:"+spec, Options{}, spec, "write tokens:64:1000:256")
	}
	wantError(t, "tokens:1024:2000000", Options{}, "2000000 samples of 1024 tokens; at most 67108864")
}

// TestTokens: the label of a position is the next token. Of n = 17·101 labels a share of 7/8 + 1/(8·13) is the successor of the token, and the
// count has a deviation of √(n·0.885·0.115) = 13. All four lie within 5 of these.
func TestTokens(t *testing.T) {
	successor := map[uint32]int32{}
	for _, split := range []string{Train, Test} {
		d := must.Get(loaded("tokens:17:101:13", Options{Split: split}))(t)
		if d.Type != dag.Int32 || d.Len() != 101 || d.Classes != 13 || !reflect.DeepEqual(d.Positions, d.Shape) {
			t.Fatalf("%+v", d)
		}
		counts := map[[2]uint32]int{}
		for i, label := range d.Labels {
			token := binary.LittleEndian.Uint32(d.Samples[4*i:])
			counts[[2]uint32{token, uint32(label)}]++
			if i%17 < 16 && binary.LittleEndian.Uint32(d.Samples[4*i+4:]) != uint32(label) {
				t.Fatalf("label %d of %s is not the next token", i, split)
			}
		}
		follows := 0
		for token := range uint32(13) {
			best := int32(0)
			for next := range int32(13) {
				if counts[[2]uint32{token, uint32(next)}] > counts[[2]uint32{token, uint32(best)}] {
					best = next
				}
			}
			if split == Test && successor[token] != best {
				t.Errorf("token %d: the splits have the successors %d and %d", token, successor[token], best)
			}
			successor[token] = best
			follows += counts[[2]uint32{token, uint32(best)}]
		}
		if want := 17 * 101 * (7./8 + 1./8/13); math.Abs(float64(follows)-want) > 5*13 {
			t.Errorf("%s: %d successors, want about %.0f", split, follows, want)
		}
	}
}
