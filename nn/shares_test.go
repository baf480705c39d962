package nn_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/models"
)

// TestSharesOfTiles: of 7 samples on 3 devices the first has 2, the second 2 and the third 3, since ⌊7/3⌋ = 2 and ⌊14/3⌋ = 4. Tiles of 2 samples end
// at the bounds 2 and 4: there are 4 of them. Outputs and rows likewise.
//
// In proportions of 1, 4 and 2 the bounds are 1 and 5 of 7 samples.
//
// Of a grid of two rows of three devices the first row has 3 samples, since ⌊7/2⌋ = 3. What is shared along samples alone is in parts of 1, 1, 1, 1, 1 and 2 samples.
func TestSharesOfTiles(t *testing.T) {
	m := must.Get(models.ByName("lenet5"))(t)
	for _, c := range []struct {
		along dag.Dimension
		cut   dag.Cut
		step  string            // whose tasks are listed
		want  map[string]string // device by name
		rows  int
		of    []int // proportions; nil means equal parts
	}{
		{dag.AlongSamples, dag.Cut{Samples: 2}, "fc1.forward[", map[string]string{"0:2,0:120": "a", "2:4,0:120": "b", "4:6,0:120": "c", "6:7,0:120": "c"}, 0, nil},
		{dag.AlongSamples, dag.Cut{}, "loss.softmax_xent[", map[string]string{"0:2": "a", "2:4": "b", "4:7": "c"}, 0, nil},
		{dag.AlongSamples, dag.Cut{}, "fc1.forward[", map[string]string{"0:1,0:120": "a", "1:5,0:120": "b", "5:7,0:120": "c"}, 0, []int{1, 4, 2}},
		{dag.AlongSamples, dag.Cut{Samples: 3}, "fc1.forward[", map[string]string{"0:1,0:120": "a", "1:4,0:120": "b", "4:5,0:120": "b", "5:7,0:120": "c"}, 0, []int{3, 12, 6}},
		{dag.AlongSamples, dag.Cut{}, "input.load[", map[string]string{"0:2": "a", "2:4": "b", "4:7": "c"}, 0, nil},
		{dag.AlongOutputs, dag.Cut{}, "fc3.forward[", map[string]string{"0:7,0:3": "a", "0:7,3:6": "b", "0:7,6:10": "c"}, 0, nil},
		{dag.AlongOutputs, dag.Cut{}, "fc3.backward.weight[", map[string]string{"0:7,0:3": "a", "0:7,3:6": "b", "0:7,6:10": "c"}, 0, nil},
		{dag.AlongOutputs, dag.Cut{}, "fc3.backward.input[", map[string]string{"0:7,0:84,outputs=0:3": "a", "0:7,0:84,outputs=3:6": "b", "0:7,0:84,outputs=6:10": "c"}, 0, nil},
		{dag.AlongOutputs, dag.Cut{Inputs: 40}, "fc2.forward[", map[string]string{"0:7,0:84,inputs=0:40": "a", "0:7,0:84,inputs=40:80": "b", "0:7,0:84,inputs=80:120": "c"}, 0, nil},
		{dag.AlongOutputs, dag.Cut{Inputs: 40}, "fc2.update.weight[", map[string]string{"0:40": "a", "40:80": "b", "80:120": "c"}, 0, nil},
		{dag.AlongOutputs, dag.Cut{Inputs: 3}, "conv2.backward.oihw[", map[string]string{"0:2": "a", "2:4": "b", "4:6": "c"}, 0, nil},
		{dag.AlongRows, dag.Cut{}, "conv2.forward[", map[string]string{"0:7,0:16,rows=0:1": "a", "0:7,0:16,rows=1:3": "b", "0:7,0:16,rows=3:5": "c"}, 0, nil},
		{dag.AlongRows, dag.Cut{}, "fc1.forward[", map[string]string{"0:2,0:120": "a", "2:4,0:120": "b", "4:7,0:120": "c"}, 0, nil},
		{dag.AlongOutputs, dag.Cut{}, "fc3.forward[", map[string]string{"0:3,0:3": "a", "0:3,3:6": "b", "0:3,6:10": "c", "3:7,0:3": "d", "3:7,3:6": "e", "3:7,6:10": "f"}, 2, nil},
		{dag.AlongOutputs, dag.Cut{}, "loss.softmax_xent[", map[string]string{"0:1": "a", "1:2": "b", "2:3": "c", "3:4": "d", "4:5": "e", "5:7": "f"}, 2, nil},
		{dag.AlongOutputs, dag.Cut{Inputs: 40}, "fc2.forward[", map[string]string{"0:3,0:84,inputs=0:40": "a", "0:3,0:84,inputs=40:80": "b", "0:3,0:84,inputs=80:120": "c",
			"3:7,0:84,inputs=0:40": "d", "3:7,0:84,inputs=40:80": "e", "3:7,0:84,inputs=80:120": "f"}, 2, nil},
		{dag.AlongRows, dag.Cut{}, "conv2.forward[", map[string]string{"0:3,0:16,rows=0:1": "a", "0:3,0:16,rows=1:3": "b", "0:3,0:16,rows=3:5": "c",
			"3:7,0:16,rows=0:1": "d", "3:7,0:16,rows=1:3": "e", "3:7,0:16,rows=3:5": "f"}, 2, nil},
	} {
		devices := []string{"a", "b", "c", "d", "e", "f"}[:3*max(1, c.rows)]
		g := must.Get(m.Lower(nn.LowerOptions{Batch: 7, Type: dag.Float32, Train: true, Samples: 11, SampleType: dag.Uint8,
			Lowering: dag.Lowering{Default: dag.LayerLowering{Forward: c.cut}, Stages: []dag.Stage{{From: "conv1", Devices: devices, Along: c.along, Replicas: c.rows, Shares: c.of}}}}))(t)
		got := map[string]string{}
		for i := range g.Tasks {
			task := &g.Tasks[i]
			if tile, of := strings.CutPrefix(task.Name, c.step); of {
				got[strings.TrimSuffix(tile, "]")] = task.Placement.Device
			}
			if p := task.Placement; p == nil || !slices.Contains(append(devices, "host"), p.Device) && task.Op != "feed" && task.Op != "fetch" {
				t.Errorf("along %v: task %s is placed on %+v", c.along, task.Name, p)
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%v: tasks %s on %v, want %v", c.along, c.step, got, c.want)
		}
	}
}

// TestUpdatesWaitForTheirGradient: the update of a weight on several devices follows the backward passes of its own layer and of the layers behind it, and of no layer before it.
func TestUpdatesWaitForTheirGradient(t *testing.T) {
	m := must.Get(models.ByName("mlp"))(t)
	for sum := range dag.NumExchanges {
		g := must.Get(m.Lower(nn.LowerOptions{Batch: 7, Type: dag.Float32, Train: true, Samples: 11, SampleType: dag.Uint8,
			Lowering: dag.Lowering{MicroBatches: 2, Stages: []dag.Stage{{From: "input", Devices: []string{"a", "b", "c"}, Sum: sum}}}}))(t)
		before := make([]map[string]bool, len(g.Tasks)) // layers with backward passes that a task follows
		devices := map[string]bool{}
		for i := range g.Tasks {
			task := &g.Tasks[i]
			before[i] = map[string]bool{}
			for _, p := range g.Preds(dag.TaskID(i)) {
				maps.Copy(before[i], before[p])
			}
			switch of := task.Labels; of.Phase {
			case "backward":
				before[i][of.Layer] = true
			case "update":
				if want := map[string]map[string]bool{"fc1": {"fc1": true, "relu1": true, "fc2": true, "relu2": true, "fc3": true}, "fc2": {"fc2": true, "relu2": true, "fc3": true}, "fc3": {"fc3": true}}[of.Layer]; len(before[i]) > len(want) || !before[i][of.Layer] {
					t.Errorf("%v: %s follows the backward passes of %v", sum, task.Name, before[i])
				}
				devices[task.Placement.Device] = true
			}
		}
		if want := 3; sum != dag.Tree && len(devices) != want || sum == dag.Tree && len(devices) != 1 {
			t.Errorf("%v: updates on %v", sum, devices)
		}
	}
}
