package policy

import (
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// Online is a policy that decides while a program runs, where all tasks run in one memory. For several
// memories its decisions are taken once, in a run over estimated times, and [Online.Plan] writes them down.
type Online interface {
	schedule.Policy
	Start(p *schedule.Problem) Scheduler
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

// Undecided is the result of Ready to leave the choice to Next.
const Undecided platform.WorkerID = -1

// New is a policy of a function.
func New(doc schedule.Doc, plan func(*schedule.Problem) (*schedule.Plan, error)) schedule.Policy {
	return &planned{doc, plan}
}

type planned struct {
	doc  schedule.Doc
	plan func(*schedule.Problem) (*schedule.Plan, error)
}

func (s *planned) Doc() schedule.Doc { return s.doc }

func (s *planned) Plan(p *schedule.Problem) (*schedule.Plan, error) {
	plan, err := s.plan(p)
	if err == nil {
		plan.Policy = s.doc.Name
	}
	return plan, err
}

// NewOnline is a policy that decides by a scheduler made for each run.
func NewOnline(doc schedule.Doc, start func(*schedule.Problem) Scheduler) Online {
	doc.Online = true
	return &online{doc, start}
}

type online struct {
	doc   schedule.Doc
	start func(*schedule.Problem) Scheduler
}

func (o *online) Doc() schedule.Doc                   { return o.doc }
func (o *online) Start(p *schedule.Problem) Scheduler { return o.start(p) }

// All is the table of policies for any graph.
func All() []schedule.Policy {
	return []schedule.Policy{Eager, LWS, DMDA, DMDAR, DMDAS, HEFT, DataParallel}
}

// ByName finds a policy for any graph or an order of pipelines.
func ByName(name string) (schedule.Policy, error) {
	return naming.Find("policy", name, append(All(), Pipelines()...), func(p schedule.Policy) string { return p.Doc().Name })
}

// View is the read-only state that a scheduler may look at.
type View struct {
	Problem *schedule.Problem
	*schedule.Fit
	// Released is the worker whose task ended last and so made instances ready, Undecided while the run begins.
	Released platform.WorkerID
	// FreeAt estimates when a worker will have finished the tasks it was given.
	FreeAt func(w platform.WorkerID) time.Duration
	// MissingBytes is the number of bytes that a memory lacks for an instance, bytes on their way included. Arrival
	// is the expected time of their arrival.
	MissingBytes func(i dag.Instance, m platform.MemoryID) int64
	Arrival      func(i dag.Instance, m platform.MemoryID) time.Duration

	order *ready.Steps
}
