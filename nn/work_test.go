package nn_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/models"
)

// TestWork compares the least work of operations with the tasks of random lowerings: the shares of the tiles of an operation add up to 1, so
// that they have no fewer flops together than its form with the fewest, and move no fewer bytes. What a form has besides is there.
func TestWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(27, 18))
	cases := layerCases(t)
	maps.Copy(cases, fusionCases(t))
	maps.Copy(cases, branchCases(t))
	for _, c := range cutCases() {
		cases[c.what] = c.model(t)
	}
	cases["lenet5"] = must.Get(models.ByName("lenet5"))(t)
	cases["residual"] = must.Get(files.LoadModel("examples/residual.toml"))(t)
	cases["joined"] = joined(t)
	tries, every := 4, 1
	if testing.Short() {
		tries, every = 3, 4
	}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		m := cases[name]
		if i%every > 0 {
			continue
		}
		for _, optimizer := range []nn.Optimizer{nn.DefaultSGD(), nn.DefaultAdam(), nil} { // none: an evaluation
			batch := 1 + 4*rng.IntN(2)
			opt := nn.LowerOptions{Batch: batch, Samples: batch, Type: dag.Float32, Train: optimizer != nil, Optimizer: optimizer}
			if _, err := m.Lower(opt); err != nil {
				continue // a variance of one value
			}
			step, err := m.Work(t.Context(), opt)
			must.Do(t, err)
			if !opt.Train && len(step.Chains) > 0 {
				t.Errorf("%s: an evaluation has no update, and %d chains between updates", name, len(step.Chains))
			}
			for _, l := range slices.Concat(step.Chains...) {
				if l.Work < 0 || l.Work >= len(step.Work) {
					t.Errorf("%s: a chain has work %d of %d", name, l.Work, len(step.Work))
				}
			}
			for range tries {
				opt.Lowering = randomCuts(rng, m)
				opt.Lowering.JoinLoss = m.JoinsLoss() && rng.IntN(2) == 0
				g, err := m.Lower(opt)
				if err != nil {
					continue // a variance of one value
				}
				checkWork(t, name, step.Work, g)
			}
		}
	}
}

// checkWork sums the tasks of each work up.
func checkWork(t *testing.T, name string, work []dag.Work, g *dag.Graph) {
	t.Helper()
	flops, bytes, call := map[string]float64{}, map[string]float64{}, map[string]string{}
	for i := range g.Tasks {
		task := &g.Tasks[i]
		of, _, _ := strings.Cut(task.Name, "[")
		call[of] = fmt.Sprint(task.Op, len(task.Accesses))
		flops[of] += task.Flops
		bytes[of] += float64(task.MovedBytes)
	}
	for _, w := range work {
		leastFlops, leastBytes := math.Inf(1), math.Inf(1)
		for _, f := range w.Forms {
			sum := 0.0
			for _, moved := range f.Moved {
				sum += moved.Bytes
			}
			leastFlops, leastBytes = min(leastFlops, f.Flops), min(leastBytes, sum)
			for _, also := range f.Also {
				if _, ok := bytes[work[also].Name]; !ok && call[w.Name] == fmt.Sprint(f.Op, len(f.Moved)) && !slices.ContainsFunc(w.Forms, func(other dag.Form) bool {
					return other.Op == f.Op && len(other.Moved) == len(f.Moved) && !slices.Contains(other.Also, also) // as of filters that also normalise
				}) {
					t.Errorf("%s: %s is %s, and there is no %s", name, w.Name, f.Op, work[also].Name)
				}
			}
		}
		if b, ok := bytes[w.Name]; !ok && !w.Sometimes || ok && (flops[w.Name] < leastFlops || b < leastBytes) {
			t.Errorf("%s: %s has %g flops and moves %g bytes, and takes at least %g and %g", name, w.Name, flops[w.Name], b, leastFlops, leastBytes)
		}
	}
}

// randomCuts is a lowering with any numbers.
func randomCuts(rng *rand.Rand, m *nn.Model) dag.Lowering {
	l := dag.Lowering{Layers: map[string]dag.LayerLowering{}, MicroBatches: rng.IntN(4)}
	names := []string{"input", "loss"}
	for i := range m.Stages {
		names = append(names, m.Stages[i].Name)
	}
	for _, name := range names {
		ll := dag.LayerLowering{Recompute: rng.IntN(5) == 0}
		for pass := range dag.NumPasses {
			for d := range dag.NumNumbers {
				if rng.IntN(3) == 0 {
					*ll.Cut(pass).Of(d) = rng.IntN(6)
				}
			}
		}
		l.Layers[name] = ll
	}
	return l
}
