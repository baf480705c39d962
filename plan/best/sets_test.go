package best

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
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
		o := Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: math.MaxInt, Time: 100 * time.Millisecond}
		found, err := Find(t.Context(), space.Of(in.priced, space.Sets(in.priced.Platform, in.priced.Program.Graphs[0])), o)
		if err != nil || found.Plan == nil {
			t.Fatal(found, err)
		}
	}
}

// A machine has no worse plan than a part of it that has fewer units, when each set of devices gets as many nodes: the
// sets of the part are among those of the machine.
func TestMoreUnitsAreNoWorse(t *testing.T) {
	const nodesEach = 500
	r := rand.New(rand.NewPCG(11, 7))
	compared := 0
	for compared < 24 {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		sets := space.Sets(in.priced.Platform, in.priced.Program.Graphs[0])
		find := func(sets []string, o problem.Objective, steady bool) *Result {
			return must.Get(Find(t.Context(), space.Of(in.priced, sets), Options{Aim: problem.Aim{Objective: o, Steady: steady}, Nodes: nodesEach * len(sets)}))(t)
		}
		for _, d := range in.priced.Platform.Devices {
			if d.Count == 1 {
				continue
			}
			part := slices.DeleteFunc(slices.Clone(sets), func(set string) bool {
				p, err := in.priced.Platform.Select(set)
				if set == "" {
					p, err = in.priced.Platform, nil
				}
				if err != nil {
					t.Fatal(err)
				}
				return slices.ContainsFunc(p.Devices, func(of platform.Device) bool { return of.Name == d.Name && of.Count == d.Count })
			})
			for _, o := range []problem.Objective{problem.Time, problem.Energy, problem.EDP} {
				for _, steady := range []bool{false, true} {
					few, many := find(part, o, steady), find(sets, o, steady)
					compared++
					if many.Value > few.Value*(1+tolerance) {
						t.Errorf("%s, steady %v: %g with %q, %g with %q", o, steady, few.Value, few.Devices, many.Value, many.Devices)
					}
				}
			}
		}
	}
}

// Equal nodes give equal bytes of plan and certificate, however many goroutines run at a time.
func TestEqualNodesEqualBytes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(21, 34))
	certificates, graphs := 0, 12
	if testing.Short() {
		graphs = 5
	}
	for range graphs {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		sets := space.Sets(in.priced.Platform, in.priced.Program.Graphs[0])
		for _, steady := range []bool{false, true} {
			var texts []string
			for _, processors := range []int{1, 4} {
				runtime.GOMAXPROCS(processors)
				found := must.Get(Find(t.Context(), space.Of(in.priced, sets), Options{Aim: problem.Aim{Objective: problem.Energy, Steady: steady}, Nodes: 1000 * len(sets)}))(t)
				var file bytes.Buffer
				must.Do(t, json.NewEncoder(&file).Encode(found.Plan))
				if found.Certificate != nil {
					certificates++
					must.Do(t, found.Certificate.Write(&file))
				}
				texts = append(texts, file.String())
			}
			if texts[0] != texts[1] {
				t.Errorf("steady %v: with one processor\n%s\nwith four\n%s", steady, texts[0], texts[1])
			}
		}
	}
	if certificates == 0 {
		t.Error("no search has a certificate: the test tests little")
	}
}
