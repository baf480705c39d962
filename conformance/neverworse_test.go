package conformance

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/models"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/platforms"
	"dahl/platforms/testmachine"
	"dahl/schedule/policy"
	"dahl/train"
)

// neverWorseAsked is the variable that asks for a number of cases, and after it may say how many nodes a search has.
const neverWorseAsked = "DAHL_NEVER_WORSE"

// Each search has so many nodes if nothing else is said, and a larger one four times as many. A plan of more devices may be so far above one of fewer.
const (
	neverWorseNodes = 20_000
	moreNodes       = 4
	forPlans        = 600 // thousandths of the nodes, as package best has it
	mostSubsets     = 5
	subsetSlack     = 0.01
	rounding        = 1e-9 // of sums
)

// TestNeverWorse: more choice does not hurt. The plan of a set of devices is at most 1 % above those of five random parts of it, which
// have as many nodes, and never above what a policy plans on it with default tiles. Four times the nodes give no
// worse value.
//
//	DAHL_NEVER_WORSE=200 go test ./conformance -run TestNeverWorse       # as many cases
//	DAHL_NEVER_WORSE="200 5000" go test ./conformance -run TestNeverWorse       # with 5,000 nodes for a search
//	DAHL_NEVER_WORSE=200 go test ./conformance -run TestNeverWorse/^17$ -v -artifacts -outputdir DIR
//
// The last one tries a single case again, and writes its machine and its network as files.
func TestNeverWorse(t *testing.T) {
	asked := os.Getenv(neverWorseAsked)
	if asked == "" {
		t.Skipf("%s=N tries N cases", neverWorseAsked)
	}
	cases, nodes := 0, neverWorseNodes
	if n, err := fmt.Sscan(asked, &cases, &nodes); n == 0 {
		t.Fatal(err)
	}
	sum := &tally{of: map[string]*violations{}}
	t.Cleanup(func() { // the cases have ended
		for _, than := range slices.Sorted(maps.Keys(sum.of)) {
			of := sum.of[than]
			t.Logf("worse than %s: %d times in %d of %d cases, at most %.1f %%", than, of.times, len(of.cases), cases, 100*of.most)
		}
	})
	for i := range cases {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			randomChoice(t, uint64(i)).neverWorse(t, nodes, sum)
		})
	}
}

// tally is the violations of all cases.
type tally struct {
	sync.Mutex
	of map[string]*violations
}

// violations are the plans that are worse than others of one kind.
type violations struct {
	times int
	cases map[*choiceCase]bool
	most  float64 // relative
}

// choiceCase is a network on a machine with an objective.
type choiceCase struct {
	machine *platform.Platform
	model   *nn.Model
	network string // its file, where it is none of those that ship
	batch   int
	aim     problem.Aim
	r       *rand.Rand
}

func (c *choiceCase) String() string {
	return fmt.Sprintf("%s on %s, batch %d, %s", c.model.Name, c.machine.Name, c.batch, c.aim.Objective)
}

// randomChoice draws a case.
func randomChoice(t *testing.T, seed uint64) *choiceCase {
	r := rand.New(rand.NewPCG(seed, 32))
	c := &choiceCase{r: r, batch: []int{5, 8, 13, 32}[r.IntN(4)]}
	if r.IntN(2) == 0 {
		c.machine = testmachine.Random(t, r)
	} else {
		for c.machine == nil || len(c.machine.Nodes) > 0 { // a cluster is many machines, and takes long
			c.machine = must.Get(platforms.Load(platforms.Names()[r.IntN(len(platforms.Names()))]))(t)
		}
	}
	if r.IntN(2) == 0 {
		c.network = randomNetwork(r)
		c.model = must.Get(files.ParseModel([]byte(c.network), "random.toml"))(t)
	} else {
		c.model = must.Get(models.ByName([]string{"dahl-cnn", "lenet5", "mlp"}[r.IntN(3)]))(t)
	}
	c.aim = problem.Aim{Objective: problem.Objective(problem.Objectives()[r.IntN(len(problem.Objectives()))]), Steady: true}
	return c
}

// randomNetwork is up to two convolutions and then one or two dense layers.
func randomNetwork(r *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name = \"random\"\ninput = [%d, %d, %d]\n", 1+r.IntN(3), 12, 12)
	for range r.IntN(3) {
		fmt.Fprintf(&b, "[[layer]]\nkind = \"conv2d\"\nfilters = %d\nkernel = 3\npad = 1\n[[layer]]\nkind = \"relu\"\n", []int{3, 8, 17, 32}[r.IntN(4)])
		if r.IntN(2) == 0 {
			b.WriteString("[[layer]]\nkind = \"maxpool\"\nsize = 2\n")
		}
	}
	b.WriteString("[[layer]]\nkind = \"flatten\"\n")
	if r.IntN(3) > 0 {
		fmt.Fprintf(&b, "[[layer]]\nkind = \"dense\"\noutputs = %d\n[[layer]]\nkind = \"relu\"\n", []int{7, 64, 251, 1024}[r.IntN(4)])
	}
	b.WriteString("[[layer]]\nkind = \"dense\"\noutputs = 10\n")
	return b.String()
}

// space is the space of choices within a set of devices, and the workload that dahl plan --devices starts from.
func (c *choiceCase) space(devices string) (*train.Space, error) {
	p := c.machine
	if devices != "" {
		var err error
		if p, err = p.Select(devices); err != nil {
			return nil, err
		}
	}
	w := &train.Workload{Samples: train.Samples{Train: c.batch}, Options: train.Options{OtherMachine: true, Batch: c.batch, Devices: devices}, Model: c.model, Platform: p}
	if err := w.Lower(); err != nil {
		return nil, err
	}
	tiles, err := w.Tiles()
	if err != nil {
		return nil, err
	}
	return w.Space(c.machine, devices, tiles...)
}

// find searches the plan of a set of devices.
func (c *choiceCase) find(ctx context.Context, devices string, nodes int) (*best.Result, error) {
	s, err := c.space(devices)
	if err != nil {
		return nil, err
	}
	s.Shares = nil // no plan depends on bounds: they are left out
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return best.Find(ctx, &s.Space, best.Options{Aim: c.aim, Nodes: nodes, Progress: func(thousandths int, _ float64) {
		if thousandths >= forPlans {
			cancel()
		}
	}})
}

// neverWorse compares the plan of all devices with other plans.
func (c *choiceCase) neverWorse(t *testing.T, nodes int, sum *tally) {
	found, err := c.find(t.Context(), "", nodes)
	if err != nil {
		t.Skipf("%s: %v", c, err)
	}
	t.Logf("%s: %.6g on %s", c, found.Value, found.Choice)
	check := func(value, other, slack float64, than, which string) {
		if value <= other*(1+slack) {
			return
		}
		sum.Lock()
		defer sum.Unlock()
		if sum.of[than] == nil {
			sum.of[than] = &violations{cases: map[*choiceCase]bool{}}
		}
		of := sum.of[than]
		of.times, of.cases[c], of.most = of.times+1, true, max(of.most, value/other-1)
		t.Errorf("%s: %.6g is %.2f %% above %.6g of %s, %s", c, value, 100*(value/other-1), other, than, which)
	}
	values := c.byPolicies(t)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		check(found.Value, values[name], rounding, "a policy", name)
	}
	for range mostSubsets {
		devices := c.subset()
		if part, err := c.find(t.Context(), devices, nodes); err == nil {
			check(found.Value, part.Value, subsetSlack, "a part of the devices", fmt.Sprintf("--devices %s: %s", devices, part.Choice))
		}
	}
	more := must.Get(c.find(t.Context(), "", moreNodes*nodes))(t)
	check(more.Value, found.Value, rounding, "a quarter of the nodes", fmt.Sprintf("%s beside %s", found.Choice, more.Choice))
	if t.Failed() {
		var machine bytes.Buffer
		must.Do(t, c.machine.WriteTOML(&machine))
		must.Do(t, os.WriteFile(filepath.Join(t.ArtifactDir(), "machine.toml"), machine.Bytes(), 0o666))
		if c.network != "" {
			must.Do(t, os.WriteFile(filepath.Join(t.ArtifactDir(), "network.toml"), []byte(c.network), 0o666))
		}
	}
}

// byPolicies is what the policies plan on all devices with default tiles.
func (c *choiceCase) byPolicies(t *testing.T) map[string]float64 {
	s := must.Get(c.space(""))(t)
	priced := must.Get(s.Price(space.Choice{Tiles: tiling.Of(tiling.Base{Kind: tiling.Default})}))(t)
	values := map[string]float64{}
	for _, p := range policy.All() {
		values[p.Doc().Name] = math.Inf(1)
		e, err := new(plan.Evaluator).Policy(t.Context(), priced, p, c.aim.Steady)
		if e == nil || err != nil {
			continue // it has no plan of this network
		}
		if step, err := e.Step(t.Context(), c.aim.Steady, 50); err == nil {
			values[p.Doc().Name] = c.aim.Objective.Of(step.Time, step.Joules)
		}
	}
	return values
}

// subset is a random part of the devices, not all.
func (c *choiceCase) subset() string {
	for {
		var items []string
		whole := true
		for i := range c.machine.Devices {
			d := &c.machine.Devices[i]
			n := c.r.IntN(d.Count + 1)
			if c.r.IntN(2) == 0 {
				n = []int{0, d.Count}[c.r.IntN(2)]
			}
			if whole = whole && n == d.Count; n > 0 {
				items = append(items, d.Item(n))
			}
		}
		if len(items) > 0 && !whole || len(c.machine.Devices) == 1 && c.machine.Devices[0].Count == 1 {
			return strings.Join(slices.Clip(items), ",")
		}
	}
}
