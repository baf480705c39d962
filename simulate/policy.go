package simulate

import (
	"time"

	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// policyRun is a run whose policy decides while it runs, through the Engine.
type policyRun struct {
	*simulation
	engine *policy.Engine
	cmds   []policy.Command
}

func newPolicyRun(s *simulation, scheduler policy.Scheduler) (*policyRun, error) {
	engine, err := policy.NewEngine(s.p, scheduler, func() time.Duration { return s.now })
	s.pace = schedule.NewPace(s.p)
	return &policyRun{simulation: s, engine: engine}, err
}

func (r *policyRun) start()         { r.obey(r.engine.Start(r.cmds[:0])) }
func (r *policyRun) err() error     { return r.engine.Err() }
func (r *policyRun) finished() bool { return r.engine.Finished() }
func (r *policyRun) taskEnds(worker int32) {
	r.obey(r.engine.Done(platform.WorkerID(worker), r.cmds[:0]))
}
func (r *policyRun) copyEnds(int32) {
	panic("simulate: a policy that decides while it runs moves nothing")
}

func (r *policyRun) complete() (*schedule.Schedule, error) { return r.out, r.out.Complete(r.p) }

// obey carries out the Engine's commands.
func (r *policyRun) obey(cmds []policy.Command) {
	r.cmds = cmds
	for _, c := range cmds {
		r.task(c.Instance, c.Instance, c.Worker, r.engine.ReadyAt(c.Instance))
	}
}
