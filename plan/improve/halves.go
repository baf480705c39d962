package improve

import (
	"cmp"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/schedule"
)

// change is one change of a plan, in one of several forms: the state in which a unit sleeps after a task, or
// the variant of a call.
type change struct {
	task         dag.TaskID
	device, call string // of a variant
	forms        []form // the most promising first
}

type form struct {
	sleeps  int32 // the sleep state plus 1
	variant string
	saves   float64 // by an estimate
}

// sortChanges puts what saves most first.
func sortChanges(all []change) {
	for i := range all {
		slices.SortStableFunc(all[i].forms, func(a, b form) int { return cmp.Compare(b.saves, a.saves) })
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(b.forms[0].saves, a.forms[0].saves) })
}

// mostTrials is how many sets of changes are simulated.
const mostTrials = 32

// tryHalves makes some changes of a plan if the plan is better by the simulator. All are tried at once; if they are worse together,
// the first half, then the other half, and so on down to single changes, which are tried in their other forms at last.
func (s *search) tryHalves(found judged, all []change) judged {
	best, err := s.judge(found.Plan(), fewSteps)
	if err != nil {
		return found
	}
	trials := mostTrials
	var try func(some []change)
	try = func(some []change) {
		if len(some) == 0 || trials == 0 || s.over() {
			return
		}
		trials--
		if now, err := s.judge(s.withChanges(best.Plan(), some), fewSteps); err == nil && now.score < best.score*(1-tolerance) {
			best = now
			return
		}
		if half := len(some) / 2; half > 0 {
			try(some[:len(some)-half])
			try(some[len(some)-half:])
		} else if one := some[0]; len(one.forms) > 1 {
			one.forms = one.forms[1:]
			try([]change{one})
		}
	}
	try(all)
	if best.Plan() == found.Plan() {
		return found
	}
	if best, err = s.judge(best.Plan(), steadySteps); err != nil || best.score >= found.score {
		return found
	}
	return best
}

// withChanges is a plan with changes.
func (s *search) withChanges(plan *schedule.Plan, some []change) *schedule.Plan {
	with, own := *plan, map[string]bool{} // devices whose variants are the plan's own
	with.Sleeps, with.Variants = slices.Clone(plan.Sleeps), maps.Clone(plan.Variants)
	for _, c := range some {
		to := c.forms[0]
		if c.device == "" {
			with.SetSleep(s.graph, c.task, to.sleeps)
			continue
		}
		if with.Variants == nil {
			with.Variants = schedule.Variants{}
		}
		if !own[c.device] {
			own[c.device], with.Variants[c.device] = true, maps.Clone(with.Variants[c.device])
		}
		if with.Variants[c.device] == nil {
			with.Variants[c.device] = map[string]string{}
		}
		with.Variants[c.device][c.call] = to.variant
	}
	if len(own) > 0 && with.Arenas != nil { // its calls may need another workspace
		with.Places, with.Arenas = nil, nil
		return s.separateBuffers(&with)
	}
	return &with
}
