package words

import (
	"cmp"
	"fmt"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/plan/problem"
	"dahl/schedule"
)

// BoundText says how far a run is from its bound. The run is named with its verb, as in "the run takes".
func BoundText(name string, run, bound time.Duration, world schedule.World, of string) string {
	by := ""
	if world == schedule.Measured {
		by = "by the platform's models "
	}
	times, least := cli.Ratio(run.Seconds(), bound.Seconds()), cli.ShortTime(bound)
	text := fmt.Sprintf("%s times the %s that %sno schedule of %s can beat", cli.ThreeDigits(times), least, by, of)
	switch {
	case bound == 0:
		text = "for which no bound is known"
	case times < 0.995: // of a measured run
		text = fmt.Sprintf("less than the %s that the platform's models give every schedule of %s: the models are slower than the machine, and dahl calibrate measures them", least, of)
	case times < 1.005:
		text = fmt.Sprintf("which %sno schedule of %s can beat", by, of)
	}
	return fmt.Sprintf("%s %s, %s", name, cli.ShortTime(run), text)
}

// Bounded names the subject of a run's bound: the tasks as they are cut, on the devices of the run. Other
// tiles and other devices have bounds of their own.
func Bounded(network bool, tasks int) string {
	of := "graph"
	if network {
		of = "lowering"
	}
	return fmt.Sprintf("this %s (%s) on these devices", of, naming.Count(tasks, "task"))
}

// GapText says how far a plan is from the bound of its search.
func GapText(s *record.Summary) string {
	least, o := "", s.ObjectiveSummary
	switch problem.Objective(o.Objective) {
	case problem.Time:
		least = cli.ShowTime(s.LowerBoundS)
	case problem.Energy:
		least = cli.ShortJoules(*cmp.Or(o.LowerBoundJ, new(float64)))
	default:
		least = cli.ThreeDigits(*cmp.Or(o.LowerBoundJS, new(float64))) + " J s"
	}
	switch gap := float64(o.Gap); {
	case o.Proven:
		return fmt.Sprintf("proven: of %s no plan has less a step", o.LowerBoundOf)
	case record.IsFinite(gap):
		return fmt.Sprintf("of %s no plan has less than %s a step: a gap of %.3g %%", o.LowerBoundOf, least, 100*gap)
	}
	return fmt.Sprintf("of %s no plan has less than %s a step; the plan is none of these, and no gap is known", o.LowerBoundOf, least)
}
