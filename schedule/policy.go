package schedule

import (
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/platform"
	"dahl/schedule/ready"
)

// Policy plans where the tasks of a step run, in which order, and at will at which clocks, with which sleeps
// and versions of buffers. A policy of another module is a type with these two methods.
type Policy interface {
	Doc() Doc
	Plan(p *Problem) (*Plan, error)
}

// Doc is what a policy says of itself.
type Doc struct {
	Name     string // as --policy and plans have it
	Sentence string
	Paper    string
}

// Online is a policy that decides while a program runs, where all tasks run in one memory. For several
// memories its decisions are taken once, in a run over estimated times, and [Online.Plan] writes them down.
type Online interface {
	Policy
	Start(p *Problem) Scheduler
}

// Scheduler decides during one run. The Engine calls it under its lock. A scheduler must neither keep
// time nor start threads.
type Scheduler interface {
	// Ready is called once for each instance, when its predecessors have ended. It returns the
	// worker that is to run the instance, or Undecided.
	Ready(v *View, i dag.Instance) platform.WorkerID
	// Next is called when a worker has nothing to do. Next returns an instance that was made ready and is
	// not yet handed out. It returns false to wait until something changes.
	Next(v *View, w platform.WorkerID) (dag.Instance, bool)
}

// Undecided is what Ready returns to leave the choice to Next.
const Undecided platform.WorkerID = -1

// NewPolicy is a policy of a function.
func NewPolicy(doc Doc, plan func(*Problem) (*Plan, error)) Policy { return &planned{doc, plan} }

type planned struct {
	doc  Doc
	plan func(*Problem) (*Plan, error)
}

func (s *planned) Doc() Doc { return s.doc }

func (s *planned) Plan(p *Problem) (*Plan, error) {
	plan, err := s.plan(p)
	if err == nil {
		plan.Policy = s.doc.Name
	}
	return plan, err
}

// NewOnline is a policy that decides by a scheduler made for each run.
func NewOnline(doc Doc, start func(*Problem) Scheduler) Online { return &online{doc, start} }

type online struct {
	doc   Doc
	start func(*Problem) Scheduler
}

func (o *online) Doc() Doc                   { return o.doc }
func (o *online) Start(p *Problem) Scheduler { return o.start(p) }

// Policies is the table of policies.
func Policies() []Policy { return []Policy{Eager, DMDA, DMDAR, HEFT, DataParallel} }

// PolicyByName finds a line of the table.
func PolicyByName(name string) (Policy, error) {
	var known []string
	for _, policy := range Policies() {
		if policy.Doc().Name == name {
			return policy, nil
		}
		known = append(known, policy.Doc().Name)
	}
	return nil, naming.Unknown("policy", name, known)
}

// View is the read-only state that a scheduler may look at.
type View struct {
	Problem *Problem
	*Fit
	// FreeAt estimates when a worker will have finished the tasks it was given.
	FreeAt func(w platform.WorkerID) time.Duration
	// MissingBytes is how many bytes a memory lacks for an instance to run there, those on their way included.
	// Arrival is when they are expected to have come.
	MissingBytes func(i dag.Instance, m platform.MemoryID) int64
	Arrival      func(i dag.Instance, m platform.MemoryID) time.Duration

	order *ready.Steps
}
