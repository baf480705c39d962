package simulate

import (
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// policyRun is a run whose policy decides while it runs, through the Engine.
type policyRun struct {
	*simulation
	engine *schedule.Engine
	cmds   []schedule.Command
	atoms  []int32 // storage of the atom lists of all transfers
}

func newPolicyRun(s *simulation, policy schedule.Policy) (*policyRun, error) {
	engine, err := schedule.NewEngine(s.p, policy, func() time.Duration { return s.now })
	s.pace = schedule.NewPace(s.p)
	return &policyRun{simulation: s, engine: engine}, err
}

func (r *policyRun) start()         { r.obey(r.engine.Start(r.cmds[:0])) }
func (r *policyRun) err() error     { return r.engine.Err() }
func (r *policyRun) finished() bool { return r.engine.Finished() }
func (r *policyRun) taskEnds(worker int32) {
	r.obey(r.engine.Done(platform.WorkerID(worker), r.cmds[:0]))
}
func (r *policyRun) copyEnds(copy int32) { r.obey(r.engine.Copied(schedule.CopyID(copy), r.cmds[:0])) }

func (r *policyRun) complete() (*schedule.Schedule, error) { return r.out, r.out.Complete(r.p) }

// obey carries out the Engine's commands.
func (r *policyRun) obey(cmds []schedule.Command) {
	r.cmds = cmds
	for _, c := range cmds {
		switch c.Kind {
		case schedule.RunTask:
			r.task(c.Instance, c.Instance, c.Worker, r.engine.ReadyAt(c.Instance))
		case schedule.CopyRegion:
			t := *r.engine.CopyAt(c.Copy)
			from := len(r.atoms)
			r.atoms = append(r.atoms, t.Atoms...)
			t.Atoms, t.Start = r.atoms[from:len(r.atoms):len(r.atoms)], r.now
			r.transfer(int32(c.Copy), t)
		case schedule.EvictRegion:
			e := *r.engine.EvictionAt(c.Eviction)
			e.At = r.now
			r.out.Evictions = append(r.out.Evictions, e)
		}
	}
}
