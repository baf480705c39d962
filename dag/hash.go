package dag

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash identifies the graph: the SHA-256 of its canonical text, in hexadecimal. Graphs of equal
// hash have the same tasks, work, costs and dependences. The first call computes it.
func (g *Graph) Hash() string { return g.hash() }

// textHash is the result of Hash.
func (g *Graph) textHash() string {
	sum := sha256.New()
	if err := g.WriteText(sum); err != nil {
		panic("dag: a hash cannot fail to be written: " + err.Error())
	}
	return hex.EncodeToString(sum.Sum(nil))
}
