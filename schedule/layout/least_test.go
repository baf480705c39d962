package layout

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// TestLeastBytes: of the chain of TestLayoutChain x1 and x2 are live at once, 128 + 192 bytes, beside w and data, 128 and 64, and 70 of scratch, 128. Layouts
// of random graphs take no fewer bytes than the bound, and some just as many.
func TestLeastBytes(t *testing.T) {
	chain := inOneMemory(chainGraph(t, 64, 128, 192, 128))
	chain.ScratchBytes = []int64{70}
	if least := must.Get(chain.LeastBytes(1))(t); least[0] != 640 {
		t.Errorf("a chain takes %d bytes at least, want 640", least[0])
	}
	equal := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		g := randomLoop(t, r)
		for _, order := range [][][]dag.TaskID{nil, randomOrder(r, g)} {
			in := inOneMemory(g)
			in.Order = order
			least := must.Get(in.LeastBytes(1))(t)[0]
			total := must.Get(Memories("p", []*Graph{in}, make([]platform.Memory, 1)))(t)[0][0].TotalBytes()
			if least > total {
				t.Fatalf("seed %d: a layout of %d bytes, %d at least", seed, total, least)
			}
			if least == total {
				equal++
			}
		}
	}
	if equal == 0 {
		t.Error("no layout takes as few bytes as the bound")
	}
}
