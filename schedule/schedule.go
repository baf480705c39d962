package schedule

import (
	"cmp"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// Schedule lists the tasks and transfers of a run with their places and times: simulated or measured.
type Schedule struct {
	World     World
	GraphHash string
	Policy    string
	Steps     int

	Spans     []Span     // by start, then worker
	Transfers []Transfer // by start, then destination
	Evictions []Eviction // by time, then memory
	Changes   []Change   // of clocks and of sleep, by start
	Memory    []Occupancy

	Makespan time.Duration
	// FirstStep is when the last task of step 0 ended; Period is the time that a
	// step more takes in a long run (0 for a single step).
	FirstStep, Period time.Duration

	PeakBytes []int64 // by memory
}

// World tells a prediction from a measurement.
type World string

// The two worlds.
const (
	Simulated World = "simulated"
	Measured  World = "measured"
)

// Span is one execution of a task.
type Span struct {
	Task   dag.TaskID
	Step   int32
	Worker platform.WorkerID
	// Start is when the kernel began and End when it ended; Ready is when the
	// last predecessor had ended and the operands had arrived (negative: unknown).
	Ready, Start, End time.Duration
}

// Compare orders the spans of a schedule.
func (s *Span) Compare(o *Span) int {
	if s.Start != o.Start {
		return cmp.Compare(s.Start, o.Start)
	}
	return cmp.Or(cmp.Compare(s.Worker, o.Worker), cmp.Compare(s.End, o.End))
}

// Transfer is one movement of a region.
type Transfer struct {
	Buffer     dag.BufferID // storage
	Atoms      []int32
	Bytes      int64
	From, To   platform.MemoryID
	For        dag.TaskID // the reader, or the task with the need for an eviction's room
	Step       int32
	Reason     place.Reason
	Start, End time.Duration
	Share      place.Share // of its only atom
}

// Eviction is contents that a memory dropped for lack of room before their last use. Another
// memory had them at that moment.
type Eviction struct {
	Buffer dag.BufferID // storage
	Atoms  []int32
	Bytes  int64
	Memory platform.MemoryID
	At     time.Duration
}

// Occupancy is the bytes live in a memory from a moment on.
type Occupancy struct {
	Memory platform.MemoryID
	At     time.Duration
	Bytes  int64
}

// Plan is decisions written down. A run with a plan needs no policy.
type Plan struct {
	Policy    string        `json:"policy,omitempty"`
	GraphHash string        `json:"graph,omitempty"` // empty in a hand-written plan
	Lowering  *dag.Lowering `json:"lowering,omitempty"`
	// On names the devices of the plan, as [platform.Platform.Select] takes them. Empty means all.
	On       string   `json:"on,omitempty"`
	Variants Variants `json:"variants,omitempty"`
	// Order lists the tasks of one step by worker, in the order of execution.
	Order [][]dag.TaskID `json:"-"`
	// Lags say how many steps a task runs behind the first ones, by task: in its period p a worker goes through its list and runs each
	// task of step p less its lag. So a pipeline has several steps in progress on one worker. Nil means that a period is a step.
	Lags []int32 `json:"-"`
	// [Priced.Decide] makes this; before, it is empty. A decision keeps to the parts that a plan has.
	place.Written `json:"-"`
	States
}
