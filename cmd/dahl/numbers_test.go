package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/grid"
	"dahl/must"
	"dahl/platform"
	"dahl/rundir"
	"dahl/rundir/experiment"
)

// numbersCase is a small training.
type numbersCase struct {
	seed                   uint64
	samples, batch, epochs int
	record                 int // 0: what is usual
	stream, devices, keeps bool
	kind                   string // what happens to it
}

func (c *numbersCase) String() string { return fmt.Sprintf("%+v", *c) }

// args are a command line for so many epochs.
func (c *numbersCase) args(epochs int) []string {
	line := fmt.Sprintf("execute --model tiny.toml --data synthetic:1x8x8:%d:10 --batch %d --epochs %d --seed %d --policy heft --out run", c.samples, c.batch, epochs, c.seed)
	if c.record > 0 {
		line += fmt.Sprintf(" --record %d", c.record)
	}
	line += " --platform node.toml --devices " + c.list()
	if c.kind == "lost" {
		line += " --continue-on-loss"
	}
	if c.keeps {
		line += " --checkpoint every=2steps"
	}
	return strings.Fields(line)
}

// list is its devices. With the core beside them the GPUs would have no task of a network so small.
func (c *numbersCase) list() string {
	switch {
	case c.kind == "lost":
		return "g0,g1"
	case c.devices:
		return "cpu,g0"
	}
	return "cpu"
}

// train trains from the start, and returns what was printed. No flag streams data: they do where they do not fit.
func (c *numbersCase) train(t *testing.T, epochs int) string {
	t.Helper()
	if !c.stream {
		return mustRun(t, c.args(epochs)...)
	}
	o := flags.Options{Platform: "node.toml", Devices: c.list(), Model: "tiny.toml", Data: fmt.Sprintf("synthetic:1x8x8:%d:10", c.samples), Batch: c.batch, Epochs: epochs,
		Seed: c.seed, Policy: flags.ListPolicy, DType: "float32", Record: c.record, Stream: true}
	if c.kind == "lost" {
		o.ContinueOnLoss = 1
	}
	if c.keeps {
		o.Checkpoint = "every=2steps"
	}
	var out bytes.Buffer
	if err := runTraining(t.Context(), &out, &out, &o, &executeFlags{Execute: flags.Execute{Out: flags.Output{Dir: "run"}}, stderr: io.Discard}); err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	return out.String()
}

// drawNumbers draws a training of 1 to 3 epochs of 1 to 6 steps, the last of which may be of fewer samples.
func drawNumbers(random *rand.Rand, seed uint64) *numbersCase {
	c := &numbersCase{seed: seed, batch: 2 + random.IntN(5), epochs: 1 + random.IntN(3), record: random.IntN(4), stream: random.IntN(4) == 0, devices: random.IntN(2) == 0, keeps: random.IntN(2) == 0}
	c.samples = c.batch*(1+random.IntN(5)) + random.IntN(c.batch)
	c.kind = []string{"plain", "plain", "extended", "interrupted", "lost"}[random.IntN(5)]
	if c.kind == "lost" {
		c.devices = true
	}
	if c.kind == "extended" || c.kind == "interrupted" {
		c.epochs, c.keeps = max(2, c.epochs), true
	}
	return c
}

// run trains, and returns what was printed last.
func (c *numbersCase) run(t *testing.T, random *rand.Rand) string {
	t.Helper()
	fault := ""
	if c.kind == "lost" {
		fault = fmt.Sprintf(`{ after = %d, kind = "lost" }`, random.IntN(60))
	}
	writeTestFile(t, "node.toml", faultyNode(fault))
	os.RemoveAll("run")
	switch c.kind {
	case "extended":
		c.train(t, c.epochs-1)
		return mustRun(t, "execute", "--resume", "run", "--epochs", strconv.Itoa(c.epochs))
	case "interrupted":
		step := 2 * (1 + random.IntN(max(1, c.epochs*c.samples/c.batch/2)))
		if r := cutAt(t, strconv.Itoa(step), c.args(c.epochs)...); r.code == cli.ExitOK {
			return r.stdout // its steps were fewer
		} else if r.code != cli.ExitInterrupted {
			t.Fatalf("%s: exit code %d: %s", c, r.code, r.stderr)
		}
		if _, err := os.Stat("run/.staging/" + record.SummaryFile); err == nil {
			c.check(t, "run/.staging", "")
		}
		return mustRun(t, "execute", "--resume", "run")
	}
	return c.train(t, c.epochs)
}

// TestOneNumberPerThing: whatever file or figure says how long a step takes, how many samples a second are trained on, how many
// joules a sample takes or how long the run was, says the same as all others, or names another quantity.
func TestOneNumberPerThing(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	cases := 30
	if testing.Short() {
		cases = 12
	}
	random := rand.New(rand.NewPCG(30, 4))
	kinds := map[string]int{}
	for seed := range uint64(cases) {
		c := drawNumbers(random, seed)
		printed := c.run(t, random)
		s := c.check(t, "run", printed)
		if s == nil {
			t.Fatalf("%s", c)
		}
		kinds[c.kind]++
		if len(s.Losses) > 0 {
			kinds["really lost"]++
		}
		if s.Recorded != nil {
			kinds["recorded in part"]++
		}
		for _, l := range s.Losses {
			if l.Run != "" {
				c.check(t, filepath.Join("run", l.Run), "")
			}
		}
		if c.kind == "plain" {
			c.beside(t, s, random)
		}
		if t.Failed() {
			t.Fatalf("%s", c)
		}
	}
	if !testing.Short() && (kinds["really lost"] < 2 || kinds["recorded in part"] < 5) {
		t.Errorf("%v: too few of some kinds", kinds)
	}
}

// numbers collects what is said of a run, and complains of what differs.
type numbers struct {
	t    *testing.T
	c    *numbersCase
	dir  string
	said map[string]float64
}

// says notes what a place says of a quantity.
func (n *numbers) says(where, quantity string, v float64) {
	n.t.Helper()
	want, known := n.said[quantity]
	if !known {
		n.said[quantity] = v
	} else if math.Abs(v-want) > 1e-9*math.Abs(want) && !(math.IsNaN(v) && math.IsNaN(want)) {
		n.t.Errorf("%s: %s: %s is %v in %s, and %v elsewhere", n.c, n.dir, quantity, v, where, want)
	}
}

// check reads every file of a run, with what was printed of it ("": nothing).
func (c *numbersCase) check(t *testing.T, dir, printed string) *record.Summary {
	t.Helper()
	n := &numbers{t, c, dir, map[string]float64{}}
	s := n.readSummary()
	part := filepath.Base(dir) != "run" // of a training: a leg, or what was done before it was interrupted
	if !part || dir == "run/.staging" {
		n.readTables(s, part)
	}
	n.readShown(s)
	n.readExperiment(s)
	if strings.HasSuffix(dir, ".staging") {
		return s
	}
	n.readReport()
	n.readCompare(s)
	if printed != "" {
		n.readPrinted(s, printed)
	}
	return s
}

// readSummary reads the summary, in which some numbers follow from others.
func (n *numbers) readSummary() *record.Summary {
	n.t.Helper()
	s := must.Get(cli.ReadJSON[record.Summary](filepath.Join(n.dir, record.SummaryFile)))(n.t)
	of := &s.Counted
	n.says(record.SummaryFile, "steps", float64(s.Steps))
	n.says(record.SummaryFile, "run s", s.MakespanS)
	n.says(record.SummaryFile, "modelled joules of the run", s.EnergyJ.Total)
	devices := 0.0
	for _, list := range []map[string]float64{s.EnergyJ.ByDevice, s.EnergyJ.ByLink} {
		for _, joules := range list {
			devices += joules
		}
	}
	n.says("its devices and links", "modelled joules of the run", devices)
	n.says(record.SummaryFile, "counted steps", float64(of.Steps))
	n.says(record.SummaryFile, "counted samples", float64(of.Samples))
	n.says(record.SummaryFile, "counted s", of.Seconds)
	n.says(record.SummaryFile, "counted joules", of.Joules)
	n.says(record.SummaryFile, "step s", s.StepS)
	if of.Steps == 0 {
		if s.StepS != 0 || s.SamplesPerS != nil || s.EnergyJ.PerSample != 0 {
			n.t.Errorf("%s: nothing counts, and a step takes %v s", n.c, s.StepS)
		}
		return s
	}
	n.says("what is counted", "step s", of.Seconds/float64(of.Steps))
	n.says(record.SummaryFile, "samples/s", *s.SamplesPerS)
	n.says("what is counted", "samples/s", float64(of.Samples)/of.Seconds)
	n.says(record.SummaryFile, "J/sample", s.EnergyJ.PerSample)
	joules := of.Joules
	if s.EnergyJ.PerSampleBasis == "measured" {
		joules = 0
		for _, r := range s.EnergyJ.Readings {
			joules += r.Joules / r.Seconds * of.Seconds
		}
	}
	n.says("what is counted", "J/sample", joules/float64(of.Samples))
	if s.Devices != nil {
		if m := s.Devices.Rows[len(s.Devices.Rows)-1].Measured; m != nil {
			n.says("the sets of devices", "step s", m.StepS)
			n.says("the sets of devices", "samples/s", m.SamplesPerS)
			n.says("the sets of devices", "J/sample", m.JoulesPerSample)
		}
	}
	return s
}

// csvTable reads a table, by column.
func csvTable(t *testing.T, path string) map[string][]string {
	t.Helper()
	table := map[string][]string{}
	for _, row := range readTable(t, path) {
		for column, cell := range row {
			table[column] = append(table[column], cell)
		}
	}
	return table
}

func (n *numbers) sum(cells []string) (sum float64) {
	n.t.Helper()
	for _, cell := range cells {
		v := must.Get(strconv.ParseFloat(cell, 64))(n.t)
		sum += v
	}
	return sum
}

// readTables reads the tables of steps and epochs. Of a training that ended early the epoch that goes on has no row.
func (n *numbers) readTables(s *record.Summary, early bool) {
	n.t.Helper()
	steps, epochs := csvTable(n.t, filepath.Join(n.dir, record.StepsFile)), csvTable(n.t, filepath.Join(n.dir, record.EpochsFile))
	n.says(record.StepsFile, "steps", float64(len(steps["step"])))
	if early {
		if n.sum(epochs["steps"]) > float64(s.Counted.Steps) || n.sum(epochs["seconds"]) > s.Counted.Seconds*(1+1e-9) {
			n.t.Errorf("%s: %s: the epochs have more than the run", n.c, n.dir)
		}
		return
	}
	// All steps but the first of each size of batch, unless the run was to have no others.
	first, size, samples := 0, map[string]bool{}, n.sum(steps["images"])
	perEpoch := (n.c.samples + n.c.batch - 1) / n.c.batch
	planned := n.c.epochs
	if n.c.kind == "extended" {
		planned--
	}
	if planned > 1 || perEpoch > 2 || perEpoch == 2 && n.c.samples%n.c.batch == 0 {
		for i, of := range steps["images"] {
			if !size[of] {
				first, size[of] = first+1, true
				samples -= n.sum(steps["images"][i : i+1])
			}
		}
	}
	n.says(record.StepsFile, "counted steps", float64(len(steps["step"])-first))
	n.says(record.StepsFile, "counted samples", samples)
	n.says(record.EpochsFile, "counted steps", n.sum(epochs["steps"]))
	n.says(record.EpochsFile, "counted samples", n.sum(epochs["images"]))
	n.says(record.EpochsFile, "counted s", n.sum(epochs["seconds"]))
	n.says(record.EpochsFile, "counted joules", n.sum(epochs["modelled_joules"]))
	for i, rate := range epochs["images_per_s"] {
		if of := epochs["images"][i : i+1]; (rate == "") != (of[0] == "0") || rate != "" && math.Abs(n.sum(of)/n.sum(epochs["seconds"][i:i+1])/n.sum([]string{rate})-1) > 1e-9 {
			n.t.Errorf("%s: epoch %d of %s samples has a rate of %q", n.c, i+1, of, rate)
		}
	}
	last := len(epochs["loss"]) - 1
	n.says(record.SummaryFile, "training loss", float64(*s.TrainingLoss))
	n.says(record.EpochsFile, "training loss", n.sum(epochs["loss"][last:]))
	n.says(record.SummaryFile, "test accuracy", *s.TestAccuracy)
	n.says(record.EpochsFile, "test accuracy", n.sum(epochs["test_accuracy"][last:]))
}

// readShown reads what is of the shown steps alone.
func (n *numbers) readShown(s *record.Summary) {
	n.t.Helper()
	file := func(name string) map[string]any {
		m := must.Get(cli.ReadJSON[map[string]any](filepath.Join(n.dir, name)))(n.t)
		return *m
	}
	energy, schedule, predicted := file(rundir.EnergyFile), file(rundir.ScheduleFile), file(rundir.PredictedFile)
	number := func(m map[string]any, key string) float64 { v, _ := m[key].(float64); return v }
	n.says(record.SummaryFile, "shown steps", float64(s.Shown.Steps))
	n.says(record.SummaryFile, "shown, of steps", float64(s.Shown.Of))
	n.says("all", "shown, of steps", n.said["steps"])
	n.says(rundir.EnergyFile, "shown steps", number(energy, "steps"))
	n.says(rundir.ScheduleFile, "shown steps", number(schedule, "steps"))
	n.says(rundir.PredictedFile, "shown steps", number(predicted, "steps"))
	n.says(record.SummaryFile, "first shown step", float64(s.Shown.First))
	n.says(rundir.EnergyFile, "first shown step", number(energy, "first_step"))
	n.says(record.SummaryFile, "shown epoch", float64(s.Shown.Epoch))
	n.says(rundir.EnergyFile, "shown epoch", number(energy, "epoch"))
	n.says(rundir.EnergyFile, "s of the shown steps", number(energy, "makespan_s"))
	n.says(rundir.ScheduleFile, "s of the shown steps", number(schedule, "makespan_ns")/1e9)
	n.says(rundir.PredictedFile, "predicted s of the shown steps", number(predicted, "makespan_ns")/1e9)
	n.says(rundir.EnergyFile, "J of the shown steps", number(energy, "total_joules"))
	n.says(rundir.EnergyFile, "J of the shown steps", number(energy, "mean_watts")*number(energy, "makespan_s"))
	n.says(record.SummaryFile, "s of the first shown step", s.Shown.FirstStepS)
	n.says(rundir.ScheduleFile, "s of the first shown step", number(schedule, "first_step_ns")/1e9)
	n.says(record.SummaryFile, "steady s", s.Shown.SteadyStepS)
	n.says(rundir.ScheduleFile, "steady s", number(schedule, "period_ns")/1e9)
}

// readExperiment makes the row that an experiment has of the run.
func (n *numbers) readExperiment(s *record.Summary) {
	n.t.Helper()
	p := must.Get(platform.Load(filepath.Join(n.dir, rundir.PlatformFile)))(n.t)
	row := experiment.NewRow(&experiment.Cell{}, experiment.OK, "")
	grid.FillTimes(&row, s)
	grid.FillJoules(&row, s, p, &grid.Manifest{})
	for column, quantity := range map[experiment.Column]string{experiment.StepTime: "step s", experiment.Rate: "samples/s", experiment.JoulesPerSample: "J/sample", experiment.RunTime: "run s"} {
		if v := row.Values[column]; !math.IsNaN(v) {
			n.says("the row of an experiment", quantity, v)
		}
	}
	if len(s.EnergyJ.Readings) == 0 {
		n.says("the row of an experiment", "modelled joules of the run", row.Values[experiment.Joules])
	}
}
