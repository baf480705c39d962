package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dahl/naming"
)

// Column is a number that a run gives.
type Column int

// The columns of results.
const (
	StepTime Column = iota
	PredictedStep
	RunTime
	Rate
	Joules
	JoulesPerEpoch
	JoulesPerSample
	JoulesAboveIdle
	JoulesError
	Loss
	Accuracy
	CPUShare
	GPUShare
	PeakMemory
	OtherCores
	Gap
	FullestDevice
	BytesMoved
	ModelTime
	Tasks
	TouchedBytes
	Waves
	Tail
	numColumns
)

// ColumnInfo describes a column.
type ColumnInfo struct {
	Name     string // in CSV and in files
	Heading  string // in tables
	Unit     string // "s", "J", "B", "%" or "/s"; empty means none
	More     bool   // more of it is better
	Sentence string
}

// Columns is the table of columns, by [Column].
func Columns() []ColumnInfo {
	return []ColumnInfo{
		StepTime:        {"step_s", "step time", "s", false, "a training step: the mean over the run, without the first step of each graph"},
		PredictedStep:   {"predicted_step_s", "predicted step time", "s", false, "the simulator's step time of an executed run"},
		RunTime:         {"run_s", "run time", "s", false, "all steps with the first ones, with evaluations, without planning; of a training that was resumed the rest"},
		Rate:            {"images_per_s", "samples/s", "/s", true, "samples that are trained on per second, over the steps of the step time"},
		Joules:          {"joules", "energy of the run", "J", false, "of all of the run time, by what joules_source says"},
		JoulesPerEpoch:  {"joules_per_epoch", "energy/epoch", "J", false, "joules of an executed run divided by its epochs; joules per sample of a simulated run times the samples of an epoch"},
		JoulesPerSample: {"joules_per_image", "energy/sample", "J", false, "per trained sample, over the steps of the step time, from the source in joules_source"},
		JoulesAboveIdle: {"joules_above_idle", "energy above idle", "J", false, "of the run, without what the meters counted per second while nothing ran"},
		JoulesError:     {"joules_error", "error of the meters", "J", false, "bound of the error of the run's joules at its two ends, without the accuracy of the sensors"},
		Loss:            {"training_loss", "training loss", "", false, "mean over the training samples in the last epoch"},
		Accuracy:        {"test_accuracy_percent", "test accuracy", "%", true, "share of the test samples that are classified correctly after the last epoch"},
		CPUShare:        {"cpu_percent", "CPU", "%", true, "of an executed run, processor time over the training times its cores; of a simulated one the busy share of the processors"},
		GPUShare:        {"gpu_percent", "GPU", "%", true, "busy share of the devices that are no processors"},
		PeakMemory:      {"peak_bytes", "peak memory", "B", false, "of an executed run its largest resident set; of a simulated one what is planned in all memories"},
		OtherCores:      {"other_cores", "cores of others", "", false, "that other programs kept busy on average while an executed run trained"},
		Gap:             {"gap_percent", "gap", "%", false, "of a plan for an objective: the greatest distance of its value from the optimum among the choices of its bound"},
		FullestDevice:   {"fullest_bytes", "fullest device", "B", false, "of a simulated run: planned in the memory with most, those of processors left out where other devices work"},
		BytesMoved:      {"bytes_moved", "moved per step", "B", false, "of a simulated run: between memories in a step, without what is moved before the first and after the last"},
		ModelTime:       {"model_s", "step by its formula", "s", false, "a step by the closed formula of the paper, of a plan by a published strategy or with stages"},
		Tasks:           {"tasks", "tasks per step", "", false, "tasks of a training step: its granularity"},
		TouchedBytes:    {"touched_bytes", "touched per step", "B", false, "that the tasks of a step read and write, a number as often as tasks have it"},
		Waves:           {"waves", "waves", "", false, "tasks of the forward pass of the layer with most work over the units of the run, rounded up"},
		Tail:            {"tail_percent", "tail", "%", false, "of the units' time in the shown steps, spent waiting for a predecessor or without work left, as at the end of a wave"},
	}
}

func (c Column) info() ColumnInfo { return Columns()[c] }

// String is the name of the column.
func (c Column) String() string { return c.info().Name }

// Info describes the column.
func (c Column) Info() ColumnInfo { return c.info() }

// ColumnNames lists the names.
func ColumnNames() (names []string) {
	for _, c := range Columns() {
		names = append(names, c.Name)
	}
	return names
}

// columnByName finds a column by its name.
func columnByName(name string) (Column, bool) {
	i := slices.Index(ColumnNames(), name)
	return Column(i), i >= 0
}

// scale returns a unit in which a value is easy to read, and its size in base units.
func (c Column) scale(v float64) (unit string, size float64) {
	base := c.info().Unit
	v = math.Abs(v)
	switch {
	case base == "B" || base == "J":
		for _, p := range []struct {
			prefix string
			size   float64
		}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}, {"m", 1e-3}, {"u", 1e-6}} {
			if v >= p.size || p.prefix == "" && (v == 0 || base == "B") {
				return p.prefix + base, p.size
			}
		}
		return "u" + base, 1e-6
	case base == "s" && v > 0 && v < 1e-3:
		return "us", 1e-6
	case base == "s" && v < 1:
		return "ms", 1e-3
	case base == "/s":
		return "", 1
	}
	return base, 1
}

// digits writes three significant digits, or all before the point, those in groups of three.
func digits(v float64) string {
	if math.Abs(v) < 999.5 {
		return fmt.Sprintf("%.3g", v)
	}
	return naming.Grouped(fmt.Sprintf("%.0f", v))
}

// Format writes a value with three significant digits and its unit, and its interval in that unit
// where it has one.
func (c Column) Format(v, low, high float64) string {
	unit, size := c.scale(v)
	text := strings.TrimSpace(digits(v/size) + " " + unit)
	if low < high {
		text += fmt.Sprintf(" [%s, %s]", digits(low/size), digits(high/size))
	}
	return text
}
