package schedule

import (
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/ready"
)

// Policy is a dynamic scheduler. The Engine calls it under its lock. A policy must neither keep
// time nor start threads.
type Policy interface {
	// Ready is called once for each instance, when its predecessors have ended. It returns the
	// worker that is to run the instance, or Undecided. The Engine then starts to move the
	// operands to that worker's memory.
	Ready(v *View, i dag.Instance) platform.WorkerID
	// Next is called when a worker has nothing to do. A worker away from the host's memory is
	// also asked while it runs a task, if it has taken none to follow. Next returns an instance
	// that was made ready and is not yet handed out. It returns false to wait until something
	// changes.
	Next(v *View, w platform.WorkerID) (dag.Instance, bool)
}

// Undecided is what Ready returns to leave the choice to Next.
const Undecided platform.WorkerID = -1

// PolicyInfo is one line of the table of policies.
type PolicyInfo struct {
	Name     string
	Sentence string
	Paper    string

	// At most one of the two is set. Static makes the whole plan beforehand. Dynamic returns a
	// scheduler for one run. Replay sets neither, because its plan comes from elsewhere.
	Static  func(p *Problem) (*Plan, error)
	Dynamic func(p *Problem) Policy
}

// View is the read-only state a policy may look at.
type View struct {
	Problem *Problem
	// FreeAt estimates when a worker will have finished the tasks it was given. The estimate
	// includes the wait for operands where the memory has room for them.
	FreeAt func(w platform.WorkerID) time.Duration
	// MissingBytes is how many bytes would have to move for an instance to run at a memory.
	// Arrival is when they are expected to have come.
	MissingBytes func(i dag.Instance, m platform.MemoryID) int64
	Arrival      func(i dag.Instance, m platform.MemoryID) Arrival

	eligible *eligibility
	order    *ready.Steps
}

// CanRun reports whether a worker may run a task: its device has a cost for it,
// the task's placement allows it, and no other worker has its colocation group.
func (v *View) CanRun(t dag.TaskID, w platform.WorkerID) bool { return v.eligible.canRun(t, w) }

// Workers lists the workers for which CanRun holds, ascending. The caller must not keep it.
func (v *View) Workers(t dag.TaskID) []platform.WorkerID { return v.eligible.of(t) }

// Occupies is how long a task keeps a worker that can run it, dispatch included.
func (v *View) Occupies(t dag.TaskID, w platform.WorkerID) time.Duration {
	return v.Problem.occupies(t, w)
}
