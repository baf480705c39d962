package words

import (
	"fmt"
	"io"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/naming"
	"dahl/plan/best"
	"dahl/plan/shares"
	"dahl/rundir"
)

// Amount is a value with six digits, in the unit with the prefix by which it is at least 1.
func Amount(v float64, unit string) string {
	for _, prefix := range []string{"", "m", "u"} {
		if v >= 1 || v == 0 {
			return fmt.Sprintf("%.6g %s%s", v, prefix, unit)
		}
		v *= 1000
	}
	return fmt.Sprintf("%.6g n%s", v, unit)
}

// boundText states the bound and the set of plans under it. A bound for a set without the found plan tells nothing about
// how good that plan is.
func boundText(found *best.Result, unit string) string {
	by := ""
	if found.Certificate != nil {
		by = " by " + rundir.CertificateFile
	}
	none := fmt.Sprintf("of %s no plan has less", CoveredText(found))
	than := fmt.Sprintf("not proven: %s than %s%s", none, Amount(found.Bound, unit), by)
	switch {
	case found.Bound <= 0:
		return "not proven: no bound yet, since the search ended before"
	case found.Covered.Outside && found.All < found.Bound:
		return than + "; the plan that was found is none of these, so that it may have less and no gap is known"
	case found.Proven:
		return "proven: " + none
	}
	return fmt.Sprintf("%s, a gap of %.3g %%", than, 100*found.Gap())
}

// allText states the bound of all lowerings on all sets of devices; empty where there is none, or no greater one.
func allText(found *best.Result, unit string) string {
	if found.All <= 0 || found.All >= found.Bound {
		return ""
	}
	return fmt.Sprintf("of %s no plan has less than %s, a gap of %.3g %%", shares.Covered, Amount(found.All, unit), 100*(found.Value/found.All-1))
}

// CoveredText names the plans under a bound.
func CoveredText(found *best.Result) string {
	c := found.Covered
	switch {
	case c.Clocks:
		return "these tasks where they are, in their order, at any clocks"
	case c.Lags:
		return "these tasks on these devices, however many steps overlap"
	case found.All > 0 && found.All >= found.Bound:
		return shares.Covered
	}
	text := "these tasks"
	switch {
	case c.Tilings == 0:
		return "the plan's own lowering, with its stages on their devices,"
	case c.Tiles:
		text = "the plan's own tiles"
	case c.Tilings > 1:
		text = fmt.Sprintf("these %d tilings", c.Tilings)
	}
	if c.Sets == 1 {
		text += " on these devices"
	} else {
		text += fmt.Sprintf(" on %d sets of devices", c.Sets)
	}
	if c.Own {
		text += " and of these on the devices of the plan"
	}
	return text
}

// PrintOptimum says what was found, and how far from the least it may be.
func PrintOptimum(out io.Writer, o *flags.Options, found *best.Result) {
	unit := o.ObjectiveUnit()
	looked := naming.Count(found.Nodes, "node")
	if found.Covered.Clocks {
		looked = fmt.Sprintf("the best of %s that differ in clocks", naming.Count(len(found.Simulated), "plan"))
	} else if found.Nodes == 0 {
		looked = fmt.Sprintf("the best of %s that differ, after %s, of %s of devices and tiles", naming.Count(len(found.Simulated), "plan"), naming.Count(found.Moves, "move"), naming.Count(found.Choices, "choice"))
	}
	if o.Deadline > 0 {
		PrintClauses(out, "deadline", fmt.Sprintf("a step takes %s, and was to take at most %s; values and bounds are of plans that keep that", cli.ShortTime(found.Makespan), cli.ShortTime(o.Deadline)))
	}
	PrintClauses(out, "optimum", fmt.Sprintf("%s %s, %s (%s)", o.Objective, Amount(found.Value, unit), boundText(found, unit), looked), allText(found, unit))
	if len(found.Untried) > 0 {
		PrintClauses(out, "not tried", naming.FirstFew(found.Untried)+": the budget did not suffice for these strategies, so that one of them may be better")
	}
}
