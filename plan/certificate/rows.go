package certificate

import (
	"fmt"
	"math"
	"slices"

	"dahl/plan/problem"
)

// Family is a kind of inequality that every plan fulfils.
type Family string

// The families. S is the start of a task, d its time on its device and clock, T the makespan, y the share of a task on an
// option, z the share of a version in a memory, A the time in which any unit of a device runs; sums over y go over the options
// of a task on the device or at the memory.
const (
	// Assign: every task runs. Σ y = 1.
	Assign Family = "assign"
	// Precede: a task follows another, of the same step or Back steps earlier.
	// S_to + Back·T − S_from − d_from ≥ 0.
	Precede Family = "precede"
	// Deliver: what a task reads moves into its memory if the writer is elsewhere.
	// S_to + Back·T − S_from − d_from − (y_to at the memory − y_from at the memory)·nanos ≥ 0.
	Deliver Family = "deliver"
	// Finish: T − S − d ≥ 0, of a step that runs alone.
	Finish Family = "finish"
	// Area: the units of a device have T each. units·T − Σ d·y ≥ 0.
	Area Family = "area"
	// Awake: a device is awake as long as its units share their work. units·A − Σ kernel·y ≥ 0.
	Awake Family = "awake"
	// Span: T − A ≥ 0.
	Span Family = "span"
	// Copy: a memory gets a version if a reader is there and the writer is not.
	// z − y_reader at the memory + y_writer at the memory ≥ 0.
	Copy Family = "copy"
	// Tail: successors of a task run between its end and the end of a step that runs alone.
	// units·(T − S − d) − Σ over followers of d·y on the device ≥ 0.
	Tail Family = "tail"
	// Between: what follows one task and precedes another, of the same step or Back steps later, runs
	// between them. units·(S_to + Back·T − S_from − d_from) − Σ d·y ≥ 0. From a task to itself in the next
	// step this is a cycle.
	Between Family = "between"
	// Pool: all tasks of a step that runs alone, on equal units, take as long as pool.go finds. T ≥ nanoseconds.
	Pool Family = "pool"
	// Period: no steady step is so short, as period.go finds with some tasks as its reference. T ≥ nanoseconds.
	Period Family = "period"
	// Spread: all tasks, or in a steady step one and the tasks between it and itself in the next step, take as long as spread.go finds,
	// at any memories between which data take time. T ≥ nanoseconds.
	Spread Family = "spread"
	// Cross: tasks that are bound to some place get their operands over the links around it. T ≥ nanoseconds, see
	// schedule.Priced.CrossingTime.
	Cross Family = "cross"
	// Tied: tasks between which more bytes go than links carry in the time of a step run in one place, and take as long there as tied.go
	// finds. T ≥ nanoseconds.
	Tied Family = "tied"
	// Engine: copies into a memory follow each other on its engines, at least one for what a task wrote of a storage.
	// engines·T − Σ nanos·z ≥ 0.
	Engine Family = "engine"
	// Given is a condition of the model, on tasks. Σ y ≥ Most + 1, or −Σ y ≥ −Most.
	Given Family = "given"
)

// Row is one inequality of a model. The family decides which fields count.
type Row struct {
	Family Family `json:"family"`
	From   int32  `json:"from,omitempty"` // a task; of Copy the version
	To     int32  `json:"to,omitempty"`   // a task
	Back   int32  `json:"back,omitempty"` // steps
	Where  int    `json:"at,omitempty"`   // device or memory; of Given the condition
	// Of Period: the nanoseconds, and the tasks of the reference in addition to To.
	Nanos int64   `json:"ns,omitempty"`
	With  []int32 `json:"with,omitempty"`
}

// Form is a row as numbers: the sum of coefficients times columns is at least Least, or equal to it.
type Form struct {
	Columns      []int32
	Coefficients []float64
	Least        float64
	Equal        bool
}

func (f *Form) add(column int, coefficient float64) {
	if coefficient != 0 {
		f.Columns, f.Coefficients = append(f.Columns, int32(column)), append(f.Coefficients, coefficient)
	}
}

// NumColumns is the number of columns of a model. Their order is y by task and option, S by task, T, A by device, z by
// version and memory.
func (m *Model) NumColumns() int { return m.ColumnCopy(len(m.Versions), 0) }

// ColumnShare is the column y of the first option of a task. The next ones belong to its other options.
func (m *Model) ColumnShare(task int32) int { return int(m.shares[task]) }

// ColumnStart is the column S of a task: its start in nanoseconds.
func (m *Model) ColumnStart(task int32) int { return int(m.shares[len(m.Tasks)]) + int(task) }

// ColumnSpan is the column T: the makespan, or the time between steady steps, in nanoseconds.
func (m *Model) ColumnSpan() int { return m.ColumnStart(int32(len(m.Tasks))) }

// ColumnAwake is the column A of a device: how long any of its units runs, in nanoseconds.
func (m *Model) ColumnAwake(device int) int { return m.ColumnSpan() + 1 + device }

// ColumnCopy is the column z of a version in a memory.
func (m *Model) ColumnCopy(version, memory int) int {
	return m.ColumnAwake(len(m.Devices)) + version*len(m.Memories) + memory
}

// stepsAtOnce bounds the steps in progress. So it bounds the distance of two starts in one step, in steps.
const stepsAtOnce = 9

// Upper is the upper bound of a column, for plans of at most some makespan or distance of steps; all are at
// least 0. Starts in a steady step count from the first of them.
func (m *Model) Upper(column int, horizon float64) float64 {
	switch {
	case column < m.ColumnStart(0):
		if m.excluded != nil && m.excluded[column] {
			return 0
		}
		return 1
	case column >= m.ColumnCopy(0, 0):
		return 1
	case m.Steady && column < m.ColumnSpan():
		return stepsAtOnce * horizon
	}
	return horizon
}

// Cost is the objective's coefficient of every column.
func (m *Model) Cost() []float64 {
	cost := make([]float64, m.NumColumns())
	if m.Objective == problem.Time {
		cost[m.ColumnSpan()] = 1
		return cost
	}
	cost[m.ColumnSpan()] = below(m.FloorWatts)
	for t := range m.Tasks {
		for k, o := range m.Tasks[t].Options {
			cost[m.ColumnShare(int32(t))+k] = o.Nanojoules
		}
	}
	for d := range m.Devices {
		cost[m.ColumnAwake(d)] = below(m.Devices[d].AwakeWatts)
	}
	for v := range m.Versions {
		for at := range m.Memories {
			cost[m.ColumnCopy(v, at)] = below(float64(float64(m.Versions[v].Bytes) * m.Memories[at].NanojoulesPerByte))
		}
	}
	return cost
}

// addTime adds a task's time, times a factor.
func (m *Model) addTime(f *Form, task int32, factor float64) {
	for k, o := range m.Tasks[task].Options {
		f.add(m.ColumnShare(task)+k, float64(factor*float64(o.Nanos)))
	}
}

// addWork takes away the time of tasks on a device, as nanos counts it.
func (m *Model) addWork(f *Form, tasks func(yield func(int32) bool), device int, nanos func(*Option) int64) {
	for t := range tasks {
		for k := range m.Tasks[t].Options {
			if o := &m.Tasks[t].Options[k]; o.Device == device {
				f.add(m.ColumnShare(t)+k, -float64(nanos(o)))
			}
		}
	}
}

// addAt adds the share of a task at a memory, times a factor.
func (m *Model) addAt(f *Form, task int32, memory int, factor float64) {
	for k := range m.Tasks[task].Options {
		if m.Devices[m.Tasks[task].Options[k].Device].Memory == memory {
			f.add(m.ColumnShare(task)+k, factor)
		}
	}
}

func nanosOf(o *Option) int64 { return o.Nanos }
func awakeOf(o *Option) int64 { return o.AwakeNanos }

// Form is a row in numbers. It fails for a row that the model does not have.
func (m *Model) Form(r *Row) (f Form, err error) {
	if err := m.has(r); err != nil {
		return f, err
	}
	from, to := m.ColumnStart(r.From), m.ColumnStart(r.To)
	switch r.Family {
	case Assign:
		for k := range m.Tasks[r.To].Options {
			f.add(m.ColumnShare(r.To)+k, 1)
		}
		f.Least, f.Equal = 1, true
	case Precede, Deliver:
		f.add(to, 1)
		f.add(from, -1)
		f.add(m.ColumnSpan(), float64(r.Back))
		m.addTime(&f, r.From, -1)
		if r.Family == Deliver {
			nanos := float64(m.edge(r.From, r.To, r.Back).Nanos[r.Where])
			m.addAt(&f, r.To, r.Where, -nanos)
			m.addAt(&f, r.From, r.Where, nanos)
		}
	case Finish:
		f.add(m.ColumnSpan(), 1)
		f.add(to, -1)
		m.addTime(&f, r.To, -1)
	case Span:
		f.add(m.ColumnSpan(), 1)
		f.add(m.ColumnAwake(r.Where), -1)
	case Pool:
		f.add(m.ColumnSpan(), 1)
		f.Least = float64(m.least())
	case Period:
		f.add(m.ColumnSpan(), 1)
		f.Least = float64(r.Nanos)
	case Spread:
		f.add(m.ColumnSpan(), 1)
		f.Least = float64(m.spreadLeast(m.around(r)))
	case Cross:
		f.add(m.ColumnSpan(), 1)
		f.Least = float64(m.CrossingNanos)
	case Tied:
		f.add(m.ColumnSpan(), 1)
		f.Least = float64(m.tiedLeast())
	case Given:
		m.addCondition(&f, &m.Conditions[r.Where])
	case Copy, Engine:
		m.addCopies(&f, r)
	default:
		m.addUnits(&f, r)
	}
	return f, nil
}

// addUnits makes a row of the work that the units of a device have time for.
func (m *Model) addUnits(f *Form, r *Row) {
	units, from, to := float64(m.Devices[r.Where].Units), m.ColumnStart(r.From), m.ColumnStart(r.To)
	switch r.Family {
	case Area:
		f.add(m.ColumnSpan(), units)
		m.addWork(f, m.all, r.Where, nanosOf)
	case Awake:
		f.add(m.ColumnAwake(r.Where), units)
		m.addWork(f, m.all, r.Where, awakeOf)
	case Tail:
		f.add(m.ColumnSpan(), units)
		f.add(from, -units)
		m.addTime(f, r.From, -units)
		m.addWork(f, m.After(r.From, 0), r.Where, nanosOf)
	case Between:
		f.add(to, units)
		f.add(from, -units)
		f.add(m.ColumnSpan(), units*float64(r.Back))
		m.addTime(f, r.From, -units)
		m.addWork(f, m.Between(r.From, r.To, int(r.Back)), r.Where, nanosOf)
	}
}

// addCopies makes a row of the versions that a memory gets.
func (m *Model) addCopies(f *Form, r *Row) {
	switch r.Family {
	case Copy:
		v := &m.Versions[r.From]
		f.add(m.ColumnCopy(int(r.From), r.Where), 1)
		m.addAt(f, r.To, r.Where, -1)
		if v.Writer >= 0 {
			m.addAt(f, v.Writer, r.Where, 1)
		}
	case Engine:
		f.add(m.ColumnSpan(), float64(m.Memories[r.Where].Engines))
		for v := range m.Versions {
			if of := &m.Versions[v]; of.Home != r.Where {
				f.add(m.ColumnCopy(v, r.Where), -of.Nanos[r.Where])
			}
		}
	}
}

// has verifies that the model has a row.
func (m *Model) has(r *Row) error {
	task := func(t int32) bool { return t >= 0 && int(t) < len(m.Tasks) }
	device := r.Where >= 0 && r.Where < len(m.Devices)
	memory := r.Where >= 0 && r.Where < len(m.Memories)
	ok := false
	switch r.Family {
	case Assign:
		ok = task(r.To)
	case Finish:
		ok = task(r.To) && !m.Steady
	case Precede:
		ok = m.edge(r.From, r.To, r.Back) != nil
	case Deliver:
		e := m.edge(r.From, r.To, r.Back)
		ok = memory && e != nil && e.Bytes > 0
	case Area, Awake, Span:
		ok = device
	case Copy:
		ok = memory && r.From >= 0 && int(r.From) < len(m.Versions) && m.Versions[r.From].reads(r.To, r.Where)
	case Tail:
		ok = device && !m.Steady && task(r.From)
	case Between:
		ok = device && task(r.From) && task(r.To) && (r.Back == 0 || r.Back == 1) && m.Precedes(r.From, r.To, int(r.Back))
	case Pool:
		ok = !m.Steady
	case Spread:
		ok = !m.Steady || task(r.To) && m.Precedes(r.To, r.To, 1)
	case Period:
		around := append([]int32{r.To}, r.With...)
		ok = m.Steady && !slices.ContainsFunc(around, func(t int32) bool { return !task(t) }) && m.refutes(around, r.Nanos)
	case Engine:
		ok = memory && m.Memories[r.Where].Engines > 0
	case Cross:
		ok = m.CrossingNanos > 0
	case Tied:
		ok = len(m.partings) > 0
	case Given:
		ok = r.Where >= 0 && r.Where < len(m.Conditions) && len(m.Conditions[r.Where].Tasks) > 0
	}
	if !ok {
		return fmt.Errorf("the model has no row %q from %d to %d at %d", r.Family, r.From, r.To, r.Where)
	}
	return nil
}

// around is the task of a steady step that a spread is around.
func (m *Model) around(r *Row) int32 {
	if m.Steady {
		return r.To
	}
	return -1
}

// reads reports whether a task reads a version, at a memory where it does not lie from the start.
func (v *Version) reads(t int32, memory int) bool {
	for _, u := range v.Readers {
		if u == t {
			return v.Writer >= 0 && v.Writer != t || v.Writer < 0 && v.Home != memory
		}
	}
	return false
}

// Horizon returns a makespan that exceeds all plans of the model with an objective below a value.
func (m *Model) Horizon(value float64) float64 {
	horizon := value
	switch m.Objective {
	case problem.Energy:
		horizon = math.Nextafter(value/below(m.FloorWatts), math.Inf(1))
	case problem.EDP: // T·(watts·T) is at most the product
		horizon = above(math.Sqrt(value / below(m.FloorWatts)))
	}
	if m.mostSpan > 0 {
		horizon = min(horizon, m.mostSpan)
	}
	return horizon
}
