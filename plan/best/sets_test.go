package best

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"dahl/plan/exact"
	"dahl/plan/space"
)

// A search that only time bounds looks at no more than it can hold: there is no number of nodes by which local search
// could be sized.
func TestTimeAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for range 5 {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		o := Options{Options: exact.Options{Objective: exact.Time, Nodes: math.MaxInt}, Steady: true, Time: 100 * time.Millisecond}
		found, err := Find(t.Context(), space.Of(in.priced, space.Sets(in.priced.Platform, in.priced.Program.Graphs[0])), o)
		if err != nil || found.Plan == nil {
			t.Fatal(found, err)
		}
	}
}
