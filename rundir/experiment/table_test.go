package experiment

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"dahl/must"
)

// tinyTable has two batch sizes of two networks, of which each ran twice with two seeds but for one
// cell that failed. A step takes batch·(1, 2) ms on lenet5 and twice as long on mlp, in the four runs of a group
// times 1, 1.1, 1.2 and 1.3.
func tinyTable(t *testing.T) *Table {
	f := parse(t, "name = \"tiny\"\nsentence = \"Made up.\"\n[run]\ncommand = \"execute\"\nrepeats = 2\n[grid]\nmodel = [\"mlp\", \"lenet5\"]\nbatch = [1, 2]\nseed = [3, 5]", false)
	table := &Table{File: f}
	cells := f.Cells()
	for i := range cells {
		c := &cells[i]
		row := NewRow(c, OK, "")
		step := map[string]float64{"mlp": 2e-3, "lenet5": 1e-3}[c.at("model")] * map[string]float64{"1": 1, "2": 2}[c.at("batch")]
		step *= map[string]float64{"3": 1, "5": 1.1}[c.at(SeedAxis)] + 0.2*float64(c.Repeat-1)
		row.Set(StepTime, step)
		row.Set(PredictedStep, step/2)
		row.Set(Rate, 1/step)
		row.Set(JoulesPerSample, 10*step)
		row.JoulesSource = "modelled"
		if c.Name() == "batch=2,model=mlp,seed=5,repeat=2" {
			row = NewRow(c, Failed, "out of | memory")
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// Medians of 1, 1.1, 1.2, 1.3 are 1.15; of four values the interval is from the least to the
// greatest, which holds the median with 1 − 2/16 = 87.5 %; of three with 75 %.
func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	must.Do(t, tinyTable(t).WriteMarkdown(&b))
	for _, want := range []string{
		"# tiny\n\nMade up.\n\n| model | batch | runs | step time | predicted step time | samples/s | energy/sample |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
		"| lenet5 | 1 | 4 | 1.15 ms [1, 1.3] | 575 us [500, 650] | 871 [769, 1,000] | 11.5 mJ [10, 13] |\n",
		"| mlp | 2 | 3 of 4 | 4.4 ms [4, 4.8] | ",
		"\nMedians over repetitions and seeds; in brackets an interval that holds the median with a probability of at least 75 % (order statistics; 95 % from 6 values on).\nJoules: modelled.\n",
		"\n- seed=5 model=mlp batch=2 repeat=2, failed: out of \\| memory\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks\n%s\nin\n%s", want, b.String())
		}
	}
}

func TestCSV(t *testing.T) {
	table := tinyTable(t)
	table.Rows = []Row{table.Rows[0], NewRow(table.Rows[1].Cell, Failed, `he said "no", then`)}
	table.Rows[0].MemorySource = "planned"
	table.Rows[0].Set(PeakMemory, math.Inf(1))
	var b bytes.Buffer
	must.Do(t, table.WriteCSV(&b))
	want := "seed,model,batch,repeat,step_s,predicted_step_s,run_s,images_per_s,joules,joules_per_epoch,joules_per_image,joules_above_idle,joules_error,training_loss,test_accuracy_percent,cpu_percent,gpu_percent,peak_bytes,other_cores,gap_percent,fullest_bytes,bytes_moved,model_s,tasks,touched_bytes,waves,tail_percent,joules_source,memory_source,status,reason,run\n" +
		"3,mlp,1,1,0.002,0.001,,500,,,0.02,,,,,,,,,,,,,,,,,modelled,planned,ok,,\"batch=1,model=mlp,seed=3\"\n" +
		"3,mlp,2,1,,,,,,,,,,,,,,,,,,,,,,,,,,failed,\"he said \"\"no\"\", then\",\"batch=2,model=mlp,seed=3\"\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		column Column
		v      float64
		want   string
	}{
		{StepTime, 2.5e-6, "2.5 us"}, {StepTime, 0.25, "250 ms"}, {RunTime, 75, "75 s"}, {Rate, 123456.7, "123,457"}, {Rate, 12.34, "12.3"},
		{Joules, 2500, "2.5 kJ"}, {Joules, 2.5e-5, "25 uJ"}, {Joules, 0, "0 J"}, {JoulesAboveIdle, -0.5, "-500 mJ"}, {PeakMemory, 3e6, "3 MB"}, {PeakMemory, 12, "12 B"}, {CPUShare, 99.96, "100 %"}, {Loss, 0.125, "0.125"},
	} {
		if got := c.column.Format(c.v, c.v, c.v); got != c.want {
			t.Errorf("%s %g: %q, want %q", c.column, c.v, got, c.want)
		}
	}
}

// Every column has what tables and files need, and a name of its own.
func TestColumns(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Columns() {
		if c.Name == "" || c.Heading == "" || c.Sentence == "" || seen[c.Name] {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
	}
	if len(Columns()) != int(numColumns) {
		t.Errorf("%d columns of %d are described", len(Columns()), numColumns)
	}
}
