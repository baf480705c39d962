package execute

import (
	"testing"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// how says how a program of a test is decided and executed.
type how struct {
	Platform *platform.Platform
	Plans    []*schedule.Plan
	Policy   string // where there are no plans; "": eager, with several memories heft
	Variant  string // asked for by name
	Options
}

// decided makes the decision for this machine.
func decided(prog *dag.Program, h how) (*schedule.Decision, error) {
	p, err := Runnable(h.Platform)
	if err != nil {
		return nil, err
	}
	priced, err := schedule.Price(prog, p, hardware.Target{Variant: h.Variant, ThisMachine: true})
	if err != nil {
		return nil, err
	}
	name := h.Policy
	if name == "" {
		name = map[bool]string{false: "eager", true: "heft"}[p.Spread()]
	}
	info, err := policy.ByName(name)
	if err != nil {
		return nil, err
	}
	return priced.Decide(schedule.Choice{Policy: info, Plans: h.Plans})
}

// newOn decides and compiles a program.
func newOn(prog *dag.Program, h how) (*Runner, error) {
	d, err := decided(prog, h)
	if err != nil {
		return nil, err
	}
	return New(d, h.Options)
}

// priced are the costs of a program on a platform.
func priced(t testing.TB, prog *dag.Program, p *platform.Platform, target hardware.Target) *schedule.Priced {
	t.Helper()
	return must.Get(schedule.Price(prog, p, target))(t)
}
