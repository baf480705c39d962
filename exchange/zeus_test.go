package exchange

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
)

// perseusText has two stages at two frequencies. The slower one stands first, and one line is there twice.
const perseusText = `stage,instruction,frequency,time,energy
0,forward,1000,0.002,0.5
0,forward,1400,0.001,0.75
0,backward,1400,0.003,2.25
0,backward,1000,0.006,1.5
0,backward,1000,0.006,1.5
1,forward,1400,0.001,1
1,backward,1400,0.001,1
`

const zeusWindows = "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n1.5,__GlobalPowerLimitOptimizer_250,2,300,100\n9,__GlobalPowerLimitOptimizer_100,4,150,160\n"

const zeusSummary = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\nc,n,64,adam,100,3,90\nc,n,64,adam,125,2,120\nc,m,64,adam,100,5,50\n"

// TestPerseus: a GPU that waits draws 100 W. A forward pass of the first stage takes 2 ms and 0.5 J at the slow clock, of which waiting would be 0.2 J.
func TestPerseus(t *testing.T) {
	of := must.Get(FormatOf("p.csv", []byte(perseusText)))(t)
	in := must.Get(of.Read([]byte(perseusText), "p.csv", Options{Minibatches: 2, WaitWatts: 100}))(t)
	checkGraph(t, in.Graph)
	checkPlatform(t, in.Platform)
	gpu := in.Platform.Devices[0]
	// 4 ms and 3 J at 1400 MHz are 750 W, 8 ms and 2 J at 1000 MHz are 250 W at half the speed.
	if got := gpu.Clocks; len(got) != 2 || got[0].Name != "1400MHz" || math.Abs(got[0].Busy.UnitWatts-750) > 1e-9 || got[1].Scale != 0.5 || math.Abs(got[1].Busy.UnitWatts-250) > 1e-9 || got[1].FrequencyHz != 1e9 || gpu.IdleWatts != 100 {
		t.Errorf("clocks %+v of a GPU that draws %g W", got, gpu.IdleWatts)
	}
	forward := &in.Graph.Tasks[taskNamed(t, in.Graph, "forward 0 #1")]
	if c := forward.Costs; len(c) != 2 || c[1] != (dag.Cost{Key: "gpu0@1000MHz", Ns: 2e6, Joules: 0.3}) || c[0].Key != "gpu0" || forward.Placement.Device != "gpu0" || forward.Labels.Stage != 1 {
		t.Errorf("a forward pass %+v", forward)
	}
	// The first stage is one forward pass ahead of the second. Each backward pass waits for the one of the stage behind.
	for name, want := range map[string]string{
		"forward 0 #0": "", "forward 0 #1": "forward 0 #0", "backward 0 #0": "forward 0 #1, backward 1 #0", "backward 0 #1": "backward 0 #0, backward 1 #1",
		"forward 1 #0": "forward 0 #0", "backward 1 #0": "forward 1 #0", "forward 1 #1": "backward 1 #0, forward 0 #1", "backward 1 #1": "forward 1 #1",
	} {
		var after []string
		for _, p := range in.Graph.Tasks[taskNamed(t, in.Graph, name)].After {
			after = append(after, in.Graph.Tasks[p].Name)
		}
		if got := strings.Join(after, ", "); got != want {
			t.Errorf("%s follows %s, want %s", name, got, want)
		}
	}
	if leftOf(in) != "1 repeated measurements" {
		t.Errorf("left out %s", leftOf(in))
	}
}

// TestZeusTables compares a table of Zeus' with the costs that become of it, row by row.
func TestZeusTables(t *testing.T) {
	const file = "../platform/testdata/zeus/summary_power_v100.csv"
	src := must.Get(os.ReadFile(file))(t)
	in := must.Get(must.Get(FormatOf(file, src))(t).Read(src, file, Options{}))(t)
	rows := strings.Split(strings.TrimSpace(string(src)), "\n")[1:]
	for _, row := range rows {
		f := strings.Split(row, ",")
		seconds, watts := must.Get(strconv.ParseFloat(f[5], 64))(t), must.Get(strconv.ParseFloat(f[6], 64))(t)
		found := false
		for _, c := range in.Graph.Tasks[taskNamed(t, in.Graph, strings.Join(f[:4], " "))].Costs {
			_, _, clock := dag.SplitCostKey(c.Key)
			if clock == "" {
				clock = in.Platform.Devices[0].Clocks[0].Name
			}
			if clock == f[4]+"W" {
				found = math.Abs(float64(c.Ns)-seconds*1e9) <= 0.5 && math.Abs(c.Joules-seconds*watts) < 1e-9*c.Joules
			}
		}
		if !found {
			t.Errorf("no cost of %s", row)
		}
	}
}

func FuzzZeus(f *testing.F) { fuzz(f, "zeus") }
