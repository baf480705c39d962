package exchange

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/platform"
)

// Zeus and Perseus measure what a piece of work takes, in seconds and joules, at each setting of a GPU: a limit of its power or a frequency.
// A piece becomes a task with a cost at each setting, and a setting a clock of the machine.

// profiled is one measurement.
type profiled struct {
	stage   int
	work    string // within the stage
	setting string
	hertz   float64 // 0 is not a frequency
	ns      int64
	joules  float64
	line    int
}

// profileTable reads rows of a CSV file by the names of its columns.
type profileTable struct {
	*file
	columns map[string]int
	row     []string
	line    int
}

func (t *profileTable) text(column string) string { return t.row[t.columns[column]] }

func (t *profileTable) has(columns ...string) bool {
	return !slices.ContainsFunc(columns, func(c string) bool { _, ok := t.columns[c]; return !ok })
}

// number reads a column with a number that is not negative.
func (t *profileTable) number(column string) (float64, error) {
	return t.float(t.line, column, strings.TrimSpace(t.text(column)))
}

// zeusForm is a kind of table, which has some columns.
type zeusForm struct {
	columns []string
	read    func(*profileTable) (profiled, error)
}

var zeusForms = []zeusForm{
	{[]string{"stage", "instruction", "frequency", "time", "energy"}, (*profileTable).perseus},
	{[]string{"power_limit", "time_per_epoch", "average_power"}, (*profileTable).summary},
	{[]string{"window_name", "elapsed_time"}, (*profileTable).window},
}

// isZeus recognises a table by its first line.
func isZeus(_ string, beginning []byte) bool {
	first, _, _ := bytes.Cut(bytes.TrimPrefix(beginning, []byte(dag.Mark)), []byte{'\n'})
	columns := strings.Split(strings.TrimSpace(string(first)), ",")
	for _, form := range zeusForms {
		if !slices.ContainsFunc(form.columns, func(c string) bool { return !slices.Contains(columns, c) }) {
			return true
		}
	}
	return false
}

func (f *file) readZeus(src []byte) error {
	if f.Minibatches > maxMinibatches {
		return fmt.Errorf("%s: a step of %d mini-batches; take 1 to %d", f.name, f.Minibatches, maxMinibatches)
	}
	in := csv.NewReader(bytes.NewReader(src))
	t := profileTable{file: f, columns: map[string]int{}}
	header, err := in.Read()
	if err != nil {
		return f.errorf(1, "no line with the names of columns")
	}
	for i, column := range header {
		t.columns[strings.TrimSpace(column)] = i
	}
	form := slices.IndexFunc(zeusForms, func(form zeusForm) bool { return t.has(form.columns...) })
	if form < 0 {
		return f.errorf(1, "columns %q; write those of Zeus or Perseus, such as stage,instruction,frequency,time,energy", strings.Join(header, ","))
	}
	for {
		if t.row, err = in.Read(); err != nil {
			break
		}
		t.line, _ = in.FieldPos(0)
		p, err := zeusForms[form].read(&t)
		if err == nil {
			err = f.plain(t.line, p.work)
		}
		if err != nil {
			return err
		}
		p.line = t.line
		f.profiled = append(f.profiled, p)
	}
	if wrong := (*csv.ParseError)(nil); errors.As(err, &wrong) {
		return f.errorf(wrong.Line, "not a table: %w", wrong.Err)
	}
	return f.zeusMachine()
}

// perseus reads "stage,instruction,frequency,time,energy": MHz, seconds and joules.
func (t *profileTable) perseus() (p profiled, err error) {
	mhz, err := t.number("frequency")
	if err != nil {
		return p, err
	}
	stage, err := strconv.Atoi(t.text("stage"))
	if err != nil || stage < 0 || stage >= maxHosts {
		return p, t.errorf(t.line, "stage is %q; write 0 to %d", t.text("stage"), maxHosts-1)
	}
	p = profiled{stage: stage, work: t.text("instruction"), setting: strconv.FormatFloat(mhz, 'f', -1, 64) + "MHz", hertz: mhz * 1e6}
	if p.work != "forward" && p.work != "backward" {
		return p, t.errorf(t.line, "instruction is %q; write forward or backward", p.work)
	}
	if p.joules, err = t.number("energy"); err != nil {
		return p, err
	}
	p.ns, err = t.file.number(t.line, "time", t.text("time"), nsPerS)
	return p, err
}

// summary reads the seconds of an epoch and the mean watts of a training at a limit of watts.
func (t *profileTable) summary() (p profiled, err error) {
	watts, err := t.number("average_power")
	if err != nil {
		return p, err
	}
	seconds, err := t.number("time_per_epoch")
	if err != nil {
		return p, err
	}
	var names []string
	for _, column := range []string{"dataset", "network", "batch_size", "optimizer"} {
		if t.has(column) {
			names = append(names, t.text(column))
		}
	}
	p = profiled{work: strings.Join(names, " "), setting: t.text("power_limit") + "W", joules: seconds * watts}
	p.ns, err = t.amount(t.line, "time_per_epoch", seconds, nsPerS)
	return p, err
}

// window reads the seconds and joules of a window, whose name ends in a limit of watts. The joules of all GPUs count.
func (t *profileTable) window() (p profiled, err error) {
	name := t.text("window_name")
	at := strings.LastIndexByte(name, '_')
	if limit, err := strconv.ParseFloat(name[at+1:], 64); err != nil || !(limit > 0) {
		return p, t.errorf(t.line, "window %q does not end in _ and a limit of watts", name)
	}
	p = profiled{work: "step", setting: name[at+1:] + "W"}
	for _, column := range slices.Sorted(maps.Keys(t.columns)) {
		if strings.HasPrefix(column, "gpu") && strings.HasSuffix(column, "_energy") {
			joules, err := t.number(column)
			if err != nil {
				return p, err
			}
			p.joules += joules
		}
	}
	p.ns, err = t.file.number(t.line, "elapsed_time", t.text("elapsed_time"), nsPerS)
	return p, err
}

// zeusMachine makes a device of each stage. Its clocks are the settings, the fastest first. Their speeds and watts follow from all work at
// them; a task has its own time and joules.
func (f *file) zeusMachine() error {
	p := &platform.Platform{Name: clean(f.stem()), Memories: []platform.Memory{{Name: "memory", Host: true}}}
	stages := map[int][]profiled{}
	met := map[[3]string]bool{}
	var kept []profiled
	for _, m := range f.profiled {
		key := [3]string{strconv.Itoa(m.stage), m.work, m.setting}
		if met[key] {
			f.leave("repeated measurements", 1)
			continue
		}
		if m.ns == 0 {
			return f.errorf(m.line, "%s takes no time", m.work)
		}
		met[key] = true
		kept, stages[m.stage] = append(kept, m), append(stages[m.stage], m)
	}
	f.profiled = kept
	if len(stages) == 0 {
		return f.errorf(1, "no line with a measurement")
	}
	for _, stage := range slices.Sorted(maps.Keys(stages)) {
		clocks, err := f.settings(stages[stage])
		if err != nil {
			return err
		}
		d := platform.Device{Name: zeusDevice(stage), Kind: platform.CUDA, Count: 1, Clocks: clocks, IdleWatts: f.WaitWatts, Busy: clocks[0].Busy, PowerSource: platform.Measured}
		if len(clocks) == 1 {
			d.Clocks = nil
		}
		p.Devices = append(p.Devices, d)
	}
	if err := p.Complete(); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	f.machine = p
	return nil
}

func zeusDevice(stage int) string { return "gpu" + strconv.Itoa(stage) }

// settings are the clocks of a device. A clock is as fast as the work at it that is also measured at the first one.
func (f *file) settings(all []profiled) (clocks []platform.Clock, err error) {
	total := map[string][2]float64{} // nanoseconds and joules by setting
	var order []profiled
	for _, m := range all {
		sum, ok := total[m.setting]
		if !ok {
			order = append(order, m)
		}
		total[m.setting] = [2]float64{sum[0] + float64(m.ns), sum[1] + m.joules}
	}
	slices.SortStableFunc(order, func(a, b profiled) int { return compareSettings(b.setting, a.setting) })
	atFirst := map[string]float64{} // nanoseconds by work
	for _, m := range all {
		if m.setting == order[0].setting {
			atFirst[m.work] = float64(m.ns)
		}
	}
	shared := map[string][2]float64{} // nanoseconds at a setting and at the first one, of work at both
	for _, m := range all {
		if first, ok := atFirst[m.work]; ok {
			sum := shared[m.setting]
			shared[m.setting] = [2]float64{sum[0] + float64(m.ns), sum[1] + first}
		}
	}
	for _, of := range order {
		scale := 1.0
		if ns := shared[of.setting]; ns[0] > 0 {
			scale = ns[1] / ns[0]
		}
		sum := total[of.setting]
		c := platform.Clock{Name: of.setting, Scale: scale, Idle: f.WaitWatts, FrequencyHz: of.hertz, Busy: platform.BusyPower{UnitWatts: sum[1] / sum[0] * nsPerS}}
		clocks = append(clocks, c)
	}
	return clocks, nil
}

// compareSettings compares the numbers of two settings.
func compareSettings(a, b string) int {
	number := func(s string) float64 {
		v, _ := strconv.ParseFloat(strings.TrimRight(s, "MHzW"), 64)
		return v
	}
	switch x, y := number(a), number(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return strings.Compare(a, b)
}

// zeusGraph makes a task of each piece of work. A pipeline has a task of each micro-batch, in the order 1F1B, which Perseus takes as given.
func (f *file) zeusGraph() (*dag.Graph, error) {
	b := f.builder()
	costs := map[[2]string][]dag.Cost{} // by device and work
	var pieces [][2]string
	stages := len(f.machine.Devices)
	clocks := map[string][]platform.Clock{} // by device
	for _, d := range f.machine.Devices {
		clocks[d.Name] = d.Clocks
	}
	for _, m := range f.profiled {
		piece := [2]string{zeusDevice(m.stage), m.work}
		if costs[piece] == nil {
			pieces = append(pieces, piece)
		}
		key := piece[0]
		if of := clocks[piece[0]]; len(of) > 1 && of[0].Name != m.setting {
			key += "@" + m.setting
		}
		above := m.joules - f.WaitWatts*float64(m.ns)/nsPerS
		if above <= 0 {
			return nil, f.errorf(m.line, "%s takes %g J, which is less than %g W of a GPU that waits; give less --wait-power", m.work, m.joules, f.WaitWatts)
		}
		costs[piece] = append(costs[piece], dag.Cost{Key: key, Ns: m.ns, Joules: above})
	}
	task := func(piece [2]string, name string, labels dag.Labels, after ...dag.TaskID) dag.TaskID {
		after = slices.DeleteFunc(after, func(t dag.TaskID) bool { return t < 0 })
		return b.Task(dag.Task{Name: name, Op: clean(piece[1]), Costs: costs[piece], Labels: labels, After: unique(after), Placement: &dag.Placement{Device: piece[0]}})
	}
	if pieces[0][1] != "forward" && pieces[0][1] != "backward" {
		if f.Minibatches > 1 {
			return nil, f.errorf(1, "a table without stages has no pipeline of mini-batches; leave --minibatches out")
		}
		for _, piece := range pieces {
			task(piece, piece[1], dag.Labels{Layer: piece[1]})
		}
	} else if err := f.oneForwardOneBackward(stages, costs, task); err != nil {
		return nil, err
	}
	g, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return g, nil
}

// passes are the kinds of work of a stage.
var passes = [2]string{"forward", "backward"}

// oneForwardOneBackward adds the tasks of a step. Each stage has forward passes ahead for the stages behind it, and then a backward and a forward
// pass in turn.
func (f *file) oneForwardOneBackward(stages int, costs map[[2]string][]dag.Cost, task func(piece [2]string, name string, labels dag.Labels, after ...dag.TaskID) dag.TaskID) error {
	n := max(1, f.Minibatches)
	const missing = dag.TaskID(-1)
	var done [2][][]dag.TaskID                                                             // by pass, stage and micro-batch
	queues, last := make([][][2]int, stages), slices.Repeat([]dag.TaskID{missing}, stages) // of passes and micro-batches
	for s := range stages {
		for pass, phase := range passes {
			if costs[[2]string{zeusDevice(s), phase}] == nil {
				return f.errorf(1, "stage %d has no %s; write both instructions of the stages 0 to %d", s, phase, stages-1)
			}
			done[pass] = append(done[pass], slices.Repeat([]dag.TaskID{missing}, n))
		}
		warm := min(n, stages-s)
		for m := range warm {
			queues[s] = append(queues[s], [2]int{0, m})
		}
		for m := range n {
			queues[s] = append(queues[s], [2]int{1, m})
			if warm+m < n {
				queues[s] = append(queues[s], [2]int{0, warm + m})
			}
		}
	}
	for left := 2 * n * stages; left > 0; {
		for s := range stages {
			for ; len(queues[s]) > 0; queues[s] = queues[s][1:] {
				pass, m := queues[s][0][0], queues[s][0][1]
				before, waits := missing, true
				switch {
				case pass == 1 && s < stages-1:
					before = done[1][s+1][m]
				case pass == 1:
					before = done[0][s][m]
				case s > 0:
					before = done[0][s-1][m]
				default:
					waits = false
				}
				if waits && before == missing {
					break // another stage has to go first
				}
				phase := passes[pass]
				last[s] = task([2]string{zeusDevice(s), phase}, fmt.Sprintf("%s %d #%d", phase, s, m), dag.Labels{Phase: phase, MicroBatch: int32(m), Stage: int32(s + 1)}, last[s], before)
				done[pass][s][m] = last[s]
				left--
			}
		}
	}
	return nil
}
