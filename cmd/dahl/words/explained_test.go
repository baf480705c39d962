package words

import (
	"bytes"
	"testing"

	"dahl/energy"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/plan/tiling"
	"dahl/platform"
)

// TestExplained prints facts of a made-up search. A step of 20 mJ in 1 ms draws 20 W; the next best of 25 mJ in 2 ms draws 12.5 W,
// 7.5 W less, and takes a quarter more joules and twice as long.
func TestExplained(t *testing.T) {
	wins, whole := 0.04, tiling.Of(tiling.Base{Kind: tiling.Whole})
	e := &best.Explanation{
		Chosen: best.Chosen{Devices: "cpu:2,gpu0", Tiles: whole, Policy: "exact", Figures: best.Figures{Value: 0.02, StepS: 0.001, StepJ: 0.02},
			Why: best.Why{Basis: energy.Modelled, Watts: 20, BaseJ: 0.005, LeftOutJ: 0.00009, IdleJ: 0.001, BusyJ: 0.01391, PathTasks: 0.9, PathCopies: 0.1, Busiest: "gpu0", BusyShare: 0.8},
			Use: []best.Use{{Device: "cpu", Units: 2, Used: 1, Tasks: 3, Busy: 0.25, Clocks: []best.Clock{{Clock: "slow", Tasks: 2}, {Clock: "base", Tasks: 1}},
				Variants: []best.Variant{{Call: "dense a", Op: "dense", Variant: "avx2", Fastest: "avx512", Tasks: 1}, {Call: "dense b", Op: "dense", Variant: "avx2", Fastest: "avx512", Tasks: 1}}}, {Device: "gpu0", Units: 1, Used: 1, Tasks: 9, Busy: 0.8, Sleeps: []best.Sleep{{State: "light", Time: 0.001}, {State: "deep", Time: 0.1, Tasks: 2}}}, {Device: "gpu1", Units: 1}},
			Layers: []best.Layer{{Layer: "conv1", Devices: []best.Share{{Device: "gpu0", Tasks: 1, Time: 1}}}, {Layer: "conv2", Devices: []best.Share{{Device: "cpu", Tasks: 0.01, Time: 0.001}, {Device: "gpu0", Tasks: 0.99, Time: 0.999}}},
				{Layer: "fc", Devices: []best.Share{{Device: "cpu", Tasks: 0.5, Time: 0.3}, {Device: "gpu0", Tasks: 0.5, Time: 0.7}}}}},
		Next: &best.Option{Devices: "cpu:1", Tiles: whole, Policy: "heft", Figures: &best.Figures{Value: 0.025, Relative: 0.25, StepS: 0.002, StepJ: 0.025},
			Why: &best.Why{Basis: energy.Modelled, BaseJ: 0.01, LeftOutJ: 0.00009, IdleJ: 0.001, BusyJ: 0.01391}},
		Spare: []best.Option{{Of: "gpu1", Devices: "cpu:2,gpu0,gpu1", Tiles: whole, AtLeast: 0.03}, {Of: "cpu", Devices: "cpu:4,gpu0", Tiles: tiling.Of(tiling.Base{Kind: tiling.Default}), Policy: "heft", Figures: &best.Figures{Value: 0.0204, Relative: 0.02, StepS: 0.0005, StepJ: 0.0204}, AtLeast: -0.01},
			{Of: "cuda", Devices: "cpu:2,gpu0,gpu2", Tiles: whole, Policy: "heft", Figures: &best.Figures{Value: 0.021, Relative: 0.05, StepS: 0.001, StepJ: 0.021}, AtLeast: 0.01}},
		Without: []best.Option{{Of: "gpu0", Devices: "cpu:2", Tiles: whole, Policy: "heft", Figures: &best.Figures{Value: 0.4, Relative: 19, StepS: 0.04, StepJ: 0.4}, AtLeast: 19},
			{Of: "cpu", Devices: "cpu:1,gpu0", Tiles: whole}},
		Spread: best.Spread{Draws: 100, Chosen: &plan.Interval{Low: 0.018, High: 0.022}, Next: &plan.Interval{Low: 0.0215, High: 0.03}, NextWins: &wins},
	}
	var out bytes.Buffer
	machine := &platform.Platform{Devices: []platform.Device{{Name: "cpu", Kind: platform.CPU}, {Name: "gpu0", Kind: "cuda"}, {Name: "gpu1", Kind: "cuda"}}}
	x := &Explained{e, problem.Energy, best.Covered{Sets: 20, Tilings: 8}, machine, &out, "summary.json"}
	x.PrintChosen()
	x.Print()
	want := `chosen    cpu:2,gpu0 with tiles whole, planned by branch and bound
          cpu: 3 of the tasks on 1 of the 2 units chosen, busy 25 %, clocks 2 at slow and 1 at base,
          2 dense by avx2 (avx512 is the fastest by itself); gpu0: 9 of the tasks, busy 80 %, asleep
          under 1 % in light, asleep 10 % in deep (at once after 2 of the tasks); no task on gpu1
          layers: conv1 to conv2 on gpu0; fc on gpu0 70 %, cpu 30 %
why       20 mJ in 1 ms, 20 W: 13.9 mJ work, 5 mJ base power, 1 mJ waiting
next      cpu:1 with tiles whole: 25 mJ by heft, +25 % (step +100 %, -7.5 W); mostly base power +5
          mJ
spare     more of cpu: cpu:4,gpu0 with tiles default: 20.4 mJ by heft, +2 % (step -50 %, +20.8 W)
          more of gpu: cpu:2,gpu0,gpu2: 21 mJ by heft, +5 % (step +0 %, +1 W); no plan of these
          tilings there is below +1 %
          with gpu1: cpu:2,gpu0,gpu1: no plan of these tilings there is below +3 %
leave out without gpu0: cpu:2: 400 mJ by heft, 20 times as much (step 40 times as much, -10 W);
          proven
          less of cpu: cpu:1,gpu0: no plan of these tilings there is better
spread    18 mJ to 22 mJ from 5 to 95 % of 100 draws of all durations; the next best 21.5 mJ to 30
          mJ, and it wins in 4 % of them
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}
